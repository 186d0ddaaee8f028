"""Maximum likelihood of the other direction: the cross-entropy of the source given the target."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from jaxtyping import Array, Float

from attention_jax.objectives import nll
from attention_jax.objectives.term import NEEDS_REVERSE
from attention_jax.types import Batch, ModelOutput, swap_sides

PAPER = "Cohn et al. (2016), on bilingual symmetry: the second term of the joint loss"


@dataclasses.dataclass(frozen=True)
class Term(nll.Term):
    """Reverse likelihood, the objective `reverse_nll`, whose fields are those of `nll`.

    loss = -sum_s log p(source[s] | source[< s], target), over the real source tokens, EOS included
    """

    needs: ClassVar[Mapping[str, str]] = NEEDS_REVERSE

    def count(self, batch: Batch) -> Float[Array, ""]:
        """Returns the number of real source tokens, or of real sentences."""
        # In the other direction the source is the target.
        return super().count(swap_sides(batch))

    def total(self, output: ModelOutput, batch: Batch) -> Float[Array, ""]:
        """Returns the cross-entropy summed over the real source tokens, in nats."""
        return super().total(output.outputs["reverse"], swap_sides(batch))
