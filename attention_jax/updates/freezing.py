"""Freezing of parameters for a while, chosen by patterns of their paths."""

import dataclasses
import re
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from attention_jax.configuration import setting
from attention_jax.errors import ConfigError, quoted
from attention_jax.types import Params


@dataclasses.dataclass(frozen=True)
class Freezing:
    """Frozen parameters: which ones, and from which step for how long.

    A frozen parameter keeps its bits, whatever the update rule; weight decay does not move it
    either. Its gradient counts as zero: it has no part in the gradient's norm, and an optimiser's
    moments decay meanwhile. A moving average goes on moving towards it.

    Attributes:
      parameters: Regular expressions; a parameter is frozen if one is found in its path, such as
        `decoder/attention/vector`.
      start_steps: Training steps before they are frozen.
      num_steps: Number of steps for which they stay frozen; 0 for all that follow.

    Source:
      Mi, Wang and Ittycheriah (2016), "Supervised attentions for neural machine translation",
      EMNLP, compare attention that is frozen after it was trained on alignments with attention
      that is trained on.
    """

    parameters: tuple[str, ...] = setting(())
    start_steps: int = setting(0, at_least=0)
    num_steps: int = setting(0, at_least=0)

    def __post_init__(self) -> None:
        """Rejects strings that are no regular expressions, and steps without parameters."""
        for index, pattern in enumerate(self.parameters):
            try:
                re.compile(pattern)
            except (re.error, RecursionError, OverflowError) as error:
                raise ValueError(
                    f"parameters[{index}]: expected a regular expression, found {quoted(pattern)} "
                    f"({error})"
                ) from None
        for field in ("start_steps", "num_steps"):
            if getattr(self, field) and not self.parameters:
                raise ValueError(
                    f"{field}: expected parameters beside it, found {getattr(self, field)}"
                )

    def is_on(self, step: Int[Array, ""]) -> Bool[Array, ""]:
        """Returns whether parameters are frozen at a training step, counted from 0."""
        since = step - self.start_steps
        # `step` is traced, so no Python `and`; `num_steps` is a constant of the config.
        return (since >= 0) & (since < self.num_steps) if self.num_steps else since >= 0

    def check(self, params: Any) -> None:
        """Raises `ConfigError` if a pattern is found in no path of a tree of parameters."""
        paths = [_name(path) for path, _ in jax.tree.leaves_with_path(params)]
        for index, pattern in enumerate(self.parameters):
            if not any(re.search(pattern, path) for path in paths):
                raise ConfigError(
                    f"config.training.freezing.parameters[{index}]: expected a pattern that is "
                    f"found in a parameter's path, such as {paths[0]}, found {pattern!r}"
                )

    def hold(self, step: Int[Array, ""], tree: Params, held: Params) -> Params:
        """Selects, leaf by leaf, `held` for parameters that are frozen at a step, else `tree`.

        Args:
          step: The training step, counted from 0.
          tree: The parameters after an update, or their gradient.
          held: In the same structure the parameters before the update, or zeros.
        """
        if not self.parameters:
            return tree
        is_on = self.is_on(step)

        def choose(path: Any, leaf: Array, held: Array) -> Array:
            # Decided while tracing, so that parameters that are never frozen cost no select.
            is_chosen = any(re.search(pattern, _name(path)) for pattern in self.parameters)
            return jnp.where(is_on, held, leaf) if is_chosen else leaf

        return jax.tree.map_with_path(choose, tree, held)


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")
