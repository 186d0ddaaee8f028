"""Hard attention in a model: what a search reads is what known targets read, beam by beam."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.decoding.prefixes import PREFIX
from attention_jax.decoding.searcher import Searcher
from attention_jax.models import MODELS, build_model
from attention_jax.ops.step_pointer import STEP
from attention_jax.search import SearchConfig
from attention_jax.types import Call, SpecialIds
from tests.parameters import drawn
from tests.quick import quick_jit
from tests.teacher_forcing import rescored

V, D = 9, 6
LENGTHS = np.asarray([5, 2, 4])
BATCH = {
    "source": jnp.asarray(np.random.default_rng(0).integers(4, V, (3, 5)), jnp.int32),
    "source_mask": jnp.arange(5) < LENGTHS[:, None],
}
ADDITIVE = {"name": "bahdanau", "attention_dim": D}
STOPPING = {"score": ADDITIVE, "initial_bias": -1.0}
MONOTONIC = {
    "monotonic": {"name": "monotonic", **STOPPING},
    "mocha": {"name": "mocha", "chunk_score": ADDITIVE, **STOPPING},
    "step_pointer": {"name": "step_pointer"},
}
# Seed and scale of parameters whose hypotheses read on at different times, and r or the bias that
# STEPs get.
MOVING = {"monotonic": (21, 2.0, -0.3), "mocha": (5, 1.5, -1.0), "step_pointer": (1, 0.8, 2.0)}


def gated(at_test):
    """Attention to one slot, drawn or the best, of which a gate leaves some."""
    estimator = {"name": "reinforce", "expectation_share": 0.0}
    hard = {"name": "hard", "score": ADDITIVE, "estimator": estimator, "at_test": {"name": at_test}}
    return {"name": "gated", "score": hard}


def built(attention, size=V, **fields):
    """A model of a vocabulary, and its parameters."""
    values = {
        "target_embedding_dim": D,
        "sources": {"source": {"input": {"name": "tokens", "embedding_dim": D},
                               "encoder": {"hidden_dim": D}}},
        "attention": attention,
        "decoder": {"name": "luong", "hidden_dim": D, "bridge": "mean", "input_feeding": False,
                    "attentional_dim": D},
        **fields,
    }  # fmt: skip
    model = build_model(typed(MODELS.config("encoder_decoder"), values, "config.model"), size, size)
    return model, drawn(model, 1, scale=0.8)


@functools.cache
def model_of(at_test):
    return built(gated(at_test), predictors={"baseline": {"hidden_dim": 3}})


@pytest.mark.parametrize(
    ("at_test", "method"),
    [("sample", "beam"), ("argmax", "greedy"), ("sample", "sample"), ("expectation", "beam")],
)
def test_hypotheses_are_as_likely_as_when_they_are_known(at_test, method):
    """A state follows its hypothesis: its words, read again as known targets, score the same."""
    model, params = model_of(at_test)
    config = SearchConfig(method=method, beam_size=3, max_length_factor=0.0, max_length_constant=4)
    _, output = compare_with_known(model, params, config)
    if at_test != "expectation":
        read = np.asarray(output.attention.aux["read"])  # what the gate left of one slot
        assert np.all((read > 0).sum(-1) == 1)


def compare_with_known(model, params, config, **further):
    """Compares hypotheses and their attention with those of known targets.

    Returns:
      (the hypotheses, the model's output for the last ones of all rows).
    """
    given = {**BATCH, **further}
    found = Searcher(model, config).search(params, given, jax.random.key(5))
    apply = quick_jit(model.apply)
    for rank in range(found.tokens.shape[1]):
        log_probs, output, mask = rescored(apply, params, BATCH, found, rank)
        exists = np.asarray(found.lengths)[:, rank] > 0
        np.testing.assert_allclose(
            found.log_probs[exists, rank], log_probs[exists], rtol=1e-4, atol=1e-4
        )
        weights = jnp.where(mask[..., None], output.attention.weights, 0.0)
        shown = np.where(mask[..., None], found.weights[:, rank], 0)
        np.testing.assert_allclose(shown, weights, rtol=1e-4, atol=1e-5)
    return found, output


@pytest.mark.parametrize("name", MONOTONIC)
def test_where_reading_stands_follows_its_hypothesis(name):
    """Hypotheses of one source have come to different slots, each to that of its own words."""
    seed, scale, change = MOVING[name]
    model, _ = built(MONOTONIC[name])
    params = drawn(model, seed, scale)
    if name == "step_pointer":
        params["output_bias"] = params["output_bias"].at[STEP].add(change)
    else:
        params["decoder"]["attention"]["stop_bias"] = jnp.float32(change)
    config = SearchConfig(
        beam_size=5, num_hypotheses=5, max_length_factor=0.0, max_length_constant=6,
        min_length_ratio=0.6, length_normalization="none",
    )  # fmt: skip
    found, _ = compare_with_known(model, params, config)
    # How far each hypothesis of the first row has read: the last slot with any weight.
    slots = np.arange(found.weights.shape[-1])
    reached = np.where(np.asarray(found.weights)[0].any(1), slots, -1).max(-1)
    assert len(set(reached[np.asarray(found.lengths)[0] > 0].tolist())) > 1


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
@pytest.mark.parametrize("name", MONOTONIC)
def test_reading_goes_on_while_words_are_forced(name, method):
    """A STEP among them moves the pointer."""
    model, params = built(MONOTONIC[name])
    config = SearchConfig(
        method=method, beam_size=3, max_length_factor=0.0, max_length_constant=7,
        min_length_ratio=0.6, length_normalization="none",
    )  # fmt: skip
    prefix = np.asarray([[7, STEP, 5, STEP], [5, 0, 0, 0], [0, 0, 0, 0]], np.int32)
    found, _ = compare_with_known(model, params, config, **{PREFIX.name: jnp.asarray(prefix)})
    for row, length in enumerate((4, 1, 0)):
        assert found.tokens[row, 0, :length].tolist() == prefix[row, :length].tolist()
    if name == "step_pointer":
        read = np.asarray(found.weights)[0, 0, :5].argmax(-1)
        assert read.tolist() == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("name", MONOTONIC)
def test_a_beam_of_full_width_equals_brute_force(name):
    """Of all outputs of up to three tokens and EOS; none has a STEP from the last slot."""
    size, longest, source = STEP + 2, 4, BATCH["source"][:1, :3] % 2 + STEP
    model, params = built(MONOTONIC[name], size)
    given = {"source": source, "source_mask": jnp.ones((1, 3), bool)}
    words = range(SpecialIds.UNK, size)
    outputs = [
        [*prefix, SpecialIds.EOS]
        for length in range(longest)
        for prefix in itertools.product(words, repeat=length)
        if name != "step_pointer" or prefix.count(STEP) < source.shape[1]
    ]
    target = np.zeros((len(outputs), longest), np.int32)
    for row, output in enumerate(outputs):
        target[row, : len(output)] = output
    given_all = {side: jnp.repeat(array, len(outputs), axis=0) for side, array in given.items()}
    known = {"target": jnp.asarray(target), "target_mask": jnp.asarray(target > 0)}
    predictions = quick_jit(model.apply)(params, {**given_all, **known}).predictions
    scores = np.where(target > 0, predictions.log_prob(known["target"]), 0).sum(-1)
    config = SearchConfig(
        beam_size=len(outputs), num_hypotheses=len(outputs), length_normalization="none",
        max_length_factor=0.0, max_length_constant=longest,
    )  # fmt: skip
    found = Searcher(model, config).search(params, given, jax.random.key(0))
    order = np.argsort(-scores, kind="stable")
    np.testing.assert_allclose(found.scores[0], scores[order], rtol=1e-4, atol=1e-4)
    tokens = np.asarray(found.tokens)[0, :, :longest].tolist()
    assert sorted(tokens) == sorted(target.tolist()) and tokens[0] == target[order[0]].tolist()


def test_attention_after_the_recurrence_reads_what_it_would_inside(rng):
    """Without feeding, Luong's decoder asks all queries at once, with the draws of each step."""
    model, params = model_of("argmax")
    decoder = model.decoder
    batch = {**BATCH, "target": BATCH["source"], "target_mask": BATCH["source_mask"]}
    embedded = jax.random.normal(rng, (3, 5, D))
    call = Call(True, rng)

    @quick_jit
    def both(params):
        sources, _ = model.module.apply({"params": params}, batch, method="_encode")
        weights = params["decoder"]
        start = decoder.start(weights, sources, 0)
        at_once = decoder.run(weights, *start, embedded, call=call)
        by_time = jnp.swapaxes(embedded, 0, 1)
        constants = (weights, start[0], decoder.dropout(call, 3, embedded.dtype))
        inside = decoder.recur(decoder.advance, constants, start[1], by_time, None, call)
        return at_once.attention, inside[1]["attention"]

    at_once, inside = both(params)
    for name in ("read", "sample_log_prob"):
        expected = jnp.swapaxes(inside.aux[name], 0, 1)
        np.testing.assert_allclose(at_once.aux[name], expected, rtol=1e-4, atol=1e-5)
    assert ((np.asarray(at_once.aux["read"]) > 0).sum(-1) == 1).all()
