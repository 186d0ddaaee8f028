"""Searches in 8-bit integers: of every kind of model, near those in float32, and without effect on
what is not multiplied by a matrix."""

import dataclasses

import jax
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.decoding.searcher import Searcher
from attention_jax.models import MODELS, build_model
from attention_jax.search import SearchConfig
from attention_jax.types import SpecialIds

DEPTH, VOCABULARY, LENGTH = 32, 40, 6
SEARCH = SearchConfig(
    beam_size=2, max_length_factor=0.0, max_length_constant=LENGTH, min_length_constant=LENGTH
)
TOKENS = {"input": {"name": "tokens", "embedding_dim": DEPTH}}
LAYERS = {"num_layers": 1, "feed_forward_dim": DEPTH}
RECURRENT = {
    "target_embedding_dim": DEPTH,
    "sources": {"source": {**TOKENS, "encoder": {"cell": "gru", "hidden_dim": DEPTH}}},
    "attention": {"name": "bahdanau", "attention_dim": DEPTH},
    "decoder": {"name": "conditional_gru", "cell": "gru", "hidden_dim": DEPTH, "bridge": "mean"},
}
CONFIGS = {
    "recurrent": RECURRENT,
    "transformer": {
        "target_embedding_dim": DEPTH,
        "sources": {"source": {**TOKENS, "encoder": {"name": "self_attention", **LAYERS}}},
        "attention": {"name": "multi_head", "num_heads": 2, "head_dim": DEPTH // 2},
        "decoder": {"name": "transformer", **LAYERS},
    },
    "sum over slots": {
        **RECURRENT,
        "decoder": {"name": "transducer", "cell": "gru", "hidden_dim": DEPTH},
        "readout": {"name": "marginal", "hidden_dim": DEPTH},
    },
}  # fmt: skip


def found(config, dtype):
    model = build_model(
        typed(MODELS.config("encoder_decoder"), config, "config.model"), VOCABULARY, VOCABULARY
    )
    params = jax.jit(model.init)(jax.random.key(0))
    source = np.random.default_rng(0).integers(SpecialIds.COUNT, VOCABULARY, (3, 5))
    batch = {"source": source.astype(np.int32), "source_mask": np.ones(source.shape, bool)}
    searcher = Searcher(model, dataclasses.replace(SEARCH, dtype=dtype))
    return searcher.search(params, batch, jax.random.key(1))


@pytest.mark.parametrize("name", CONFIGS)
def test_log_probabilities_are_near_those_in_float32(name):
    integers, floats = found(CONFIGS[name], "int8"), found(CONFIGS[name], "float32")
    assert integers.tokens.shape == floats.tokens.shape
    np.testing.assert_allclose(integers.log_probs, floats.log_probs, rtol=0.02)
    assert np.any(integers.log_probs != floats.log_probs)
