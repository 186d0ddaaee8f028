"""Sharding rules: by which axes of the mesh every array of a training is split.

Rules speak of logical axes, which stand beside a parameter's sizes (`layers/parameters.py` lists
them), as those of T5X and Flax do; parts that a rule has never heard of are placed by it, too.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

from attention_jax.devices.config import Rule
from attention_jax.errors import ConfigError
from attention_jax.types import Params
from attention_jax.updates.state import TrainState

DEFAULTS: tuple[Rule, ...] = (("vocab", "tensor"),)
_SMALLEST = 1024  # numbers; fetching the parts of a smaller parameter takes longer than it saves

Shapes = Mapping[str, tuple[int, ...]]
Axes = Mapping[str, tuple[str, ...]]
MeshAxes = tuple[str | None, ...]


def state_shardings(
    shapes: TrainState, axes: Params, mesh: Mesh | AbstractMesh, rules: Sequence[Rule] = ()
) -> TrainState:
    """Returns the placement of every leaf of a state.

    Args:
      shapes: Its `jax.eval_shape`.
      axes: The logical axes of its parameters, from `Model.parameter_axes`.
      mesh: The devices, or an abstract mesh in their place.
      rules: Of the config.

    Raises:
      ConfigError: If a rule says nothing or something impossible, or if an axis splits nothing.
    """
    logical = {path_of(path): tuple(leaf) for path, leaf in jax.tree.leaves_with_path(axes)}
    parameters = {
        path_of(path): tuple(leaf.shape) for path, leaf in jax.tree.leaves_with_path(shapes.params)
    }
    split = mesh_axes(parameters, logical, dict(mesh.shape), rules)
    longest_first = sorted(parameters, key=len, reverse=True)

    def place(path: Any, leaf: Any) -> NamedSharding:
        # A moment's path ends in that of its parameter, such as `optimizer/1/mu/output`.
        name = path_of(path)
        for parameter in longest_first:
            if name.endswith(f"/{parameter}") and tuple(leaf.shape) == parameters[parameter]:
                return NamedSharding(mesh, PartitionSpec(*split[parameter]))
        return NamedSharding(mesh, PartitionSpec())

    return jax.tree.map_with_path(place, shapes)


def mesh_axes(
    shapes: Shapes, axes: Axes, sizes: Mapping[str, int], rules: Sequence[Rule] = ()
) -> dict[str, MeshAxes]:
    """Returns the axes of the mesh by which the dimensions of every parameter are split.

    Args:
      shapes: Of the parameters, by their paths.
      axes: Their logical axes.
      sizes: Of the mesh's axes.
      rules: Of the config.

    Raises:
      ConfigError: As `state_shardings`.
    """
    for index, rule in enumerate(rules):
        _check_rule(f"config.sharding.rules[{index}]", rule, shapes, axes, sizes, rules[:index])
    split = {path: _split(shapes[path], axes[path], sizes, rules) for path in shapes}
    for axis in ("fsdp", "tensor"):
        if sizes[axis] > 1 and not any(axis in each for each in split.values()):
            raise ConfigError(
                f"config.sharding.{axis}: expected a size that divides a dimension of a parameter "
                f"to be split over it, found {sizes[axis]}; see config.sharding.rules"
            )
    return split


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
    """Names a leaf: `decoder/attention/vector`."""
    return jax.tree_util.keystr(path, simple=True, separator="/")


def _split(
    shape: tuple[int, ...], axes: tuple[str, ...], sizes: Mapping[str, int], rules: Sequence[Rule]
) -> MeshAxes:
    """Splits one parameter: by rules, by defaults where there is no rule, then over `fsdp`."""
    ruled, fsdp = dict(rules), sizes["fsdp"]
    defaults = (rule for rule in DEFAULTS if rule[0] not in ruled)
    split = _by_rules(shape, axes, sizes, (*rules, *defaults))
    if fsdp > 1 and "fsdp" not in split and math.prod(shape) >= _SMALLEST:
        free = [
            dimension
            for dimension, size in enumerate(shape)
            if split[dimension] is None
            and size % fsdp == 0
            and ruled.get(axes[dimension], "") is not None
        ]
        if free:
            split[max(free, key=lambda dimension: shape[dimension])] = "fsdp"
    return tuple(split) if any(split) else ()


def _by_rules(
    shape: tuple[int, ...], axes: tuple[str, ...], sizes: Mapping[str, int], rules: Sequence[Rule]
) -> list[str | None]:
    """Splits one parameter where that divides it; an axis of the mesh goes to the first rule."""
    split: list[str | None] = [None] * len(shape)
    for logical, over in rules:
        if logical not in axes or over is None or over in split or sizes[over] == 1:
            continue
        dimension = axes.index(logical)
        if shape[dimension] % sizes[over] == 0:
            split[dimension] = over
    return split


def _check_rule(
    where: str,
    rule: Rule,
    shapes: Shapes,
    axes: Axes,
    sizes: Mapping[str, int],
    before: Sequence[Rule],
) -> None:
    """Raises `ConfigError` unless a rule splits a parameter, or says that an axis stays whole."""
    logical, over = rule
    found = {path: names.index(logical) for path, names in axes.items() if logical in names}
    if not found:
        known = sorted({name for names in axes.values() for name in names})
        raise ConfigError(
            f"{where}: expected a logical axis of a parameter, one of {', '.join(known)}, "
            f"found {logical!r}"
        )
    if over is None or sizes[over] == 1:
        return
    divisible = [path for path in found if shapes[path][found[path]] % sizes[over] == 0]
    if not divisible:
        path = next(iter(found))
        raise ConfigError(
            f"{where}: expected {over} ({sizes[over]}) to divide the axis {logical!r} of a "
            f"parameter, found {shapes[path][found[path]]} in {path}"
        )
    if all(over in _by_rules(shapes[path], axes[path], sizes, before) for path in divisible):
        raise ConfigError(
            f"{where}: expected an axis of a parameter that no rule before it splits over "
            f"{over!r}, found {logical!r}"
        )
