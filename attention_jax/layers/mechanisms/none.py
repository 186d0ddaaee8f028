"""No attention: the source is one fixed vector, as in the first encoder-decoders.

The memory has a single slot, which holds the encoder's summary of the source. With
`every_step`, each decoder step and the readout see it (Cho 2014); with `initial_state`, the
decoder sees it in its initial state only (Sutskever 2014), and contexts have no depth. That paper's
reversed source is the encoder's `direction = "backward"`.
"""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismConfig, MechanismParts, Traits
from attention_jax.ops.attend import AttentionSpec
from attention_jax.ops.masks import masked_mean
from attention_jax.ops.positions import at_indices
from attention_jax.ops.summation import accumulation_dtype
from attention_jax.types import Array, Memory, Params, State

PAPER = "Cho et al. (2014), section 2.2, eq. 1-2; Sutskever, Vinyals and Le (2014), section 2"


@dataclasses.dataclass(frozen=True)
class Config(MechanismConfig):
    """The fixed-vector encoder-decoder.

    Attributes:
      name: The mechanism.
      conditioning: Where the summary enters: at `every_step`, or in the `initial_state` only.
    """

    name: str = setting("none")
    conditioning: str = setting("every_step", choices=("every_step", "initial_state"))
    reads_keys: ClassVar[bool] = False


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds the mechanism, which has no parameters."""
    is_visible = config.conditioning == "every_step"

    def prepare(params: Params, memory: Memory, positions: Array) -> Memory:
        mean = masked_mean(memory.values, memory.mask)
        summary = memory.aux.get("summary", mean)
        slot = summary[..., None, :] if is_visible else summary[..., None, :0]  # *B D -> *B 1 D
        is_real = memory.mask.any(-1, keepdims=True)
        return Memory(slot, slot, is_real, at_indices(memory).aux)

    context_dim = None if is_visible else 0
    spec = AttentionSpec(_score, prepare=prepare)
    return MechanismParts(
        spec, {}, Traits(is_alignment=False, reads_query=False), context_dim=context_dim
    )


def _score(params: Params, query: Array, memory: Memory, state: State, positions: Array) -> Array:
    # The softmax of a single score is one, whatever the score is.
    return jnp.zeros((*query.shape[:-1], 1), accumulation_dtype(query))
