"""A row alone equals the same row in a padded batch, in every part that is found by name.

What is padded is also what an encoder may merge, average or attend to by mistake. The shortest row
is of one token.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.decoding.searcher import Searcher
from attention_jax.layers.decoder import DECODERS
from attention_jax.layers.encoder import ENCODERS
from attention_jax.layers.input import INPUTS
from attention_jax.layers.predictor import PREDICTORS
from attention_jax.layers.readout import READOUTS
from attention_jax.models import MODELS, build_model
from attention_jax.objectives import build_objective
from attention_jax.objectives.compose import OBJECTIVES
from attention_jax.objectives.term import fields_of, needs_of
from attention_jax.search import SearchConfig
from attention_jax.types import SpecialIds
from tests.conformance.battery import inputs, one_case_each
from tests.input_fields import zero_fields
from tests.models.test_encoders_with_decoders import D, V, build, small, with_readout
from tests.parameters import drawn
from tests.pyramid import pyramid_in
from tests.quick import quick_jit
from tests.sources import in_source

LENGTHS, TARGET_LENGTHS = np.array([5, 1, 3]), np.array([4, 1, 2])
TAG_COUNTS = np.array([2, 1, 3])
ALONE = (1, 2)  # the rows that the first one pads
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}
FRAME_DIM = 2
X = 2  # ids beyond the vocabulary


def batch():
    rng = np.random.default_rng(0)
    sides = {}
    for name, lengths in (("source", LENGTHS), ("target", TARGET_LENGTHS), ("tags", TAG_COUNTS)):
        place = np.arange(lengths.max())
        mask = place < lengths[:, None]
        tokens = rng.integers(SpecialIds.COUNT, V, size=mask.shape)
        tokens = np.where(place == lengths[:, None] - 1, SpecialIds.EOS, tokens) * mask
        sides |= {name: jnp.asarray(tokens, jnp.int32), f"{name}_mask": jnp.asarray(mask)}
    links = rng.random((3, 4, 5)) < 0.5
    real = np.asarray(sides["target_mask"])[..., None] & np.asarray(sides["source_mask"])[:, None]
    ids, probs = rng.integers(V, size=(3, 5, 2)), rng.random((3, 5, 2)) / 2
    lexicon = {"lexicon": jnp.asarray(ids, jnp.int32), "lexicon_probs": jnp.asarray(probs, float)}
    # What could be copied: words of the vocabulary, and one beyond it that a source has twice.
    words = np.where(np.asarray(sides["source"]) >= SpecialIds.COUNT, sides["source"], 0)
    words[0, 1] = words[0, 2] = V
    unknown = np.arange(X) < np.asarray([1, 0, 0])[:, None]
    copied = {"extended_source": jnp.asarray(words), "unknown_words": jnp.asarray(unknown)}
    return {**sides, **lexicon, **copied, "links": jnp.asarray(links & real)}


def alone(batch, row):
    """Returns a batch of one row, without its padding."""
    source, target = LENGTHS[row], TARGET_LENGTHS[row]
    sizes = {"source": (source,), "target": (target,), "links": (target, source)}
    sizes |= {"tags": (TAG_COUNTS[row],), "lexicon": (source,), "lexicon_probs": (source,)}
    sizes |= {"extended_source": (source,), "unknown_words": (X,)}
    return {
        name: array[(slice(row, row + 1), *map(slice, sizes[name.removesuffix("_mask")]))]
        for name, array in batch.items()
    }


def compare(model, given):
    """Compares the predictions and the attention of rows with those of each by itself."""
    params, apply = drawn(model, 1), quick_jit(model.apply)
    together = apply(params, given)
    for row in ALONE:
        found, size = apply(params, alone(given, row)), TARGET_LENGTHS[row]
        scores = found.predictions.scores(), together.predictions.scores()
        for one, other in zip(*scores, strict=True):
            np.testing.assert_allclose(one[0], other[row, :size], **TOLERANCE)
        slots = found.attention.weights.shape[-1]
        weights = together.attention.weights[row, :size]
        np.testing.assert_allclose(found.attention.weights[0], weights[:, :slots], **TOLERANCE)
        assert not weights[:, slots:].any()


@pytest.mark.parametrize("name", ENCODERS.names())
def test_encoder(name):
    compare(build(name, "conditional_gru"), batch())


def test_encoder_that_halves_the_slots(tmp_path):
    with pyramid_in(tmp_path):
        compare(build("halving", "conditional_gru"), batch())


@pytest.mark.parametrize("name", DECODERS.names())
def test_decoder(name):
    compare(build("concatenation", name), batch())


@pytest.mark.parametrize("name", READOUTS.names())
def test_readout(name):
    compare(with_readout(name), batch())


@pytest.mark.parametrize("name", INPUTS.names())
def test_input(name):
    given, config = batch(), INPUTS.config(name)
    sizes = {"embedding_dim": D, "frame_dim": FRAME_DIM}
    fields = {**small(config), **{key: sizes[key] for key in sizes if hasattr(config, key)}}
    encoder = {"name": "concatenation"}
    model = build("concatenation", "luong", input=fields, encoder=encoder)
    example = zero_fields(model.sources[0].input, *given["source"].shape)["source"]
    if jnp.issubdtype(example.dtype, jnp.floating):
        values = np.random.default_rng(0).normal(size=example.shape)
        given["source"] = jnp.asarray(values, jnp.float32)
    compare(model, given)


@one_case_each
def test_mechanism(case):
    query, keys, values, _ = inputs()
    mask = jnp.arange(keys.shape[1]) < jnp.asarray(LENGTHS)[:, None]
    attend = quick_jit(case.attend)
    together = attend(case.params, query, keys, values, mask)
    for row in ALONE:
        one, size = slice(row, row + 1), LENGTHS[row]
        memory = (array[one, :size] for array in (keys, values, mask))
        found = attend(case.params, query[one], *memory)
        np.testing.assert_allclose(found.context[0], together.context[row], **TOLERANCE)
        weights = together.weights[row]
        np.testing.assert_allclose(found.weights[0], weights[..., :size], **TOLERANCE)
        assert not weights[..., size:].any()


@functools.cache
def searched():
    model = build("recurrent", "luong")
    return model, drawn(model, 1)


@pytest.mark.parametrize("method", SearchConfig.__dataclass_fields__["method"].metadata["choices"])
def test_search(method):
    """Of a sample, the most probable token alone, for what is drawn depends on the batch."""
    model, params = searched()
    penalty = "none" if method == "greedy" else "gnmt"
    config = SearchConfig(
        method=method, beam_size=2, top_k=1, coverage_penalty=penalty, min_length_ratio=0.5
    )
    searcher, given = Searcher(model, config), batch()
    fields, key = ("source", "source_mask"), jax.random.key(0)
    together = searcher.search(params, {name: given[name] for name in fields}, key)
    for row in ALONE:
        one = alone(given, row)
        found = searcher.search(params, {name: one[name] for name in fields}, key)
        length, size = int(found.lengths[0, 0]), LENGTHS[row]
        assert length == together.lengths[row, 0]
        np.testing.assert_array_equal(
            found.tokens[0, 0, :length], together.tokens[row, 0, :length]
        )
        np.testing.assert_allclose(found.scores[0, 0], together.scores[row, 0], **TOLERANCE)
        weights = together.weights[row, 0, :length]
        np.testing.assert_allclose(
            found.weights[0, 0, :length], weights[:, :size], **TOLERANCE
        )
        assert not weights[:, size:].any()


@functools.cache
def objective_case(kind):
    """A model that provides what an objective needs, and its outputs for the rows."""
    fields = {
        "plain": {"predictors": {name: {} for name in PREDICTORS.names()}},
        "reverse": {"name": "bidirectional"},
        "pointer": {"readout": {"name": "pointer_sentinel", "window": 2}},
        "coverage": {
            "attention": {"name": "coverage_embedding", "attention_dim": D, "coverage_dim": 2}
        },
        "sample_log_prob": {
            "attention": {
                "name": "hard",
                "score": {"name": "bahdanau", "attention_dim": D},
                "at_test": {"name": "sample"},
            }
        },
    }[kind]
    values = {
        "name": "encoder_decoder",
        "target_embedding_dim": D,
        "attention": {"name": "bahdanau", "attention_dim": D},
        "decoder": {"name": "luong", "hidden_dim": D, "attentional_dim": D, "bridge": "mean"},
        **in_source({"input": {"embedding_dim": D}, "encoder": {"hidden_dim": D}}),
        **fields,
    }
    model = build_model(typed(MODELS.config(values["name"]), values, "config.model"), V, V)
    params, apply = drawn(model, 1), quick_jit(model.apply)
    given = batch()
    rows = {row: apply(params, alone(given, row)) for row in ALONE}
    return model, apply(params, given), rows


def term_and_kind(name):
    """Returns an objective with its defaults, and the kind of model that has what it needs."""
    (term,) = build_objective({name: {}}).terms.values()
    kinds = ("selection", "reverse", "coverage", "sample_log_prob", "pointer")
    return term, next((kind for kind in kinds if kind in needs_of(term)), "plain")


@pytest.mark.parametrize("name", OBJECTIVES.names())
def test_objective(name):
    term, kind = term_and_kind(name)
    given = batch()
    if kind == "selection" or not fields_of(term) <= set(given):
        return  # of documents, in tests/models/test_rationalizer.py; or of fields of its own
    model, together, rows = objective_case(kind)
    missing = set(needs_of(term)) - set(model.provides)
    assert not missing, f"no model here provides what it `needs`: {', '.join(sorted(missing))}"
    for row in ALONE:
        is_row = jnp.arange(3)[:, None] == row
        masks = {side: given[side] & is_row for side in ("source_mask", "target_mask")}
        expected = term.total(rows[row], alone(given, row))
        np.testing.assert_allclose(term.total(together, {**given, **masks}), expected, **TOLERANCE)
        count = term.count(alone(given, row))
        np.testing.assert_array_equal(term.count({**given, **masks}), count)
