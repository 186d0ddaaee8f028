"""Two models of opposite directions as one."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.errors import ConfigError
from attention_jax.models import MODELS, build_model
from attention_jax.objectives import build_objective
from attention_jax.types import BidirectionalModel, Call, Model, swap_sides
from tests.parameters import drawn
from tests.sources import in_source

B, S, T = 3, 5, 4
SOURCES, TARGETS = 9, 11
FIELDS = {
    "target_embedding_dim": 5,
    "sources": {
        "source": {
            "input": {"name": "tokens", "embedding_dim": 4},
            "encoder": {"hidden_dim": 3},
        }
    },
    "attention": {"name": "bahdanau", "attention_dim": 5},
    "decoder": {"name": "bahdanau", "hidden_dim": 6, "readout_dim": 5},
    "initialization": {"name": "uniform", "scale": 0.5},
}
DECODERS = {
    "bahdanau": {"readout_dim": 5},
    "conditional_gru": {"readout_dim": 5},
    "luong": {"attentional_dim": 5},
}
OBJECTIVES = {"nll": {}, "reverse_nll": {}, "bilingual_symmetry": {}}


def build(name="bidirectional", sizes=(SOURCES, TARGETS), **fields):
    values = {**FIELDS, **in_source(fields)}
    return build_model(typed(MODELS.config(name), values, "config.model"), *sizes)


@functools.cache
def started():
    model = build()
    return model, drawn(model, 1)


def batch():
    rng = np.random.default_rng(0)
    masks = {"source": (5, 3, 0), "target": (2, 4, 0)}
    return {
        name: value
        for side, size, vocabulary in (("source", S, SOURCES), ("target", T, TARGETS))
        for name, value in (
            (side, jnp.asarray(rng.integers(4, vocabulary, (B, size)), jnp.int32)),
            (f"{side}_mask", jnp.arange(size) < jnp.asarray(masks[side])[:, None]),
        )
    }


def assert_equal(found, expected):
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_apply_is_that_of_both_models_and_search_that_of_the_forward_one():
    model, params = started()
    assert isinstance(model, Model) and isinstance(model, BidirectionalModel)
    single = build("encoder_decoder")
    assert isinstance(single, Model) and not isinstance(single, BidirectionalModel)
    output = jax.jit(model.apply)(params, batch())
    forward = jax.jit(single.apply)(params["forward"], batch())
    assert_equal(
        (output.predictions.logits, output.attention),
        (forward.predictions.logits, forward.attention),
    )
    other = build("encoder_decoder", (TARGETS, SOURCES))
    assert_equal(
        output.outputs["reverse"], jax.jit(other.apply)(params["reverse"], swap_sides(batch()))
    )
    assert output.predictions.logits.shape == (
        B,
        T,
        TARGETS,
    ) and output.attention.weights.shape == (B, T, S)
    assert output.outputs["reverse"].predictions.logits.shape == (B, S, SOURCES)
    assert output.outputs["reverse"].attention.weights.shape == (B, S, T)

    sources = {name: batch()[name] for name in ("source", "source_mask")}
    begun, expected = (
        jax.jit(one.start, static_argnums=2)(its, sources, T)
        for one, its in ((model, params), (single, params["forward"]))
    )
    assert_equal(begun, expected)
    tokens = jnp.ones((B, 1), jnp.int32)
    assert_equal(
        jax.jit(model.step)(params, *begun, tokens),
        jax.jit(single.step)(params["forward"], *begun, tokens),
    )


def test_models_start_apart_and_drop_apart():
    model = build(sizes=(9, 9), target_embedding_dim=4, embedding_dropout=0.5)
    params = jax.jit(model.init)(jax.random.key(0))
    same = jax.tree.map(lambda a, b: bool((a == b).all()) and a.std() > 0, *params.values())
    assert not any(jax.tree.leaves(same))
    twins = {"forward": params["forward"], "reverse": params["forward"]}
    pairs = {**batch(), "target": batch()["source"], "target_mask": batch()["source_mask"]}
    apply = jax.jit(model.apply)
    for train in (False, True):
        output = apply(twins, pairs, Call(train, jax.random.key(0)))
        assert (
            np.abs(output.predictions.logits - output.outputs["reverse"].predictions.logits).max()
            > 1e-3
        ) == train


@pytest.mark.parametrize(
    ("decoder", "reading"), [*((name, "forward") for name in DECODERS), ("luong", "backward")]
)
def test_row_and_column_of_a_number_are_the_same_token(decoder, reading):
    """A prediction knows the tokens before its own; a column, those read up to its own.

    With an encoder of one direction and a decoder that starts from zero, the scores of the first
    row tell where a token has been read, whichever end is read first. Bahdanau's decoder attends
    with a state that does not know the last token yet.
    """
    model = build(
        input={"embedding_dim": 4},
        encoder={"hidden_dim": 3, "direction": reading},
        decoder={"name": decoder, "hidden_dim": 6, "bridge": "zero", **DECODERS[decoder]},
    )
    apply = jax.jit(model.apply)
    params = drawn(model, 2)
    pairs = {name: jnp.ones_like(value) if "mask" in name else value
             for name, value in batch().items()}  # fmt: skip

    def outputs(pairs):
        output = apply(params, pairs)
        return {"target": output, "source": output.outputs["reverse"]}

    before = outputs(pairs)
    for side, other, size in (("target", "source", T), ("source", "target", S)):
        for place in range(size):
            after = outputs({**pairs, side: pairs[side].at[:, place].set(3)})
            pair = before[side], after[side]
            predicted = _changed(*(output.predictions.logits for output in pair), axis=1)
            asked = _changed(*(output.attention.weights for output in pair), axis=1)
            assert predicted == list(range(place + 1, size))
            assert asked == predicted[decoder == "bahdanau" :]
            pair = before[other], after[other]
            read = _changed(*(output.attention.scores[:, :1] for output in pair), axis=2)
            places = range(place, size) if reading == "forward" else range(place + 1)
            assert read == list(places)


def _changed(before, after, axis):
    """Lists the places along an axis where two arrays differ."""
    differs = np.abs(before - after) > 1e-6
    return np.flatnonzero(differs.any(tuple({0, 1, 2} - {axis}))).tolist()


def test_symmetry_teaches_both_models():
    model, params = started()
    term = build_objective(OBJECTIVES).terms["bilingual_symmetry"]
    gradient = jax.jit(jax.grad(lambda p: term.total(model.apply(p, batch()), batch())))(params)
    for direction in ("forward", "reverse"):
        paths = jax.tree_util.tree_leaves_with_path(gradient[direction])
        still = {jax.tree_util.keystr(path) for path, leaf in paths if not np.abs(leaf).max()}
        # What only writes words, after all attention has been paid.
        assert all("readout" in name or "output" in name for name in still), still
        assert len(still) < len(paths)


def test_what_stands_at_padding_changes_no_loss_and_no_gradient():
    model, params = started()
    objective = build_objective(OBJECTIVES)

    @jax.jit
    def loss(params, pairs):
        return jax.value_and_grad(lambda p: objective(model.apply(p, pairs), pairs)[0])(params)

    pairs = batch()
    expected = loss(params, pairs)
    for side in ("source", "target"):
        other = jnp.where(pairs[f"{side}_mask"], pairs[side], 3)
        assert np.any(other != pairs[side])
        assert_equal(loss(params, {**pairs, side: other}), expected)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(expected))


def test_parts_that_do_not_fit_are_named_as_in_one_model():
    with pytest.raises(ConfigError, match="config.model.tie_embeddings: expected a joint vocab"):
        build(tie_embeddings="all")
