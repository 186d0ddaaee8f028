"""What all encoders have in common, found by discovery."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.encoder import ENCODERS
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.parameters import Parameter
from attention_jax.types import Call
from tests.parameters import carried_over
from tests.quick import quick_jit

B, S, CUT, D = 3, 5, 3, 8
LENGTHS = (5, 3, 1)
BAHDANAU = MECHANISMS.config("bahdanau")(attention_dim=D)
every_encoder = pytest.mark.parametrize("name", ENCODERS.names())


def small(name, **fields):
    """A config with all sizes small."""
    config = ENCODERS.find(name).Config
    for field in dataclasses.fields(config):
        if isinstance(field.default, int) and field.default > D and field.name != "max_positions":
            fields.setdefault(field.name, D)
        elif field.name == "levels":  # of more, one slot would be left, without a past
            fields.setdefault(field.name, 1)
    return config(**fields)


def changed(name, field, value):
    """A config with another value of one field, and whatever layers it needs beside it."""
    fields = {field: value}
    try:
        return small(name, **fields)
    except ValueError:
        if field == "max_positions":
            return small(name, **fields, positions="learned")
        return small(name, **fields, num_layers=small(name).num_layers + 1)


def alternatives(name):
    """Yields every field with another value; groups are tried where they are at home."""
    config = small(name)
    for field in dataclasses.fields(config):
        value, default = field.name, getattr(config, field.name)
        if "choices" in field.metadata:
            yield from ((value, choice) for choice in field.metadata["choices"]
                        if choice != default)  # fmt: skip
        elif isinstance(default, bool):
            yield value, not default
        elif value == "max_positions":
            yield value, CUT  # fewer than there are tokens
        elif isinstance(default, int):
            yield value, default + 2  # what is odd stays odd
        elif isinstance(default, float):
            yield value, default + 0.5
        elif field.name == "self_attention":
            yield value, MECHANISMS.config("multi_head")(num_heads=1, head_dim=D)
        elif default is None:
            yield value, 1


def build(config):
    return ENCODERS.find(config.name).build(config, D, BAHDANAU)


@functools.cache
def parameters(config):
    rng = np.random.default_rng(1)
    return jax.tree.map(
        lambda leaf: jnp.asarray(rng.uniform(-0.5, 0.5, leaf.shape), jnp.float32),
        build(config).parameters,
        is_leaf=lambda node: isinstance(node, Parameter),
    )


@functools.cache
def compiled(config):
    return quick_jit(build(config).encode)


@functools.cache
def source():
    embedded = np.random.default_rng(0).normal(size=(B, S, D))
    return jnp.asarray(embedded, jnp.float32), jnp.arange(S) < jnp.asarray(LENGTHS)[:, None]


def assert_close(found, expected):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@every_encoder
def test_padding_changes_nothing(name):
    """Cut to three positions, whose padding is whatever the tokens were, two rows stay as is."""
    config, (embedded, mask) = small(name), source()
    encode, params = compiled(config), parameters(config)
    found = encode(params, jnp.where(mask[..., None], embedded, jnp.nan), mask)
    cut = encode(params, embedded[:, :CUT], mask[:, :CUT])
    depth = build(config).output_dim
    for part, part_cut in ((found.annotations, cut.annotations), (found.averaged, cut.averaged)):
        assert part.shape == (*found.mask.shape, depth)
        assert np.all(np.asarray(part)[~np.asarray(found.mask)] == 0)
        slots = part_cut.shape[1]
        np.testing.assert_allclose(part[1:, :slots], part_cut[1:], rtol=1e-5, atol=1e-6)
    if build(config).keeps_positions:
        np.testing.assert_array_equal(found.mask, mask)
    assert_close(*(jax.tree.map(lambda leaf: leaf[1:], part.finals) for part in (found, cut)))


@every_encoder
def test_finals_are_as_declared(name):
    encoder = build(small(name))
    finals = compiled(small(name))(parameters(small(name)), *source()).finals
    assert len(finals) == len(encoder.finals)
    for carries, declared in zip(finals, encoder.finals, strict=True):
        assert tuple(sorted(carries)) == tuple(sorted(declared.readings))
        leaves = jax.tree.leaves(carries)
        assert leaves and all(leaf.shape == (B, declared.depth) for leaf in leaves)


@every_encoder
def test_every_parameter_learns_and_the_gradient_is_finite(name):
    config, (embedded, mask) = small(name), source()
    encode = build(config).encode
    mask = mask.at[-1].set(False)  # a row without tokens

    def loss(params, embedded):
        encoded = encode(params, embedded, mask)
        parts = encoded.annotations, encoded.averaged
        return sum((part * jnp.cos(jnp.arange(part.size)).reshape(part.shape)).sum()
                   for part in parts)  # fmt: skip

    gradients = quick_jit(jax.grad(loss, (0, 1)))(parameters(config), embedded)
    for path, gradient in jax.tree.leaves_with_path(gradients):
        assert np.isfinite(gradient).all(), jax.tree_util.keystr(path)
        assert np.abs(gradient).max() > 1e-7, jax.tree_util.keystr(path)


CHANGES = [
    pytest.param(name, *change, id=f"{name}-{change[0]}-{change[1]}")
    for name in ENCODERS.names()
    for change in alternatives(name)
    if change[0] != "name"
]


def everything(config, params):
    encoded = compiled(config)(params, *source(), Call(True, jax.random.key(0)))
    return encoded.annotations, encoded.averaged


@pytest.mark.parametrize(("name", "field", "value"), CHANGES)
def test_every_field_changes_something(name, field, value):
    """Other outputs in training, with the same parameters as far as both have them."""
    other = changed(name, field, value)
    beside = {"num_layers", "positions"} - {field} if field == "max_positions" else {"num_layers"}
    same = {} if field == "num_layers" else {
        each.name: getattr(other, each.name) for each in dataclasses.fields(other)
        if each.name in beside
    }  # fmt: skip
    one = small(name, **same)
    params = parameters(one)
    pairs = zip(
        everything(one, params),
        everything(other, carried_over(params, parameters(other))),
        strict=True,
    )
    assert any(
        before.shape != after.shape or not np.allclose(before, after, atol=1e-5)
        for before, after in pairs
    )


@pytest.mark.parametrize(
    ("name", "field"), [change.values[:2] for change in CHANGES if "dropout" in change.values[1]]
)
def test_dropout_needs_training_and_a_key(name, field):
    config, (embedded, mask) = changed(name, field, 0.5), source()
    params = parameters(config)
    plain = dataclasses.replace(config, **{field: 0.0})
    assert_close(compiled(config)(params, embedded, mask), compiled(plain)(params, embedded, mask))
    with pytest.raises(ValueError, match="rng: expected a key"):
        compiled(config)(params, embedded, mask, Call(True))


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("concatenation", {"positions": "none", "max_positions": 3}, "only with learned positions"),
        ("average_pooling", {"width": 4}, "width: expected an odd number, found 4"),
        ("convolutional", {"kernel_width": 2}, "kernel_width: expected an odd number, found 2"),
        ("gated_convolutional", {"kernel_width": 2}, "kernel_width: expected an odd number"),
        ("grid", {"kernel_width": 2}, "kernel_width: expected an odd number, found 2"),
        ("lstmn", {"dropout": 0.1}, "dropout: expected more than one layer"),
    ],
)
def test_fields_that_do_not_fit_are_rejected(name, fields, message):
    with pytest.raises(ValueError, match=message):
        ENCODERS.find(name).Config(**fields)
