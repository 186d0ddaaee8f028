"""Convolutional attention: where to attend is told by patterns of neighbouring annotations.

  H = leaky_relu(conv(annotations));   L = conv(H);   gate[t] = leaky_relu(query[t] W)
  scores[t] = conv(F[t]),  F[t] = gate[t] * L / ||gate[t] * L||

A pattern is found wherever it stands: not only what is at a place counts, but what is around it.
`aux["features"]` has F, `*B T S C`, for readouts that ask it further questions.

Deviations: the gate is made of a projection of the query, which is the paper's own state where that
has as many channels; there is no bias of the scores, which softmax would take away.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismConfig, MechanismParts, Traits
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.attend import AttentionSpec
from attention_jax.ops.convolutions import convolve
from attention_jax.ops.convolved_features import gate_features, score_features, shifted_products
from attention_jax.ops.masks import zero_padding
from attention_jax.ops.normalizers import softmax_normalizer
from attention_jax.types import Array, Memory, Params, State

PAPER = "Allamanis, Peng and Sutton (2016), A convolutional attention network, section 3"
_HIDDEN_SLOPE, _GATE_SLOPE = 0.1, 0.01  # of the leaky rectifiers, below zero


@dataclasses.dataclass(frozen=True)
class Config(MechanismConfig):
    """Convolutional attention.

    Attributes:
      name: The mechanism.
      hidden_dim: k1, channels of the first convolution.
      channels: k2, channels of the features.
      hidden_width: w1, how many places the first convolution sees.
      feature_width: w2, how many the second one sees.
      score_width: w3, how many features make a score.
    """

    name: str = setting("convolutional")
    hidden_dim: int = setting(32, at_least=1)
    channels: int = setting(16, at_least=1)
    hidden_width: int = setting(18, at_least=1)
    feature_width: int = setting(19, at_least=1)
    score_width: int = setting(2, at_least=1)


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds convolutional attention for queries and keys of the given depths."""
    hidden, channels = config.hidden_dim, config.channels
    parameters = {
        "hidden_kernel": Parameter.of(
            "kernel", kernel=config.hidden_width * key_dim, hidden=hidden
        ),
        "hidden_bias": Parameter.of("bias", hidden=hidden),
        "feature_kernel": Parameter.of(
            "kernel", kernel=config.feature_width * hidden, channels=channels
        ),
        "feature_bias": Parameter.of("bias", channels=channels),
        "gate_kernel": Parameter.of("attention_kernel", query=query_dim, channels=channels),
        "score_kernel": Parameter.of("kernel", kernel=config.score_width, channels=channels),
    }
    spec = AttentionSpec(_score, _normalize, prepare=_prepare)
    return MechanismParts(spec, parameters, Traits(reads_length=True))


def _prepare(params: Params, memory: Memory, positions: Array | None) -> Memory:
    """Convolves the annotations once for a source; keys are what scores are products with."""
    *batch, slots, depth = memory.keys.shape
    rows = math.prod(batch)
    # Neighbours are those in the sequence, in whatever order the slots are given.
    order = jnp.arange(slots) if positions is None else jnp.argsort(positions)
    mask = memory.mask[..., order].reshape(rows, slots)
    hidden = convolve(
        memory.keys[..., order, :].reshape(rows, slots, depth),
        params["hidden_kernel"], params["hidden_bias"], mask,
    )  # fmt: skip
    hidden = jax.nn.leaky_relu(hidden, _HIDDEN_SLOPE)
    features = convolve(hidden, params["feature_kernel"], params["feature_bias"], mask)
    features = zero_padding(features, mask).reshape(*batch, slots, features.shape[-1])
    filtered = shifted_products(features, params["score_kernel"])
    features, filtered = (part[..., jnp.argsort(order), :] for part in (features, filtered))
    aux = {**memory.aux, "features": features}
    return dataclasses.replace(memory, keys=filtered, aux=aux)


def _gate(params: Params, query: Array) -> Array:
    return jax.nn.leaky_relu(query @ params["gate_kernel"], _GATE_SLOPE)


def _score(params: Params, query: Array, memory: Memory, state: State, positions: Array) -> Array:
    return score_features(memory.aux["features"], memory.keys, _gate(params, query))


def _normalize(
    params: Params, scores: Array, mask: Array, query: Array, memory: Memory, state: State,
    **rest: Any,
) -> tuple[Array, Mapping[str, Array]]:  # fmt: skip
    """Softmax, beside which the gated features are told; where nobody reads them, none is made."""
    weights, aux = softmax_normalizer(params, scores, mask, query, memory, state, **rest)
    told = gate_features(memory.aux["features"], _gate(params, query))
    return weights, {**aux, "features": told}
