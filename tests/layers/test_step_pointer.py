"""Hard monotonic attention in a decoder: each step reads the slot that the STEPs before it say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.decoding.searcher import Searcher
from attention_jax.errors import ConfigError
from attention_jax.layers.decoder import DECODERS
from attention_jax.ops.step_pointer import STEP
from attention_jax.runs.config import from_config_dict
from attention_jax.search import SearchConfig
from attention_jax.types import SpecialIds
from configs import aharoni2017, luong2015
from tests.models.test_encoders_with_decoders import build
from tests.quick import quick_jit

A, EOS = STEP + 1, SpecialIds.EOS
SOURCE = jnp.asarray([[4, 5, 6, EOS], [5, EOS, 0, 0]])
TARGET = jnp.asarray([[STEP, A, STEP, STEP, STEP, A, EOS], [A, STEP, STEP, A, EOS, 0, 0]])
POINTERS = [[0, 1, 1, 2, 3, 3, 3], [0, 0, 1, 1, 1]]  # EOS has the last slot
BATCH = {
    "source": SOURCE, "source_mask": SOURCE > 0, "target": TARGET, "target_mask": TARGET > 0,
}  # fmt: skip
NAMES = [name for name in DECODERS.names() if not name.startswith(("trans", "merged"))]


def pointing(name):
    model = build("concatenation", name, attention={"name": "step_pointer"})
    return model, jax.jit(model.init)(jax.random.key(0))


@pytest.mark.parametrize("name", NAMES)
def test_known_targets_move_the_pointer(name):
    model, params = pointing(name)
    weights = np.asarray(quick_jit(model.apply)(params, BATCH).attention.weights)
    for row, pointers in enumerate(POINTERS):
        np.testing.assert_array_equal(weights[row, : len(pointers)], np.eye(4)[pointers])


@pytest.mark.parametrize("name", NAMES)
def test_a_search_moves_it_as_known_targets_do(name):
    model, params = pointing(name)
    output = quick_jit(model.apply)(params, BATCH)
    start = quick_jit(model.start, static_argnums=2)
    memory, state = start(params, BATCH, TARGET.shape[1])
    step, before = quick_jit(model.step), SpecialIds.BOS
    for position in range(TARGET.shape[1]):
        tokens = jnp.broadcast_to(before, (2,))[:, None]
        predictions, weights, state = step(params, memory, state, tokens)
        real = np.asarray(BATCH["target_mask"][:, position])
        known = output.predictions.log_probs()[:, position]
        np.testing.assert_allclose(
            predictions.log_probs()[real, 0], known[real], rtol=1e-4, atol=1e-5
        )
        np.testing.assert_array_equal(
            weights[real, 0], output.attention.weights[real, position]
        )
        before = TARGET[:, position]


@pytest.mark.parametrize("method", ["greedy", "beam"])
def test_runaway_decoding_ends_at_the_last_slot(method):
    """However fond of STEPs a model is, no output has more of them than there are slots to pass."""
    model, params = pointing("bahdanau")
    params = {**params, "output_bias": params["output_bias"].at[STEP].add(9.0)}
    config = SearchConfig(method=method, beam_size=3, max_length_factor=0, max_length_constant=20)
    found = Searcher(model, config).search(params, BATCH, jax.random.key(0))
    tokens, mask = found.tokens[:, 0], found.tokens[:, 0] > 0
    passed = BATCH["source_mask"].sum(-1) - 1
    np.testing.assert_array_equal((tokens == STEP).sum(-1), passed)
    known = {**BATCH, "target": tokens, "target_mask": mask}
    log_probs = quick_jit(model.apply)(params, known).predictions.log_prob(tokens)
    total = np.where(mask, log_probs, 0).sum(-1)
    np.testing.assert_allclose(found.log_probs[:, 0], total, rtol=1e-4, atol=1e-4)


def test_a_decoder_that_asks_for_all_words_at_once_refuses_it_in_one_line():
    message = "attention.name: .* attend to itself, found 'step_pointer', which carries pointer"
    with pytest.raises(ConfigError, match=message):
        pointing("transformer")


def test_targets_without_steps_are_refused_in_one_line():
    config = luong2015.get_config("smoke")
    config.model.attention = {"name": "step_pointer"}
    message = "config.model.attention.name: expected data whose targets have STEPs for 'step_po"
    with pytest.raises(ConfigError, match=message):
        from_config_dict(config)
    assert from_config_dict(aharoni2017.get_config("smoke")).data.oracle_steps == "hmm"
