"""Bridges: from what the encoder ends with to the state that the decoder starts from.

  last           tanh(W [final states of the layer's directions])
  backward       tanh(W final state of the backward reading), which has just read the first word
                 (Bahdanau et al. 2015, appendix A.2.2)
  mean           tanh(W mean annotation) (Sennrich et al. 2017, Nematus)
  copy           the encoder's final states themselves, layer by layer (Sutskever et al. 2014,
                 Luong et al. 2015)
  copy_backward  likewise, of a layer that reads both ways those of the backward reading
                 (tensorflow/nmt, gnmt_model)
  zero           zeros
  basic, child_sum
                 what all sources end with, layer by layer (Zoph and Knight 2016; see
                 `state_combination`)

All but these two start from the first source.
"""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from attention_jax.layers.encoder import Encoded, SequenceEncoder, Sources, first_source
from attention_jax.layers.parameters import affine
from attention_jax.layers.state_combination import (
    STATE_COMBINATIONS,
    combination_parameters,
    combined_carries,
)
from attention_jax.ops.masks import masked_mean
from attention_jax.ops.products import add_bias
from attention_jax.ops.recurrent import CELLS
from attention_jax.types import Array, Params, State

BRIDGES = ("last", "backward", "mean", "copy", "copy_backward", "zero", *STATE_COMBINATIONS)
_COPIES = ("copy", "copy_backward")


def check_bridge(
    bridge: str,
    encoders: Mapping[str, SequenceEncoder],
    cell: str,
    hidden_dim: int,
    num_layers: int,
) -> None:
    """Checks a bridge: raises `ValueError` if encoders do not end with what it needs."""
    if bridge not in STATE_COMBINATIONS:
        _check_encoder(bridge, next(iter(encoders.values())), cell, hidden_dim, num_layers)
        return
    if len(encoders) < 2:
        raise ValueError(
            f"decoder.bridge: expected several sources for {bridge!r}, found one; 'copy' and "
            "'last' start from one"
        )
    if bridge == "child_sum" and cell != "lstm":
        raise ValueError(f"decoder.bridge: expected an lstm for {bridge!r}, found {cell}")
    for encoder in encoders.values():
        _check_encoder(bridge, encoder, cell, hidden_dim, num_layers)


def _check_encoder(
    bridge: str, encoder: SequenceEncoder, cell: str, hidden_dim: int, num_layers: int
) -> None:
    finals = encoder.finals
    if bridge not in ("mean", "zero") and not finals:
        raise ValueError(
            "decoder.bridge: expected 'mean' or 'zero' with an encoder that has no final state, "
            f"found {bridge!r}"
        )
    if bridge == "backward" and "backward" not in finals[-1].readings:
        raise ValueError(
            "decoder.bridge: expected a top encoder layer that reads backward, found none"
        )
    if bridge not in (*_COPIES, *STATE_COMBINATIONS):
        return
    # No parameters could change the depth or the kind of a carry: all must agree.
    found = [
        (final.depth if bridge == "copy_backward" else final.width, CELLS[final.cell].entries)
        for final in finals
    ]
    expected = [(hidden_dim, CELLS[cell].entries)] * num_layers
    if found != expected:
        raise ValueError(
            f"decoder.bridge: expected an encoder of {num_layers} layers of depth {hidden_dim} to "
            f"copy into {cell}, found {len(finals)} of depths "
            f"{[depth for depth, _ in found]} of {finals[0].cell}"
        )


def bridge_parameters(
    bridge: str,
    encoders: Mapping[str, SequenceEncoder],
    cell: str,
    hidden_dim: int,
    num_layers: int,
) -> dict[str, Any]:
    """Returns the parameters of a bridge from the sources' encoders into `num_layers` cells."""
    check_bridge(bridge, encoders, cell, hidden_dim, num_layers)
    if bridge in (*_COPIES, "zero"):
        return {}
    if bridge in STATE_COMBINATIONS:
        return combination_parameters(bridge, list(encoders), hidden_dim, num_layers)
    tree, encoder = {}, next(iter(encoders.values()))
    for layer in range(num_layers):
        depth = encoder.output_dim
        if bridge != "mean":
            final = encoder.finals[_source_layer(layer, num_layers, len(encoder.finals))]
            depth = final.depth if bridge == "backward" else final.width
        for entry in CELLS[cell].entries:
            tree[f"layer_{layer}_{entry}"] = affine(annotation=depth, hidden=hidden_dim)
    return tree


def bridge_carries(
    bridge: str, params: Params, sources: Sources, cell: str, hidden_dim: int, num_layers: int
) -> list[State]:
    """Bridge: returns the initial carries of a decoder's layers, made from the encoded sources."""
    if bridge in STATE_COMBINATIONS:
        return combined_carries(bridge, params, sources, CELLS[cell].entries)
    encoded = first_source(sources)
    batch, dtype = encoded.mask.shape[0], encoded.annotations.dtype
    if bridge == "zero":
        return [CELLS[cell].zeros((batch, hidden_dim), dtype) for _ in range(num_layers)]
    carries = []
    for layer in range(num_layers):
        carry = {}
        for entry in CELLS[cell].entries:
            if bridge in _COPIES:
                finals = encoded.finals[layer]
                is_whole = bridge == "copy" or "backward" not in finals
                # The directions side by side, unless only the backward one is wanted and there.
                carry[entry] = (
                    encoded.final_entry(layer, entry) if is_whole else finals["backward"][entry]
                )
                continue
            weights = params[f"layer_{layer}_{entry}"]
            final = _final(bridge, encoded, layer, num_layers)
            # Each entry is made from the final hidden state, by a kernel of its own.
            carry[entry] = jnp.tanh(add_bias(final @ weights["kernel"], weights["bias"]))
        carries.append(carry)
    return carries


def _source_layer(layer: int, num_layers: int, num_encoder_layers: int) -> int:
    """Returns the encoder layer that starts a decoder layer: its peer, or else the top one."""
    return layer if num_layers == num_encoder_layers else num_encoder_layers - 1


def _final(bridge: str, encoded: Encoded, layer: int, num_layers: int) -> Array:
    if bridge == "mean":
        return masked_mean(encoded.averaged, encoded.mask)  # the same for all layers
    source = _source_layer(layer, num_layers, len(encoded.finals))
    if bridge == "backward":
        return encoded.finals[source]["backward"]["hidden"]
    return encoded.final_entry(source, "hidden")
