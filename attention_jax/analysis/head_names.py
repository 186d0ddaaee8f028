"""Names of attention heads: their layer and their number in it, both counted from 0."""

import re
from collections.abc import Iterator, Mapping

from attention_jax.layers.source import source_read_by
from attention_jax.types import Params


def natural_order(path: tuple[str, ...]) -> list[list[tuple[int, str]]]:
    """Natural sort order: returns a key by which `layer_10` comes after `layer_2`."""
    return [
        [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
        for name in path
    ]


def modules(params: Params) -> list[tuple[str, ...]]:
    """Lists the paths of a model's modules, layer by layer; the reverse direction is left out."""
    found = [path for path in _modules(params, ()) if path[:1] != ("reverse",)]
    return sorted(found, key=natural_order)


def cross_heads(params: Params, number: int) -> list[tuple[str, int]]:
    """Cross-attention heads: finds the modules of the heads that attend to the source.

    A mechanism may have no parameters, and then has no module. Its place is taken by the layer norm
    beside it, and where there is none either, all heads are said to be in a module `attention`.

    Args:
      params: The parameters of the model.
      number: How many such heads there are in all layers together.

    Returns:
      The path of each head's module and its number in it, in the order of `head_weights`.
    """
    suffix = "_norm"
    layers = [
        "/".join(path).removesuffix(suffix)
        for path in modules(params)
        if path[-1].removesuffix(suffix) == "attention"
    ]
    layers = list(dict.fromkeys(layers))  # `attention` and `attention_norm` are one place
    if not layers or number % len(layers):
        layers = ["attention"]
    return [(layer, head) for layer in layers for head in range(number // len(layers))]


def layer_number(layer: str) -> int | None:
    """Returns the number of the layer that a module is in, by its path; None if in no layer."""
    found = re.search(r"(?:^|/)layer_(\d+)(?:/|$)", layer)
    return int(found[1]) if found else None


def side_of(layer: str) -> str:
    """Self-attention: returns the module whose layer it is, such as `encoder_fr` or `decoder`."""
    return layer.split("/")[-3]


def attended_field(layer: str) -> str:
    """Self-attention: returns the field whose positions a layer relates: a source's, or `target`.

    Args:
      layer: Its path, such as `encoder_fr/layer_0/self_attention`, of the source `fr`.
    """
    side = side_of(layer)
    return "target" if side == "decoder" else source_read_by(side)


def head_name(layer: str, number: int) -> str:
    """Returns the name of a head among those of its side, such as `layer 0 head 1`."""
    place = layer_number(layer)
    return f"head {number}" if place is None else f"layer {place} head {number}"


def cross_head_names(params: Params, number: int) -> list[str]:
    """Cross-attention heads: returns the names of the heads that attend to the source."""
    return [head_name(*place) for place in cross_heads(params, number)]


def _modules(params: Params, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, value in params.items():
        if isinstance(value, Mapping):
            yield (*path, name)
            yield from _modules(value, (*path, name))
