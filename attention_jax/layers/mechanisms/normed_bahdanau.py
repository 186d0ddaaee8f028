"""Normalised additive attention: the vector that ends the score has a length of its own.

  scores[t, s] = g v / ||v|| . tanh(query[t] W_q + keys[s] W_k + b)

One number, g, says how far apart scores may lie, whatever the depth of the hidden layer. It starts
from 1 / sqrt(attention_dim), so that scores are small at first.
"""

import dataclasses
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.layers.additive import AdditiveConfig, additive_parts
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.normalization import unit_vector
from attention_jax.ops.products import add_bias
from attention_jax.ops.summation import upcast
from attention_jax.types import Array, Memory, Params

PAPER = (
    "Raffel, Luong, Liu, Weiss and Eck (2017), on modified energies, without their r; Salimans and "
    "Kingma (2016), Weight normalization, eq. 2"
)


@dataclasses.dataclass(frozen=True)
class Config(AdditiveConfig):
    """Normalised additive attention, which TensorFlow's sequence-to-sequence library calls so.

    Further fields are those of `layers.additive.AdditiveConfig`.
    """

    name: str = setting("normed_bahdanau")
    tells_key_bias: ClassVar[bool] = False  # it has one itself


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds the mechanism for queries and keys of the given depths."""
    depth = config.attention_dim
    more = {
        "vector": Parameter.of("direction", attention=depth),
        "gain": Parameter.of("scale").starting_at(depth**-0.5),
        "bias": Parameter.of("bias", attention=depth),
    }
    return additive_parts(
        config, query_dim, key_dim, more,
        prepare=_prepare, vector=_vector, of_memory=("key_kernel", "bias"),
    )  # fmt: skip


def _prepare(params: Params, memory: Memory, positions: Array) -> Memory:
    keys = add_bias(memory.keys @ params["key_kernel"], params["bias"])
    return dataclasses.replace(memory, keys=keys)


def _vector(params: Params) -> Array:
    """Returns g v / ||v||."""
    unit = unit_vector(upcast(params["vector"]))
    return (upcast(params["gain"]) * unit).astype(params["vector"].dtype)
