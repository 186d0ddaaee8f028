"""Names of attention heads: their layer and their number in it, both from 0, as in configs."""

import re
from collections.abc import Iterator, Mapping

from attention_jax.types import Params


def natural_order(path: tuple[str, ...]) -> list[list[tuple[int, str]]]:
    """Sorts the names of a path so that `layer_10` comes after `layer_2`."""
    return [
        [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
        for name in path
    ]


def modules(params: Params) -> list[tuple[str, ...]]:
    """Returns the paths of all modules, layer by layer; of two directions the forward one's."""
    found = [path for path in _modules(params, ()) if path[:1] != ("reverse",)]
    return sorted(found, key=natural_order)


def cross_heads(params: Params, number: int) -> list[tuple[str, int]]:
    """Returns where the heads are that attend to the source.

    Args:
      params: Of the model.
      number: How many such heads there are, in all layers.

    Returns:
      The path of each head's module and its number in it, in the order of `head_weights`. Without
      parameters of their own they are in the layers that normalise around attention or, where none
      does, those of one module, `attention`.
    """
    suffix = "_norm"
    layers = [
        "/".join(path).removesuffix(suffix)
        for path in modules(params)
        if path[-1].removesuffix(suffix) == "attention"
    ]
    layers = list(dict.fromkeys(layers))
    if not layers or number % len(layers):
        layers = ["attention"]
    return [(layer, head) for layer in layers for head in range(number // len(layers))]


def layer_number(layer: str) -> int | None:
    """Returns which layer of its stack a module is in, by its path; None where it is in none."""
    found = re.search(r"(?:^|/)layer_(\d+)(?:/|$)", layer)
    return int(found[1]) if found else None


def head_name(layer: str, number: int) -> str:
    """Returns what a head is called where its side is known, such as `layer 0 head 1`."""
    place = layer_number(layer)
    return f"head {number}" if place is None else f"layer {place} head {number}"


def cross_head_names(params: Params, number: int) -> list[str]:
    """Returns the names of the heads that attend to the source."""
    return [head_name(*place) for place in cross_heads(params, number)]


def _modules(params: Params, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, value in params.items():
        if isinstance(value, Mapping):
            yield (*path, name)
            yield from _modules(value, (*path, name))
