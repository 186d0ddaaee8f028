"""Hard attention in a model: what a search reads is what known targets read, beam by beam."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.decoding.searcher import Searcher
from attention_jax.models import MODELS, build_model
from attention_jax.search import SearchConfig
from attention_jax.types import Call
from tests.parameters import drawn
from tests.quick import quick_jit

V, D = 9, 6
LENGTHS = np.asarray([5, 2, 4])
BATCH = {
    "source": jnp.asarray(np.random.default_rng(0).integers(4, V, (3, 5)), jnp.int32),
    "source_mask": jnp.arange(5) < LENGTHS[:, None],
}


@functools.cache
def model_of(at_test, decoder="luong"):
    fields = {"input_feeding": False, "attentional_dim": D} if decoder == "luong" else {
        "readout_dim": D}  # fmt: skip
    values = {
        "target_embedding_dim": D,
        "sources": {"source": {"input": {"name": "tokens", "embedding_dim": D},
                               "encoder": {"hidden_dim": D}}},
        "attention": {"name": "gated", "score": {
            "name": "hard", "score": {"name": "bahdanau", "attention_dim": D},
            "estimator": {"name": "reinforce", "expectation_share": 0.0},
            "at_test": {"name": at_test},
        }},
        "decoder": {"name": decoder, "hidden_dim": D, "bridge": "mean", **fields},
        "predictors": {"baseline": {"hidden_dim": 3}},
    }  # fmt: skip
    model = build_model(typed(MODELS.config("encoder_decoder"), values, "config.model"), V, V)
    return model, drawn(model, 1, scale=0.8)


@pytest.mark.parametrize(
    ("at_test", "method"),
    [("sample", "beam"), ("argmax", "greedy"), ("sample", "sample"), ("expectation", "beam")],
)
def test_hypotheses_are_as_likely_as_when_they_are_known(at_test, method):
    """A state follows its hypothesis: its words, read again as known targets, score the same."""
    model, params = model_of(at_test)
    config = SearchConfig(method=method, beam_size=3, max_length_factor=0.0, max_length_constant=4)
    found = Searcher(model, config).search(params, BATCH, jax.random.key(5))
    apply = quick_jit(model.apply)
    for beam in range(found.tokens.shape[1]):
        tokens, lengths = found.tokens[:, beam], found.lengths[:, beam]
        mask = jnp.arange(tokens.shape[1]) < lengths[:, None]
        batch = {**BATCH, "target": jnp.where(mask, tokens, 0), "target_mask": mask}
        output = apply(params, batch)
        log_probs = jnp.where(mask, output.predictions.log_prob(batch["target"]), 0.0).sum(-1)
        np.testing.assert_allclose(found.log_probs[:, beam], log_probs, rtol=1e-4, atol=1e-4)
        if at_test != "expectation":
            read = np.asarray(output.attention.aux["read"])  # what the gate left of one slot
            assert np.all((read > 0).sum(-1) == 1)
        weights = jnp.where(mask[..., None], output.attention.weights, 0.0)
        shown = np.where(mask[..., None], found.weights[:, beam], 0)
        np.testing.assert_allclose(shown, weights, rtol=1e-4, atol=1e-5)


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
