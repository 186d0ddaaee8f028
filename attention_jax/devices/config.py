"""Parallelism in the config: data, fully sharded (FSDP) and tensor parallelism, and strategy."""

import dataclasses
from typing import Any

from attention_jax.config_values import check_limits
from attention_jax.configuration import setting
from attention_jax.discovery import Parts
from attention_jax.errors import ConfigError

# The mesh's axes, in its order: neighbours along the last one exchange the most.
AXES = ("data", "fsdp", "tensor")
REST = -1
STRATEGIES = Parts("attention_jax.devices.strategies", defines="build")

Rule = tuple[str, Any]  # a logical axis, and an axis of the mesh or None


@dataclasses.dataclass(frozen=True)
class ShardingConfig:
    """Parallelism: the device mesh, the strategy, and rules by which parameters are sharded.

    The sizes of the three mesh axes multiply to the number of devices. A batch is split over `data`
    and `fsdp` together. All strategies and meshes compute the same training, up to the order of
    summation, so a run may be resumed with another one.

    Without rules, embeddings, output matrix and output bias are split over `tensor` by entries of
    the vocabulary, if their number is divisible, and nothing else is: the rule
    `("vocab", "tensor")`. Every parameter of at least 1024 numbers that no rule splits over `fsdp`
    is split over it along the largest dimension that is left. An optimiser's moments and the
    moving average are placed as their parameter is.

    Attributes:
      strategy: `jit` leaves communication to the compiler; `shard_map` and `pmap` write it down
        for data parallelism, each device with a copy of all parameters.
      data: Data parallelism: devices along the axis that splits the batch only; -1 for the rest.
      fsdp: Fully sharded data parallelism: devices along the axis that splits the batch, and
        parameters while they are not used; -1 for the rest.
      tensor: Tensor parallelism: devices along the axis that splits parameters and what is computed
        with them; -1 for the rest.
      rules: Pairs of a logical axis (`layers/parameters.py` lists them) and the mesh axis over
        which parameters are split along it, if their size is divisible, such as
        `(("heads", "tensor"), ("feed_forward", "tensor"))`; None for axes that stay whole. If two
        axes of a parameter are to be split over the same mesh axis, the first rule counts.
    """

    strategy: str = setting("jit")
    data: int = setting(REST, at_least=REST)
    fsdp: int = setting(1, at_least=REST)
    tensor: int = setting(1, at_least=REST)
    rules: tuple[Rule, ...] = setting(())

    def __post_init__(self) -> None:
        """Rejects unknown strategies, and sizes and rules that contradict one another."""
        try:
            limits = {"choices": STRATEGIES.names(), "own": STRATEGIES.own}
            check_limits(self.strategy, limits, "strategy")
        except ConfigError as error:
            raise ValueError(str(error)) from None
        for axis in AXES:
            if getattr(self, axis) == 0:
                raise ValueError(f"{axis}: expected at least 1, or -1 for the rest, found 0")
        rest = [axis for axis in AXES if getattr(self, axis) == REST]
        if len(rest) > 1:
            raise ValueError(
                f"{rest[1]}: expected -1 for one axis only, found it for {rest[0]} too"
            )
        if not getattr(STRATEGIES.find(self.strategy), "SPLITS_PARAMETERS", False):
            self._check_that_nothing_is_split()
        for index, rule in enumerate(self.rules):
            _check_rule(f"rules[{index}]", *rule)
        logical = [rule[0] for rule in self.rules]
        for index, name in enumerate(logical):
            if name in logical[:index]:
                raise ValueError(f"rules[{index}]: expected one rule for {name!r}, found two")

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


def _check_rule(where: str, logical: str, over: Any) -> None:
    if over is not None and not isinstance(over, str):  # of old, a pattern of paths and mesh axes
        raise ValueError(
            f"{where}: expected a logical axis and an axis of the mesh, such as "
            f"('heads', 'tensor'), found ({logical!r}, {over!r})"
        )
    if over is not None and over not in AXES:
        raise ValueError(f"{where}: expected an axis of {', '.join(AXES)}, found {over!r}")
