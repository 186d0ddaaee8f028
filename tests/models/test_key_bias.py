"""A bias of keys beside rotary positions: it is there where it changes weights, and only there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.models import MODELS, build_model
from tests.parameters import drawn
from tests.quick import quick_jit

B, S, T, V, D = 2, 4, 5, 9, 6
HEADS = {"name": "multi_head", "num_heads": 2, "head_dim": 4}
BIASED = {**HEADS, "use_key_bias": True, "refinements": {"rope": {}}}
STACK = {"num_layers": 1, "feed_forward_dim": 7}


def encoder_decoder(attention, **own):
    return {
        "name": "encoder_decoder",
        "target_embedding_dim": D,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": D},
                "encoder": {"name": "self_attention", **STACK, **own},
            }
        },
        "decoder": {"name": "transformer", **STACK, **own},
        "attention": attention,
    }


# Each with the attentions of the model that have the bias.
NETWORKS = {
    "language model": (
        {"name": "language_model", "embedding_dim": D, "attention": BIASED, "decoder": STACK},
        {"decoder.layer_0.self_attention"},
    ),
    "of its own": (
        encoder_decoder(HEADS, self_attention=BIASED),
        {"encoder.layer_0.self_attention", "decoder.layer_0.self_attention"},
    ),
    "shared": (
        encoder_decoder(BIASED),
        {"encoder.layer_0.self_attention", "decoder.layer_0.self_attention"},
    ),
    "shared, told in the source too": (
        encoder_decoder({**BIASED, "refinements": {"rope": {}, "attention_sink": {}}}),
        {
            "encoder.layer_0.self_attention",
            "decoder.layer_0.self_attention",
            "decoder.layer_0.attention",
        },
    ),
}


@pytest.mark.parametrize(("fields", "biased"), NETWORKS.values(), ids=NETWORKS)
def test_every_parameter_has_a_gradient(fields, biased):
    model = build_model(typed(MODELS.config(fields["name"]), fields, "config.model"), V, V)
    params, rng = drawn(model), np.random.default_rng(1)
    batch = {
        name: jnp.asarray(rng.integers(4, V, (B, size)), jnp.int32)
        for name, size in (("source", S), ("target", T))
    }
    batch |= {f"{name}_mask": jnp.ones(array.shape, bool) for name, array in batch.items()}
    upstream = jnp.asarray(rng.normal(size=(B, T, V)), jnp.float32)

    @quick_jit
    @jax.grad
    def gradients(params):
        return jnp.sum(model.apply(params, batch).predictions.logits * upstream)

    found = {
        jax.tree_util.keystr(path, simple=True, separator="."): np.abs(leaf).max()
        for path, leaf in jax.tree.leaves_with_path(gradients(params))
    }
    assert min(found.values()) > 1e-6, min(found, key=found.get)
    assert {name.removesuffix(".key_bias") for name in found if "key_bias" in name} == biased
