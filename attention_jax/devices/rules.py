"""By which axes every array of a training is split, chosen by the path of its parameter."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

from attention_jax.devices.config import Rule
from attention_jax.errors import ConfigError
from attention_jax.types import Params
from attention_jax.updates.state import TrainState

# Of a model, or of those of both directions; layers have an `output` of their own.
_TABLE = re.compile(r"^((forward|reverse)/)?(((source|target)_)?embedding|output|output_bias)$")
_SMALLEST = 1024  # numbers; fetching the parts of a smaller parameter takes longer than it saves

Shapes = Mapping[str, tuple[int, ...]]
Axes = tuple[str | None, ...]


def state_shardings(
    shapes: TrainState, mesh: Mesh | AbstractMesh, rules: Sequence[Rule] = ()
) -> TrainState:
    """Returns the placement of every leaf of a state.

    Args:
      shapes: Its `jax.eval_shape`.
      mesh: The devices, or an abstract mesh in their place.
      rules: Of the config.

    Raises:
      ConfigError: If a rule says nothing or something impossible, or if an axis splits nothing.
    """
    parameters = {
        path_of(path): tuple(leaf.shape) for path, leaf in jax.tree.leaves_with_path(shapes.params)
    }
    axes = parameter_axes(parameters, dict(mesh.shape), rules)
    longest_first = sorted(parameters, key=len, reverse=True)

    def place(path: Any, leaf: Any) -> NamedSharding:
        # A moment's path ends in that of its parameter, such as `optimizer/1/mu/output`.
        name = path_of(path)
        for parameter in longest_first:
            if name.endswith(f"/{parameter}") and tuple(leaf.shape) == parameters[parameter]:
                return NamedSharding(mesh, PartitionSpec(*axes[parameter]))
        return NamedSharding(mesh, PartitionSpec())

    return jax.tree.map_with_path(place, shapes)


def parameter_axes(
    shapes: Shapes, sizes: Mapping[str, int], rules: Sequence[Rule] = ()
) -> dict[str, Axes]:
    """Returns the axes by which the dimensions of every parameter are split.

    Args:
      shapes: Of the parameters, by their paths.
      sizes: Of the mesh's axes.
      rules: Of the config.

    Raises:
      ConfigError: As `state_shardings`.
    """
    axes = {}
    for index, rule in enumerate(rules):
        where = f"config.sharding.rules[{index}]"
        left = [path for path in shapes if path not in axes]
        found = [path for path in left if re.search(rule[0], path)]
        if not found:
            such = f", such as {left[0]}" if left else ", and all were named before"
            raise ConfigError(
                f"{where}: expected a pattern that is found in the path of a parameter that no "
                f"rule before it names{such}, found {rule[0]!r}"
            )
        for path in found:
            _check_fit(where, path, shapes[path], rule[1], sizes)
            axes[path] = rule[1]
    for path, shape in shapes.items():
        axes.setdefault(path, _axes_without_rule(path, shape, sizes))
    for axis in ("fsdp", "tensor"):
        if sizes[axis] > 1 and not any(axis in each for each in axes.values()):
            raise ConfigError(
                f"config.sharding.{axis}: expected a size that divides a dimension of a parameter "
                f"to be split over it, found {sizes[axis]}; see config.sharding.rules"
            )
    return axes


def exchange_constraints(shardings: Params) -> tuple[Callable, Callable]:
    """Returns (gather, scatter) for parameters whose placement is given.

    Gathered parameters are whole but for the axis `tensor`. They are fetched once a step: where
    the compiler chooses, it may fetch a recurrent weight anew at every step of a scan.
    """

    def gathered(sharding: NamedSharding) -> NamedSharding:
        kept = (axis if axis == "tensor" else None for axis in sharding.spec)
        return NamedSharding(sharding.mesh, PartitionSpec(*kept))

    whole = jax.tree.map(gathered, shardings)

    def gather(params: Params) -> Params:
        return jax.lax.with_sharding_constraint(params, whole)

    def scatter(gradient: Params) -> Params:
        return jax.lax.with_sharding_constraint(gradient, shardings)

    return gather, scatter


def path_of(path: Any) -> str:
    """Names a leaf as rules do: `decoder/attention/vector`."""
    return jax.tree_util.keystr(path, simple=True, separator="/")


def _axes_without_rule(path: str, shape: tuple[int, ...], sizes: Mapping[str, int]) -> Axes:
    axes: list[str | None] = [None] * len(shape)
    tensor, fsdp = sizes["tensor"], sizes["fsdp"]
    if tensor > 1 and shape and _TABLE.search(path) and shape[0] % tensor == 0:
        axes[0] = "tensor"
    if fsdp > 1 and math.prod(shape) >= _SMALLEST:
        free = [
            dimension
            for dimension, size in enumerate(shape)
            if axes[dimension] is None and size % fsdp == 0
        ]
        if free:
            axes[max(free, key=lambda dimension: shape[dimension])] = "fsdp"
    return tuple(axes) if any(axes) else ()


def _check_fit(
    where: str, path: str, shape: tuple[int, ...], axes: Axes, sizes: Mapping[str, int]
) -> None:
    words = f"{path} of shape {list(shape)}"
    if len(axes) > len(shape):
        raise ConfigError(
            f"{where}: expected at most {len(shape)} axes for {words}, found {len(axes)}"
        )
    for dimension, axis in enumerate(axes):
        if axis is not None and shape[dimension] % sizes[axis]:
            raise ConfigError(
                f"{where}: expected {axis} ({sizes[axis]}) to divide dimension {dimension} of "
                f"{words}, found {shape[dimension]}"
            )
