"""Aligners of a model: the interface that they share, and their lookup.

An aligner says which source slots the tokens of the target are linked to: its weights are those
that links teach and that links are read from, while the decoder translates with its attention. An
aligner file in `layers/aligners` holds `PAPER`, a frozen dataclass `Config` and
`build(config, sizes) -> Aligner`.
"""

import abc
from collections.abc import Mapping
from typing import Any, NamedTuple

from attention_jax.discovery import Parts
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.readout import Step
from attention_jax.types import Array, Params

ALIGNERS = Parts("attention_jax.layers.aligners", having=("name",))


class AlignerSizes(NamedTuple):
    """Sizes that an aligner must fit.

    Attributes:
      memory_dim: Depth of an annotation of the first source.
      feature_dim: Depth of the decoder's features.
      embedding_dim: Depth of an embedded target token.
    """

    memory_dim: int
    feature_dim: int
    embedding_dim: int


class Aligner(abc.ABC):
    """Aligner: pure functions from decoder steps to weights of the source's slots.

    Attributes:
      is_separate: Whether its weights are others than those that the decoder translates with. Then
        they are an alignment, whatever the decoder attends by, and know the token that was read.
      reads_ahead: Whether they depend on tokens after the one that was read. Then what a search has
        written is aligned when it is complete, in a second pass.
      is_two_way: Whether it also says which token of the target each slot is linked to, as a model
        of the opposite direction would.
    """

    is_separate: bool = False
    reads_ahead: bool = False
    is_two_way: bool = False

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The tree of its parameters."""
        return {}

    def prepare(self, params: Params, encoded: Encoded) -> Any:
        """Returns what it needs of the source at every step, a pytree with leading axis `B`."""
        return ()

    def run(self, params: Params, step: Step, mask: Array, prepared: Any) -> Array:
        """Returns the weights of the source's slots at all steps of known targets, `B T S`.

        By default each step is aligned for itself.

        Args:
          params: Its parameters.
          step: All of the decoder's steps.
          mask: `B T`, True at real steps.
          prepared: As in `align`.
        """
        return self.align(params, step, prepared)

    def run_both_ways(
        self, params: Params, step: Step, mask: Array, prepared: Any
    ) -> tuple[Array, Array | None]:
        """Returns the weights of the source's slots, and those of the target's steps.

        The second are `B S T`, a distribution for each slot over the steps, of which step t stands
        for the token that it has read; None where it says none.
        """
        return self.run(params, step, mask, prepared), None

    @abc.abstractmethod
    def align(self, params: Params, step: Step, prepared: Any) -> Array:
        """Returns the weights of the source's slots at every step, `*B S`, from the steps before.

        Args:
          params: Its parameters.
          step: The decoder's steps, with what the decoder has attended to.
          prepared: What `prepare` returned, with an axis of one for `T` or `K`: `B 1 ...`.
        """
