"""Encoders: padding in either direction, stacking, and that every field does something."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.encoders.recurrent import Config, build
from attention_jax.layers.parameters import Initialization, draw
from attention_jax.ops.dropout import dropout_factors
from attention_jax.ops.recurrent import CELLS, run_cell
from attention_jax.types import Call

B, S, E, D = 3, 5, 4, 6
Encoder = functools.partial(Config, "recurrent")
LENGTHS = (5, 3, 1)
CONFIGS = {
    "gru": Encoder(hidden_dim=D),
    "lstm-backward": Encoder("lstm", D, 2, "backward", residual=True),
    "mixed": Encoder("gru_reset_before", D, 3, bidirectional_layers=1, residual=True),
    "forward": Encoder("gru", D, 2, "forward"),
}
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def parameters_of(config, input_dim=E):
    return draw(build(config, input_dim).parameters, jax.random.key(1), Initialization("uniform"))


def source():
    rng = np.random.default_rng(0)
    embedded = jnp.asarray(rng.normal(size=(B, S, E)), jnp.float32)
    return embedded, jnp.arange(S) < jnp.asarray(LENGTHS)[:, None]


@functools.cache
def compiled(config):
    return jax.jit(build(config, E).encode)


def assert_close(found, expected):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@every_config
def test_encode_equals_each_row_alone_without_padding(config):
    params, (embedded, mask) = parameters_of(config), source()
    encoded = compiled(config)(params, jnp.where(mask[..., None], embedded, jnp.nan), mask)
    assert encoded.annotations.shape == (B, S, build(config, E).output_dim)
    assert encoded.summary.shape == (B, build(config, E).output_dim)
    for row, length in enumerate(LENGTHS):
        alone = compiled(config)(
            params, embedded[row : row + 1, :length], jnp.ones((1, length), bool)
        )
        np.testing.assert_allclose(
            encoded.annotations[row, :length], alone.annotations[0], rtol=1e-5, atol=1e-6
        )
        assert np.all(np.asarray(encoded.annotations[row, length:]) == 0)
        assert_close(jax.tree.map(lambda leaf, row=row: leaf[row], encoded.finals),
                     jax.tree.map(lambda leaf: leaf[0], alone.finals))  # fmt: skip


@every_config
def test_encode_starts_and_ends_where_its_readings_do(config):
    """The final state of a reading is the last annotation that it made."""
    params, (embedded, mask) = parameters_of(config), source()
    encoded = compiled(config)(params, embedded, mask)
    if config.residual:
        pytest.skip("annotations are not the states alone")
    top, last = config.num_layers - 1, np.asarray(LENGTHS) - 1
    for side, reading in enumerate(config.readings(top)):
        states = np.asarray(encoded.annotations)[..., side * D : (side + 1) * D]
        place = last if reading == "forward" else np.zeros(B, int)
        np.testing.assert_allclose(
            states[np.arange(B), place], encoded.finals[top][reading]["hidden"], rtol=1e-6
        )


@pytest.mark.parametrize("cell", CELLS)
def test_backward_equals_forward_over_reversed_tokens(cell):
    forward, backward = (Encoder(cell, D, direction=d) for d in ("forward", "backward"))
    params, (embedded, mask) = parameters_of(forward), source()
    expected = compiled(forward)(params, embedded[:, ::-1], jnp.ones_like(mask))
    found = compiled(backward)(
        {"layer_0_backward": params["layer_0_forward"]}, embedded, jnp.ones_like(mask)
    )
    np.testing.assert_allclose(
        found.annotations[:, ::-1], expected.annotations, rtol=1e-5, atol=1e-6
    )
    assert_close(found.finals, expected.finals)


def test_bidirectional_is_both_readings_side_by_side():
    config = CONFIGS["gru"]
    params, (embedded, mask) = parameters_of(config), source()
    both = compiled(config)(params, embedded, mask)
    for side, direction in enumerate(("forward", "backward")):
        one = compiled(dataclasses.replace(config, direction=direction))(
            {f"layer_0_{direction}": params[f"layer_0_{direction}"]}, embedded, mask
        )
        np.testing.assert_allclose(
            both.annotations[..., side * D : (side + 1) * D], one.annotations, atol=1e-6
        )


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_residual_adds_a_layers_input_whole(dropout):
    """With a second layer of zeros, which returns zeros, the first layer's output remains."""
    config = Encoder("gru", D, 2, "forward", residual=True, dropout=dropout)
    params, (embedded, mask) = parameters_of(config), source()
    params["layer_1_forward"] = jax.tree.map(jnp.zeros_like, params["layer_1_forward"])
    found = compiled(config)(params, embedded, mask, Call(True, jax.random.key(3)))
    single = compiled(Encoder("gru", D, 1, "forward"))(
        {"layer_0_forward": params["layer_0_forward"]}, embedded, mask
    )
    np.testing.assert_allclose(found.annotations, single.annotations, atol=1e-6)


def test_bidirectional_layers_are_the_lowest():
    config = CONFIGS["mixed"]
    assert [config.readings(layer) for layer in range(3)] == [
        ("forward", "backward"), ("forward",), ("forward",)
    ]  # fmt: skip
    assert build(config, E).output_dim == D
    assert build(config, E).parameters["layer_1_forward"]["input"].shape == (2 * D, 3 * D)


def test_recurrent_dropout_drops_the_same_units_at_all_steps():
    config = Encoder("gru", D, 1, "forward", recurrent_dropout=0.5)
    params, (embedded, mask), rng = parameters_of(config), source(), jax.random.key(3)
    found = compiled(config)(params, embedded, mask, Call(True, rng))
    weights = params["layer_0_forward"]
    projected = embedded @ weights["input"] + weights["bias"]
    keep = dropout_factors(Call(True, rng).fold(1), 0.5, (B, D), jnp.float32)
    expected, _ = run_cell(CELLS["gru"], weights, projected, mask, keep=keep)
    np.testing.assert_allclose(found.annotations, expected, rtol=1e-5, atol=1e-6)
    assert 0 < float((keep == 0).mean()) < 1 and set(np.unique(keep)) == {0.0, 2.0}


@pytest.mark.parametrize("field", ["dropout", "recurrent_dropout"])
def test_dropout_needs_training_and_a_key(field):
    config = Encoder("gru", D, 2, "forward", **{field: 0.5})
    params, (embedded, mask) = parameters_of(config), source()
    plain = compiled(Encoder("gru", D, 2, "forward"))(params, embedded, mask)
    assert_close(compiled(config)(params, embedded, mask), plain)
    runs = [compiled(config)(params, embedded, mask, Call(True, jax.random.key(k))) for k in (0, 1)]
    assert not np.allclose(runs[0].annotations, plain.annotations)
    assert not np.allclose(runs[0].annotations, runs[1].annotations)
    with pytest.raises(ValueError, match="rng: expected a key"):
        compiled(config)(params, embedded, mask, Call(True))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (dict(dropout=0.1), "dropout: expected more than one layer"),
        (dict(residual=True), "residual: expected more than one layer"),
        (dict(direction="forward", num_layers=2, bidirectional_layers=1), "bidirectional_layers"),
        (dict(num_layers=2, bidirectional_layers=2), "bidirectional_layers: expected fewer than"),
        (
            dict(num_layers=2, bidirectional_layers=1, residual=True, hidden_dim=4),
            r"residual: expected a layer as deep as the one below it, found depths \[8, 4\]",
        ),
    ],
)
def test_fields_that_would_change_nothing_are_rejected(fields, message):
    with pytest.raises(ValueError, match=message):
        Encoder(**fields)
