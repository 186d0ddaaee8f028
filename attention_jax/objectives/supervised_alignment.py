"""Supervised attention: weights that are told which source tokens a target token belongs to."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention_jax.configuration import setting
from attention_jax.objectives.alignment_rows import inherit, normalize, smooth
from attention_jax.objectives.nll import token_count
from attention_jax.objectives.real_attention import (
    real_alignment,
    real_opposite,
    slots_linked,
    slots_mask,
    slots_with_words,
)
from attention_jax.objectives.schedule import WeightSchedule
from attention_jax.objectives.term import NEEDS_ALIGNMENT
from attention_jax.ops.summation import upcast
from attention_jax.types import Batch, ModelOutput

PAPER = (
    "Liu et al. (2016), on supervised attention; Mi, Wang and Ittycheriah (2016) for smoothing; "
    "Chen et al. (2016) for guided alignment; Chen et al. (2020), Accurate word alignment "
    "induction from neural machine translation, for the step that reads a token"
)

_TINY = 1e-9
# How many steps after the one that writes a token its links teach.
_STEPS = {"writes": 0, "reads": 1}

Rows = Float[Array, "B T S"]
Divergence = Callable[[Rows, Rows], Float[Array, "B T"] | Float[Array, "B"]]


def cross_entropy(weights: Rows, expected: Rows) -> Float[Array, "B T"]:
    """Cross-entropy: -sum_s expected[t, s] log weights[t, s]; least where both agree."""
    # A slot without weight, as of sparsemax, costs much; without the constant it would infinitely.
    return -jnp.sum(expected * jnp.log(upcast(weights) + _TINY), axis=-1)


def squared_error(weights: Rows, expected: Rows) -> Float[Array, "B T"]:
    """Squared error: 1/2 sum_s (weights[t, s] - expected[t, s])^2."""
    return 0.5 * jnp.sum((weights - expected) ** 2, axis=-1)


def multiplication(weights: Rows, expected: Rows) -> Float[Array, "B"]:
    """Multiplication loss: -log sum_t sum_s expected[t, s] weights[t, s], one log a sentence.

    Negative for a good attention to a long sentence; zero for sentences without an expectation.
    """
    return _negative_log(jnp.sum(weights * expected, axis=(-2, -1)), expected.any(axis=(-2, -1)))


def multiplication_per_token(weights: Rows, expected: Rows) -> Float[Array, "B T"]:
    """Multiplication loss: -log sum_s expected[t, s] weights[t, s], one log a target token."""
    return _negative_log(jnp.sum(weights * expected, axis=-1), expected.any(axis=-1))


def _negative_log(agreement: Array, is_expected: Bool[Array, "..."]) -> Array:
    return -jnp.log(jnp.where(is_expected, upcast(agreement) + _TINY, 1.0))


LOSSES: Mapping[str, Divergence] = {
    "cross_entropy": cross_entropy,
    "squared_error": squared_error,
    "multiplication": multiplication,
    "multiplication_per_token": multiplication_per_token,
}


@dataclasses.dataclass(frozen=True)
class Term:
    """Supervised attention, the objective `supervised_alignment`: config and computation.

    The links of `batch["links"]` become one distribution over the source for each target token:
    even over several links, spread over neighbours if `smoothing` says so. A two-way aligner is
    also taught one over the target for each source token, even over its links; the loss then is the
    mean of both ways.

    Attributes:
      weight: Factor of this term in the loss, lambda in the paper (0.3 there); the sum is divided
        by the number of target tokens.
      schedule: How the weight changes; guided alignment lets it decay.
      loss: How weights and expectation are compared; `cross_entropy` is the papers' best.
        `multiplication` is written over a whole sentence, as in the paper.
      unaligned: What a target token without a link should attend to: what the nearest token with
        links does (`inherit`); what the nearest word with links does (`inherit_by_word`); or
        nothing is asked of it (`ignore`). Of a sentence without links, nothing is asked.
      smoothing: Standard deviation, in slots (tokens, unless an encoder merges some), of the
        Gaussian around each link between words; 0 for none.
      step: Which step a target token's links teach: the one that `writes` it, as in the papers,
        or the next, which `reads` it. The first has to guess what it is about to write, the second
        knows; links are read from that step, too, wherever the run is asked for alignments. Not
        for a decoder that attends before it reads, of which that step does not know either.

    Deviations:
      Liu et al. count neighbours in words. `inherit` counts in tokens, EOS among them, from which
      last words without a link inherit; `inherit_by_word` is theirs. The sum is divided by all
      target tokens, also by those of which nothing is asked. Chen et al. (2020) teach a
      module beside a finished model; with `reads` it is the attention that translates, or the
      module where the model has one (`model.aligner`).
    """

    weight: float = setting(0.3, at_least=0.0)
    schedule: WeightSchedule = dataclasses.field(default_factory=WeightSchedule)
    loss: str = setting("cross_entropy", choices=tuple(LOSSES))
    unaligned: str = setting("inherit", choices=("inherit", "inherit_by_word", "ignore"))
    smoothing: float = setting(0.0, at_least=0.0)
    step: str = setting("writes", choices=tuple(_STEPS))
    fields: ClassVar[tuple[str, ...]] = ("links",)
    teaches: ClassVar[tuple[str, ...]] = ("aligner",)

    @property
    def needs(self) -> dict[str, str]:
        """Attention to source positions, and to read a word before it is taught for that word."""
        if not self.shift:
            return NEEDS_ALIGNMENT
        reads = (
            "a decoder that has read the last word when it attends (not bahdanau but for its "
            "variant 'groundhog', nor gnmt but for 'gnmt_v2'), or step='writes'"
        )
        return {**NEEDS_ALIGNMENT, "last_word": reads}

    @property
    def shift(self) -> int:
        """How many steps after the one that writes a token its links are read."""
        return _STEPS[self.step]  # also what reads links off attention asks for this

    def count(self, batch: Batch) -> Float[Array, ""]:
        """Returns the number of real target tokens."""
        return token_count(batch)

    def total(self, output: ModelOutput, batch: Batch) -> Float[Array, ""]:
        """Returns the loss summed over the target tokens of which something is expected."""
        total = self._compared(real_alignment(output, batch), self.expected(output, batch))
        opposite = real_opposite(output, batch)
        if opposite is None:
            return total
        links = jnp.swapaxes(self._links(output, batch), -1, -2)  # B S T
        return (total + self._compared(opposite, normalize(links.astype(float)))) / 2

    def _compared(self, weights: Array, expected: Array) -> Float[Array, ""]:
        """Returns the sum of the losses of rows of which something is expected."""
        # A step that attends to nothing by design, as GNMT's first may, cannot be taught.
        expected = jnp.where(jnp.any(weights > 0, axis=-1, keepdims=True), expected, 0.0)
        asked = jnp.any(expected > 0, axis=-1, keepdims=True)
        # Where nothing is asked, padding included, both are zero, and so is every loss.
        weights = jnp.where(asked, weights, 0.0)
        return jnp.sum(LOSSES[self.loss](weights, expected))

    def expected(self, output: ModelOutput, batch: Batch) -> Rows:
        """Returns the attention that the links ask for; zero rows where they ask for none."""
        links = self._links(output, batch)
        rows = links.astype(float)
        if self.smoothing:
            slots = slots_mask(output, batch), slots_with_words(output, batch)
            rows = smooth(links, *slots, self.smoothing)
        return normalize(rows)

    def _links(self, output: ModelOutput, batch: Batch) -> Bool[Array, "B T S"]:
        """Returns what is linked, at the step that it teaches."""
        # Words have inherited already, if they are to.
        links = slots_linked(batch["links"], output)
        if self.unaligned == "inherit":
            links = inherit(links, batch["target_mask"])
        # The row of EOS has no step after it: its links are not taught where they are read later.
        return _later(links, self.shift) & batch["target_mask"][..., None]


def _later(links: Bool[Array, "B T S"], steps: int) -> Bool[Array, "B T S"]:
    """Moves the row of each token some steps on; the first steps, which read BOS, get none."""
    size = links.shape[-2]
    return jnp.pad(links, ((0, 0), (steps, 0), (0, 0)))[:, :size]
