"""A tiny Transformer, a batch for it, and how its config is changed."""

import functools

import jax.numpy as jnp
import numpy as np

from attention_jax.configuration import typed
from attention_jax.models import MODELS, build_model
from tests.parameters import drawn

B, S, T, V, D = 3, 5, 4, 11, 6
STACK = {"num_layers": 2, "feed_forward_dim": 7}
BASE = {
    "target_embedding_dim": D,
    "sources": {
        "source": {
            "input": {"name": "tokens", "embedding_dim": D},
            "encoder": {"name": "self_attention", **STACK},
        }
    },
    "decoder": {"name": "transformer", **STACK},
    "attention": {"name": "multi_head", "num_heads": 2, "head_dim": 4, "head_value_dim": 3},
    "tie_embeddings": "all",
    "initialization": {"name": "xavier"},
}
OWN = {"self_attention": BASE["attention"]}
PARTS = ("encoder", "decoder")


def config_of(**changes):
    """The config with other fields, those of the encoder given as `encoder`."""
    source = BASE["sources"]["source"]
    encoder = {**source["encoder"], **changes.pop("encoder", {})}
    merged = {
        name: {**value, **changes.get(name, {})} if isinstance(value, dict) else value
        for name, value in BASE.items()
    }
    merged |= {name: value for name, value in changes.items() if not isinstance(value, dict)}
    merged["sources"] = {"source": {**source, "encoder": encoder}}
    return typed(MODELS.config("encoder_decoder"), merged, "config.model")


@functools.cache
def batch():
    rng = np.random.default_rng(0)
    tokens = lambda size: jnp.asarray(rng.integers(4, V, (B, size)), jnp.int32)  # noqa: E731
    return {
        "source": tokens(S),
        "source_mask": jnp.arange(S) < jnp.array([5, 3, 1])[:, None],
        "target": tokens(T),
        "target_mask": jnp.arange(T) < jnp.array([4, 2, 3])[:, None],
    }


def started(**changes):
    """A model with parameters that are all random; nothing is compiled for them."""
    model = build_model(config_of(**changes), V, V)
    return model, drawn(model)
