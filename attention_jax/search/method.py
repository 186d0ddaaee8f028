"""Search loop over positions, which may stop when its arrays are full and go on in larger ones."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool

from attention_jax.ops.predictions import Predictions
from attention_jax.search.hypotheses import Hypotheses

# From a state and the last token of every hypothesis to predictions, attention and the next state.
Step = Callable[[Any, Array], tuple[Predictions, Array, Any]]


class Method(NamedTuple):
    """Search method: what it does at each position, as functions of a carry.

    A carry is a pair, of the next position and a tree of arrays. Those that have an axis of
    positions hold zeros where nothing was written yet, so that they can be made longer by zeros.

    Attributes:
      begin: From the number of positions that there is room for to the first carry.
      advance: From one carry to the next.
      is_alive: Whether anything is left to be continued.
      finish: From a carry to the hypotheses that have ended.
    """

    begin: Callable[[int], Any]
    advance: Callable[[Any], Any]
    is_alive: Callable[[Any], Bool[Array, ""]]
    finish: Callable[[Any], Hypotheses]


class Stage(NamedTuple):
    """Stage of a search: where it stands after the positions that there was room for.

    Attributes:
      carry: What to go on with; None where there was room for the longest output.
      hypotheses: Those that have ended: all that will, if it is done.
      is_done: Whether there is nothing to go on with.
    """

    carry: Any
    hypotheses: Hypotheses
    is_done: Bool[Array, ""]


def advance_all(method: Method, carry: Any, room: int) -> Any:
    """Search loop: advances until nothing is left to be continued, or there is no room."""

    def goes_on(carry: Any) -> Array:
        return (carry[0] < room) & method.is_alive(carry)  # carry[0] is the next position

    return lax.while_loop(goes_on, method.advance, carry)


def enlarged(carry: Any, larger: Any) -> Any:
    """Pads arrays with zeros at their ends, to the shapes of those of another carry."""

    def pad(array: Array, like: Array) -> Array:
        # Positions not yet written are zeros at the end, in every array that has an axis of them.
        widths = [(0, new - old) for old, new in zip(array.shape, like.shape, strict=True)]
        return jnp.pad(array, widths) if widths else array

    return jax.tree.map(pad, carry, larger)
