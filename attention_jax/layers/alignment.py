"""What latent alignments share: their interface, and their lookup.

An alignment says how the slots of the source from which a target is written follow one another; the
readout `marginal` sums over all their paths. A file in `layers/alignments` holds `PAPER`, a frozen
dataclass `Config` and `build(config, sizes) -> Alignment`.
"""

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from attention_jax.discovery import Parts
from attention_jax.layers.mechanism import described
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.readout import ReadoutSizes, Step
from attention_jax.ops.lattices import NEVER, Transition
from attention_jax.types import Array, Params

ALIGNMENTS = Parts("attention_jax.layers.alignments", having=("name",))


class Alignment(abc.ABC):
    """Latent alignment: pure functions that say how slots follow one another.

    Attributes:
      transition: How paths go on from slot to slot.
    """

    transition: Transition

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Its parameters by name; none where all that counts are the mechanism's scores."""
        return {}

    def prepare(self, params: Params, annotations: Array) -> Any:
        """Prepares annotations `B S D`, once for a source: arrays `B S ...`."""
        return ()

    @abc.abstractmethod
    def moves(self, params: Params, step: Step, prepared: Any, mask: Array) -> Any:
        """Returns what decides on the moves to the slots of the next token, arrays `*B S ...`.

        Args:
          params: Its parameters.
          step: The decoder's steps, `*B`, with the scores of their attention.
          prepared: What `prepare` returned, which broadcasts against them.
          mask: `*#B S`, the real slots.
        """


@dataclasses.dataclass(frozen=True)
class ScoredAlignment(Alignment):
    """An alignment that the scores of attention decide on.

    Attributes:
      transition: How paths go on, given scores.
    """

    transition: Transition

    def moves(self, params: Params, step: Step, prepared: Any, mask: Array) -> Any:
        """Returns the scores."""
        return self.scores(step)

    @staticmethod
    def scores(step: Step) -> Array:
        """Returns the scores of attention, `NEVER` where masks of the call leave it no weight."""
        return jnp.where(step.attention.weights > 0, step.attention.scores, NEVER)


def check_scores(sizes: ReadoutSizes, name: str) -> None:
    """Checks that scores are all that attention is made of, one for each slot of one source.

    Raises:
      ValueError: If they are not, for an alignment of that name.
    """
    if not (sizes.mechanism.is_softmax and sizes.mechanism.traits.is_alignment):
        raise ValueError(
            "attention: expected one head, whose weights are the softmax of its scores of all "
            f"slots of one source, beside readout.alignment.name={name!r}, found "
            f"{described(sizes.attention)}"
        )
