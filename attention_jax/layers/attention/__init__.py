"""Attention: mechanisms with their heads, as pure functions and as a Linen layer."""

from attention_jax.layers.attention.layer import Attention, build_mechanism
from attention_jax.layers.attention.multi_head import HeadLayout, MultiHead, weights_of_heads
from attention_jax.layers.attention.single_head import OneSource, SingleHead

__all__ = [
    "Attention",
    "HeadLayout",
    "MultiHead",
    "OneSource",
    "SingleHead",
    "build_mechanism",
    "weights_of_heads",
]
