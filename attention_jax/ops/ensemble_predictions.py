"""Ensemble predictions: the distributions of several models for the next token, as one."""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention_jax.ops.predictions import Predictions

COMBINATIONS = ("log_linear", "mean")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class EnsemblePredictions(Predictions):
    """Combined distribution of M models, each of equal weight.

      log_linear:  p(v) = prod_m p_m(v)^(1/M) / Z,  Z so that it adds up to one
      mean:        p(v) = sum_m p_m(v) / M

    The geometric mean is what logits averaged before a softmax give, and lets one model alone veto
    a token; the arithmetic mean lets one alone propose it.

    Attributes:
      members: The `Predictions` of each model, of one number of ids.
      combination: `log_linear` or `mean`.
    """

    members: Sequence[Predictions]
    combination: str = dataclasses.field(default="log_linear", metadata={"static": True})

    @property
    def size(self) -> int:
        """How many ids there are."""
        return self.members[0].size

    def log_probs(self) -> Float[Array, "*B V"]:
        """Returns log p(v) of all ids."""
        log_probs = jnp.stack([member.log_probs() for member in self.members])  # M *B V
        if self.combination == "mean":
            return jax.nn.logsumexp(log_probs, axis=0) - jnp.log(len(self.members))
        return jax.nn.log_softmax(log_probs.mean(axis=0), axis=-1)

    def left_out(self) -> Bool[Array, "*#B V"] | None:
        """Tells which ids a search leaves out: those that it would with any one of the models."""
        found = [out for out in (each.left_out() for each in self.members) if out is not None]
        return functools.reduce(jnp.logical_or, found) if found else None

    def origins(
        self, targets: Int[Array, "*B"]
    ) -> tuple[Float[Array, "*B"], Float[Array, "*B S"]]:
        """Tells by which way known words were written, where all models copy.

        Returns:
          (p(target, generated), p(target, copied from slot s)): the means over the models, which
          add up to p(target) where probabilities are averaged, and are in proportion to what each
          model has of it where logarithms are.
        """
        ways = [member.origins(targets) for member in self.members]
        generated, copied = (jnp.stack(part).mean(axis=0) for part in zip(*ways, strict=True))
        return generated, copied
