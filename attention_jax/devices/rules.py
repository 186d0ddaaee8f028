"""Sharding rules: from logical axes of parameters to axes of the device mesh.

As in T5X and Flax, rules name logical axes, which every parameter declares beside its sizes
(`layers/parameters.py` lists them). So a rule also places the parameters of new parts.
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
    """Places every leaf of a training state: parameters by rules, moments as their parameter.

    Args:
      shapes: The state's shapes, from `jax.eval_shape`.
      axes: The logical axes of its parameters, from `Model.parameter_axes`.
      mesh: The devices, or an abstract mesh in their place.
      rules: The config's rules.

    Raises:
      ConfigError: If a rule has no effect or is impossible, or if a mesh axis splits nothing.
    """
    logical = {path_of(path): tuple(leaf) for path, leaf in jax.tree.leaves_with_path(axes)}
    parameters = {
        path_of(path): tuple(leaf.shape) for path, leaf in jax.tree.leaves_with_path(shapes.params)
    }
    split = mesh_axes(parameters, logical, dict(mesh.shape), rules)
    # `a/kernel` ends in `kernel`: the longest path that fits is the right one.
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
    """Chooses for every dimension of every parameter the mesh axis that splits it, or None.

    Args:
      shapes: The parameters' shapes by their paths.
      axes: Their logical axes.
      sizes: Sizes of the mesh axes.
      rules: The config's rules.

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
    """Fully sharded data parallelism: returns (gather, scatter) for placed parameters.

    Gathered parameters are split over `tensor` only. They are gathered once a step; left to
    itself, the compiler may gather a recurrent weight anew at every step of a scan.
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
    """Splits one parameter: by rules, by defaults for axes without a rule, then over `fsdp`."""
    ruled, fsdp = dict(rules), sizes["fsdp"]
    defaults = (rule for rule in DEFAULTS if rule[0] not in ruled)
    split = _by_rules(shape, axes, sizes, (*rules, *defaults))
    if fsdp > 1 and "fsdp" not in split and math.prod(shape) >= _SMALLEST:
        free = [
            dimension
            for dimension, size in enumerate(shape)
            if split[dimension] is None
            and size % fsdp == 0
            # A rule (axis, None) says that this axis stays whole.
            and ruled.get(axes[dimension], "") is not None
        ]
        if free:
            # The largest dimension; of equally large ones, the first.
            split[max(free, key=lambda dimension: shape[dimension])] = "fsdp"
    return tuple(split) if any(split) else ()


def _by_rules(
    shape: tuple[int, ...], axes: tuple[str, ...], sizes: Mapping[str, int], rules: Sequence[Rule]
) -> list[str | None]:
    """Splits one parameter by rules; a mesh axis goes to the first rule that can use it."""
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
    """Raises ConfigError for a rule that splits no parameter, unless it keeps an axis whole."""
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
