"""Combination of final states: what several encoders end with becomes one decoder's first state.

Layer by layer, for sources k with final states h_k and cells c_k, which have the decoder's depth:

  basic       h = tanh(sum_k h_k W_k);   c = sum_k c_k
  child_sum   i = sig(sum_k h_k W_k^i);  o = sig(sum_k h_k W_k^o);  u = tanh(sum_k h_k W_k^u)
              f_k = sig(h_k W_k^f)
              c = i u + sum_k f_k c_k;   h = o tanh(c)

Both are without biases. `basic` serves cells without c as well, of which it combines h alone.

Source: Zoph and Knight (2016), section 2, basic and child-sum method; the latter is the cell of a
tree of Tai, Socher and Manning (2015).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from attention_jax.layers.encoder import Sources
from attention_jax.layers.parameters import Parameter
from attention_jax.types import Array, Params, State

STATE_COMBINATIONS = ("basic", "child_sum")


def combination_parameters(
    name: str, sources: Sequence[str], hidden_dim: int, num_layers: int
) -> dict[str, Any]:
    """Returns the parameters of a combination: a kernel for each source, in each layer."""
    if name == "basic":
        kernel = Parameter.of("kernel", annotation=hidden_dim, hidden=hidden_dim)
    else:  # the gates i, o, u and f side by side
        kernel = Parameter.of("kernel", annotation=hidden_dim, gates=4 * hidden_dim)
    return {f"layer_{layer}": dict.fromkeys(sources, kernel) for layer in range(num_layers)}


def combined_carries(
    name: str, params: Params, sources: Sources, entries: Sequence[str]
) -> list[State]:
    """Combines the final carries of all sources, layer by layer.

    Args:
      name: The combination.
      params: Its parameters.
      sources: The encoded sources, whose encoders are recurrent.
      entries: What a carry consists of: `hidden`, and `cell` where there is one.
    """
    combine = {"basic": basic, "child_sum": child_sum}[name]
    layers = range(len(next(iter(sources.values())).finals))
    return [
        combine(
            params[f"layer_{layer}"],
            {
                source: {entry: encoded.final_entry(layer, entry) for entry in entries}
                for source, encoded in sources.items()
            },
        )
        for layer in layers
    ]


def basic(
    kernels: Mapping[str, Float[Array, "D D"]], carries: Mapping[str, Mapping[str, Array]]
) -> State:
    """Basic combination: projects the states side by side into one, and adds the cells."""
    states = (carries[source]["hidden"] @ kernel for source, kernel in kernels.items())
    combined = {"hidden": jnp.tanh(sum(states))}
    if all("cell" in carry for carry in carries.values()):
        combined["cell"] = sum(carry["cell"] for carry in carries.values())
    return combined


def child_sum(
    kernels: Mapping[str, Float[Array, "D G"]], carries: Mapping[str, Mapping[str, Array]]
) -> State:
    """Child-sum combination: a cell of an LSTM over a tree, with a forget gate for each source."""
    gates = {
        source: jnp.split(carries[source]["hidden"] @ kernel, 4, axis=-1)
        for source, kernel in kernels.items()
    }
    enter, leave, update = (sum(parts) for parts in zip(*(g[:3] for g in gates.values())))  # noqa: B905
    cell = jax.nn.sigmoid(enter) * jnp.tanh(update)
    for source, (*_, forget) in gates.items():
        cell = cell + jax.nn.sigmoid(forget) * carries[source]["cell"]
    return {"hidden": jax.nn.sigmoid(leave) * jnp.tanh(cell), "cell": cell}
