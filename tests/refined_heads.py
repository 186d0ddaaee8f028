"""Multi-head attention with refinements, built small, with parameters and inputs at random."""

import numpy as np

from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.mechanisms.multi_head import Config

B, T, D, H, DK, DV = 2, 5, 6, 4, 4, 3
LENGTHS = (5, 3)


def built(place="causal", **fields):
    config = Config(num_heads=H, head_dim=DK, head_value_dim=DV, **fields)
    return config, build_mechanism(config, D, D, D, place=place)


def drawn(mechanism, place):
    rng = np.random.default_rng(1)
    params = {name: 0.6 * rng.normal(size=p.shape) for name, p in mechanism.parameters.items()}
    x, mask = rng.normal(size=(B, T, D)), np.arange(T) < np.asarray(LENGTHS)[:, None]
    allowed = mask[:, None, :] & (np.tri(T, dtype=bool) if place == "causal" else True)
    return params, x, mask, np.broadcast_to(allowed, (B, T, T))
