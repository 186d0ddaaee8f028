"""Attention pooling with a learnt query: what every sequence is asked.

  u[s] = tanh(W h[s] + b);   weights = softmax_s(u[s] . q);   summary = sum_s weights[s] h[s]

The query q is a parameter, as W and b are.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.normalizer import NORMALIZERS
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.pooling import Pooling
from attention_jax.ops.attend import AttentionSpec, attend, make_memory
from attention_jax.ops.pooling import Pooled, hidden_keys
from attention_jax.ops.scores import score_dot
from attention_jax.types import Array, Call, Memory, Params

PAPER = "Yang et al. (2016), Hierarchical attention networks, section 2.2, eq. 5 to 10"


@dataclasses.dataclass(frozen=True)
class Config:
    """Attention pooling.

    Attributes:
      name: The pooling.
      attention_dim: Depth of the query.
      normalizer: From scores to weights.
    """

    name: str = setting("attention")
    attention_dim: int = setting(100, at_least=1)
    normalizer: str = setting("softmax", choices=NORMALIZERS)


def build(config: Config, depth: int) -> "AttentionPooling":
    """Builds the pooling for annotations of the given depth."""
    return AttentionPooling(config, depth)


@dataclasses.dataclass(frozen=True)
class AttentionPooling(Pooling):
    """Attention pooling as pure functions."""

    config: Config
    depth: int

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Kernel and bias of the hidden layer, and the query."""
        depth = self.config.attention_dim
        return {
            "kernel": Parameter.of("attention_kernel", key=self.depth, attention=depth),
            "bias": Parameter.of("bias", attention=depth),
            "query": Parameter.of("attention_vector", attention=depth),
        }

    def pool(
        self, params: Params, values: Array, mask: Array, call: Call = Call()
    ) -> Pooled:
        """Asks the query of every sequence."""
        spec = AttentionSpec(score_dot, NORMALIZERS[self.config.normalizer], prepare=_prepare)
        memory = make_memory(spec, params, values, values, mask)
        shape = (*values.shape[:-2], 1, self.config.attention_dim)
        output, _ = attend(spec, params, jnp.broadcast_to(params["query"], shape), memory)
        return Pooled(output.context[..., 0, :], output.weights[..., 0, :])  # one query: its axis


def _prepare(params: Params, memory: Memory, positions: Array) -> Memory:
    return dataclasses.replace(memory, keys=hidden_keys(params, memory))
