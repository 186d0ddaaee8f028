"""How a training is spread over devices, as its config says it."""

import dataclasses
import re

from attention_jax.configuration import setting
from attention_jax.errors import quoted

# The mesh's axes, in its order: neighbours along the last one exchange the most.
AXES = ("data", "fsdp", "tensor")
REST = -1

Rule = tuple[str, tuple[str | None, ...]]


@dataclasses.dataclass(frozen=True)
class ShardingConfig:
    """How a training is spread over devices.

    The sizes of the three axes multiply to the number of devices. A batch is split over `data` and
    `fsdp` together. All strategies and meshes compute the same training, up to the order of
    summation, so a run may be continued with another one.

    Parameters that no rule names are placed without one. A model's embeddings, output matrix and
    output bias are split over `tensor` by entries of the vocabulary, where that divides them, and
    nothing else is. Every parameter of at least 1024 numbers is
    split over `fsdp` along the largest dimension that can be. An optimiser's moments and the
    moving average lie where their parameter does.

    Attributes:
      strategy: `jit` leaves communication to the compiler; `shard_map` and `pmap` write it down
        for data parallelism, each device with a copy of all parameters.
      data: Devices along the axis that splits the batch only; -1 for the rest of them.
      fsdp: Devices along the axis that splits the batch, and parameters while they are not used;
        -1 for the rest.
      tensor: Devices along the axis that splits parameters and what is computed with them; -1 for
        the rest.
      rules: Pairs of a regular expression and the axes, or None, by which a parameter's dimensions
        are split if the expression is found in its path, such as `("output$", ("tensor", "fsdp"))`.
        The first one that is found counts.
    """

    strategy: str = setting("jit", choices=("jit", "pmap", "shard_map"))
    data: int = setting(REST, at_least=REST)
    fsdp: int = setting(1, at_least=REST)
    tensor: int = setting(1, at_least=REST)
    rules: tuple[Rule, ...] = setting(())

    def __post_init__(self) -> None:
        """Rejects sizes and rules that cannot be meant."""
        for axis in AXES:
            if getattr(self, axis) == 0:
                raise ValueError(f"{axis}: expected at least 1, or -1 for the rest, found 0")
        rest = [axis for axis in AXES if getattr(self, axis) == REST]
        if len(rest) > 1:
            raise ValueError(
                f"{rest[1]}: expected -1 for one axis only, found it for {rest[0]} too"
            )
        if self.strategy != "jit":
            self._check_that_nothing_is_split()
        for index, (pattern, axes) in enumerate(self.rules):
            _check_rule(f"rules[{index}]", pattern, axes)

    def _check_that_nothing_is_split(self) -> None:
        for axis in AXES[1:]:
            if getattr(self, axis) != 1:
                raise ValueError(
                    f"{axis}: expected 1 for strategy {self.strategy!r}, which splits the batch "
                    f"only, found {getattr(self, axis)}"
                )
        if self.rules:
            raise ValueError(
                f"rules: expected none for strategy {self.strategy!r}, which splits the batch "
                f"only, found {len(self.rules)}"
            )


def _check_rule(where: str, pattern: str, axes: tuple[str | None, ...]) -> None:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(
            f"{where}: expected a regular expression, found {quoted(pattern)} ({error})"
        ) from None
    named = [axis for axis in axes if axis is not None]
    for axis in named:
        if axis not in AXES:
            raise ValueError(f"{where}: expected axes of {', '.join(AXES)}, found {axis!r}")
        if named.count(axis) > 1:
            raise ValueError(f"{where}: expected an axis once for a parameter, found {axis} twice")
