"""The encoder of memory-networks: how its dropout is drawn."""

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.layers.encoders.lstmn import Config, build
from attention_jax.layers.parameters import Initialization, draw
from attention_jax.ops.dropout import dropout_factors
from attention_jax.ops.lstmn import run_lstmn
from attention_jax.types import Call
from tests.quick import quick_jit

B, S, E, D = 2, 5, 4, 6


def test_recurrent_dropout_drops_other_units_in_each_direction_and_the_same_at_all_steps():
    config = Config(
        hidden_dim=D, attention_dim=3, direction="bidirectional", recurrent_dropout=0.5
    )
    encoder, rng = build(config, E), jax.random.key(3)
    params = draw(encoder.parameters, jax.random.key(1), Initialization("uniform", scale=0.7))
    embedded = jax.random.normal(jax.random.key(2), (B, S, E))
    mask = jnp.arange(S) < jnp.asarray([5, 3])[:, None]
    embedded = jnp.where(mask[..., None], embedded, 0)

    @quick_jit
    def read(params):
        return encoder.encode(params, embedded, mask, Call(True, rng)).annotations

    @quick_jit
    def read_each(params):
        found = []
        for number, reading in enumerate(("forward", "backward"), 1):
            weights = params[f"layer_0_{reading}"]
            keep = dropout_factors(Call(True, rng).fold(number), 0.5, (B, D), jnp.float32)
            projected = embedded @ weights["input"] + weights["bias"]
            query = embedded @ weights["query_kernel"]
            is_reverse = reading == "backward"
            found.append(run_lstmn(weights, projected, query, mask, reverse=is_reverse, keep=keep))
        return jnp.concatenate([hidden for hidden, _ in found], axis=-1)

    np.testing.assert_allclose(read(params), read_each(params), rtol=1e-5, atol=1e-6)
