"""Encoder-decoders with several sources: every combination with decoders of each kind."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.decoding.searcher import Searcher
from attention_jax.errors import ConfigError
from attention_jax.models import MODELS, build_model
from attention_jax.objectives import build_objective
from attention_jax.search import SearchConfig
from attention_jax.types import Call, SpecialIds
from tests.parameters import drawn
from tests.quick import quick_jit

V, D = 9, 8
LENGTHS = {"source": np.array([5, 1, 3]), "fr": np.array([2, 4, 1]), "target": np.array([4, 1, 2])}
FRAME_DIM = 3
HEADS = {"name": "multi_head", "num_heads": 2, "head_dim": 4}
ADDITIVE = {"name": "bahdanau", "attention_dim": D}
RECURRENT = {"name": "recurrent", "hidden_dim": D, "direction": "forward"}
LUONG = {"name": "luong", "hidden_dim": D, "attentional_dim": D}
STACK = {"num_layers": 2, "feed_forward_dim": D}
CASES = {
    "concatenated": ({"score": ADDITIVE}, LUONG),
    "flat": ({"score": ADDITIVE}, {"name": "conditional_gru", "hidden_dim": D, "readout_dim": D}),
    "hierarchical": (
        {"score": {"name": "coverage_vector", "attention_dim": D}, "over": ADDITIVE}, LUONG
    ),
    "serial": ({"score": HEADS}, {"name": "transformer", **STACK}),
    "parallel": ({"score": HEADS}, {"name": "transformer", **STACK, "alignment_head": 1}),
}  # fmt: skip


def token_source(encoder=RECURRENT):
    return {"input": {"name": "tokens", "embedding_dim": D}, "encoder": encoder}


def build(name, second=None, first=None, **fields):
    attention, decoder = CASES[name]
    values = {
        "target_embedding_dim": D,
        "sources": {"source": first or token_source(), "fr": second or token_source()},
        "attention": {"name": name, **attention},
        "decoder": {"bridge": "mean", **decoder} if decoder["name"] != "transformer" else decoder,
        **fields,
    }
    return build_model(typed(MODELS.config("encoder_decoder"), values, "config.model"), V, V)


@functools.cache
def started(name):
    model = build(name)
    return model, drawn(model, 1), quick_jit(model.apply)


def batch():
    rng, found = np.random.default_rng(0), {}
    for name, lengths in LENGTHS.items():
        place = np.arange(lengths.max())
        mask = place < lengths[:, None]
        tokens = rng.integers(SpecialIds.COUNT, V, size=mask.shape)
        tokens = np.where(place == lengths[:, None] - 1, SpecialIds.EOS, tokens) * mask
        found |= {name: jnp.asarray(tokens, jnp.int32), f"{name}_mask": jnp.asarray(mask)}
    links = rng.random((3, 4, 5)) < 0.5
    real = np.asarray(found["target_mask"])[..., None] & np.asarray(found["source_mask"])[:, None]
    return {**found, "links": jnp.asarray(links & real)}


def alone(given, row):
    sizes = {name: lengths[row] for name, lengths in LENGTHS.items()}
    one = slice(row, row + 1)
    found = {
        name: array[one, : sizes[name.removesuffix("_mask")]]
        for name, array in given.items()
        if name != "links"
    }
    return {**found, "links": given["links"][one, : sizes["target"], : sizes["source"]]}


every_case = pytest.mark.parametrize("name", CASES)


@every_case
def test_a_row_alone_equals_the_row_in_its_batch(name):
    _, params, apply = started(name)
    given = batch()
    together = apply(params, given)
    for row in (1, 2) if name == "flat" else (1,):
        found, size = apply(params, alone(given, row)), LENGTHS["target"][row]
        for one, other in zip(
            found.predictions.scores(), together.predictions.scores(), strict=True
        ):
            np.testing.assert_allclose(one[0], other[row, :size], rtol=1e-4, atol=1e-5)
        for key, source in (("weights", "source"), ("fr/weights", "fr")):
            both = [
                each.attention.weights if key == "weights" else each.attention.aux[key]
                for each in (found, together)
            ]
            length = LENGTHS[source][row]
            expected = both[1][row, :size]
            np.testing.assert_allclose(both[0][0], expected[:, :length], rtol=1e-4, atol=1e-5)
            assert not np.asarray(expected[:, length:]).any()


@every_case
def test_alignment_and_slots_are_of_the_first_source(name):
    model, params, apply = started(name)
    assert "alignment" in model.provides and "slot_for_each_token" not in model.provides
    given = batch()
    output = apply(params, given)
    assert output.attention.weights.shape == (3, 4, 5)
    np.testing.assert_array_equal(output.outputs["slots"].mask, given["source_mask"])
    np.testing.assert_array_equal(output.outputs["slots/fr"].mask, given["fr_mask"])
    found = output.outputs["attention/fr"]
    assert found.shape == (3, 4, LENGTHS["fr"].max())
    np.testing.assert_array_equal(found, output.attention.aux["fr/weights"])


@every_case
def test_every_source_matters_and_every_parameter_learns(name):
    model, params, apply = started(name)
    given = batch()
    scores = apply(params, given).predictions.scores()[0]
    for source in ("source", "fr"):
        other = given[source].at[:, 0].set(4 + (given[source][:, 0] + 1) % 4)
        changed = apply(params, {**given, source: other}).predictions.scores()[0]
        assert (np.abs(np.asarray(changed - scores)).max((1, 2))[:1] > 1e-4).all(), source

    def loss(params):
        output = model.apply(params, given, Call())
        return output.predictions.log_prob(given["target"])[given["target_mask"]].sum()

    if name in ("flat", "hierarchical", "serial"):
        for path, leaf in jax.tree.leaves_with_path(quick_jit(jax.grad(loss))(params)):
            assert np.abs(leaf).max() > 0, jax.tree_util.keystr(path)


@pytest.mark.parametrize("name", ["concatenated", "parallel"])
def test_objectives_and_searches_read_the_first_source(name):
    model, params, apply = started(name)
    given = batch()
    objective = build_objective({"nll": {}, "coverage_penalty": {}, "supervised_alignment": {}})
    objective.check(model)
    output = apply(params, given)
    for term in objective.terms.values():
        assert 0 < abs(float(term.total(output, given))) < 1e3
    search = SearchConfig(method="beam", beam_size=2, coverage_penalty="gnmt", min_length_ratio=0.5)
    fields = {key: given[key] for key in ("source", "source_mask", "fr", "fr_mask")}
    searcher = Searcher(model, search)
    found = searcher.search(params, fields, jax.random.key(0))
    one = {key: value for key, value in alone(given, 2).items() if key in fields}
    again = searcher.search(params, one, jax.random.key(0))
    length, size = int(again.lengths[0, 0]), LENGTHS["source"][2]
    assert length == found.lengths[2, 0]
    np.testing.assert_array_equal(again.tokens[0, 0, :length], found.tokens[2, 0, :length])
    np.testing.assert_allclose(
        again.weights[0, 0, :length, :size], found.weights[2, 0, :length, :size],
        rtol=1e-4, atol=1e-5,
    )  # fmt: skip


def test_an_empty_source_changes_nothing_whatever_it_holds():
    for name in ("flat", "parallel"):
        _, params, apply = started(name)
        given = batch()
        given["fr_mask"] = given["fr_mask"].at[1].set(False)
        scores = apply(params, given).predictions.scores()[0]
        other = apply(params, {**given, "fr": given["fr"].at[1].set(5)}).predictions.scores()[0]
        np.testing.assert_array_equal(scores[1], other[1])
        assert np.isfinite(np.asarray(scores)).all()


def test_text_and_frames_go_together():
    """Sources of different kinds, with slots that are merged or not."""
    frames = {"input": {"name": "frames", "frame_dim": FRAME_DIM, "embedding_dim": D}}
    model = build("flat", second={**frames, "encoder": RECURRENT})
    given = batch()
    values = np.random.default_rng(0).normal(size=(*given["fr"].shape, FRAME_DIM))
    given["fr"] = jnp.asarray(values, jnp.float32)
    params, apply = drawn(model, 1), quick_jit(model.apply)
    output = apply(params, given)
    moved = apply(params, {**given, "fr": given["fr"] + 1.0})
    assert output.outputs["attention/fr"].shape[-1] == given["fr"].shape[1]
    difference = output.predictions.scores()[0] - moved.predictions.scores()[0]
    assert np.abs(np.asarray(difference)).max() > 1e-4


def test_one_mechanism_for_several_sources_is_refused():
    values = {
        "sources": {"source": token_source(), "fr": token_source()}, "attention": ADDITIVE,
        "decoder": {**LUONG, "bridge": "mean"}, "target_embedding_dim": D,
    }  # fmt: skip
    config = typed(MODELS.config("encoder_decoder"), values, "config.model")
    with pytest.raises(ConfigError, match="attends to several sources for source, fr, found"):
        build_model(config, V, V)
