"""Layers of Marian and BART: multi-head attention with biases, layer norms, feed-forward layers.

A linear layer of PyTorch has the kernel `outputs x inputs`; here, kernels are `inputs x outputs`,
and those of heads have the heads in front. A bias of keys adds the same to all scores of a query,
which changes no weights: it is read, and left out.
"""

from typing import Any, NamedTuple

import numpy as np

from attention_jax.runs.foreign.folder import Tensors


class LayerSizes(NamedTuple):
    """Sizes of a stack's layers.

    Attributes:
      layers: How many there are.
      depth: Of the residual stream.
      width: Of the feed-forward layers.
      heads: How many heads each attention has.
    """

    layers: int
    depth: int
    width: int
    heads: int


def stack(tensors: Tensors, place: str, sizes: LayerSizes, *, attends: bool) -> dict[str, Any]:
    """Reads the layers of an encoder, or of a decoder, which `attends` to a source as well."""
    tree = {}
    for number in range(sizes.layers):
        layer = f"{place}.layers.{number}"
        tree[f"layer_{number}"] = {
            "self_attention": _attention(tensors, f"{layer}.self_attn", sizes),
            "self_norm": norm(tensors, f"{layer}.self_attn_layer_norm", sizes.depth),
            "feed_forward": _feed_forward(tensors, layer, sizes),
            "feed_forward_norm": norm(tensors, f"{layer}.final_layer_norm", sizes.depth),
        }
        if attends:
            tree[f"layer_{number}"] |= {
                "attention": _attention(tensors, f"{layer}.encoder_attn", sizes),
                "attention_norm": norm(tensors, f"{layer}.encoder_attn_layer_norm", sizes.depth),
            }
    return tree


def norm(tensors: Tensors, place: str, depth: int) -> dict[str, np.ndarray]:
    """Reads a layer norm."""
    scale, bias = (tensors.take(f"{place}.{name}", depth) for name in ("weight", "bias"))
    return {"scale": scale, "bias": bias}


def split_heads(kernel: np.ndarray, heads: int) -> np.ndarray:
    """Returns a projection `H k x D` of all heads as `H x D x k`."""
    depth = kernel.shape[1]
    return kernel.reshape(heads, -1, depth).swapaxes(1, 2)


def joined_heads(kernel: np.ndarray, heads: int) -> np.ndarray:
    """Returns the output projection `D x H v` of all heads as `H x v x D`."""
    return kernel.T.reshape(heads, -1, kernel.shape[0])


def _attention(tensors: Tensors, place: str, sizes: LayerSizes) -> dict[str, np.ndarray]:
    depth, heads = sizes.depth, sizes.heads
    tree = {}
    for name, letter in (("query", "q"), ("key", "k"), ("value", "v")):
        kernel = tensors.take(f"{place}.{letter}_proj.weight", depth, depth)
        bias = tensors.take(f"{place}.{letter}_proj.bias", depth)
        tree[f"{name}_projection"] = split_heads(kernel, heads)
        if name != "key":
            tree[f"{name}_bias"] = bias.reshape(heads, -1)
    kernel = tensors.take(f"{place}.out_proj.weight", depth, depth)
    tree["output_kernel"] = joined_heads(kernel, heads)
    tree["output_bias"] = tensors.take(f"{place}.out_proj.bias", depth)
    return tree


def _feed_forward(tensors: Tensors, layer: str, sizes: LayerSizes) -> dict[str, np.ndarray]:
    depth, width = sizes.depth, sizes.width
    return {
        "hidden": tensors.take(f"{layer}.fc1.weight", width, depth).T,
        "hidden_bias": tensors.take(f"{layer}.fc1.bias", width),
        "output": tensors.take(f"{layer}.fc2.weight", depth, width).T,
        "output_bias": tensors.take(f"{layer}.fc2.bias", depth),
    }
