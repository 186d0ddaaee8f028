"""Coverage and other trackers: what attention carries from one query to the next.

Each function returns a `Tracker`, an (init, update) pair of pure functions, to be named in an
`AttentionSpec`. A score reads the value from before the query; the update then adds what the query
attended to. Gradients flow back through all earlier weights.
"""

from collections.abc import Callable, Mapping

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attention_jax.ops.attend import Tracker
from attention_jax.ops.lookup import look_up
from attention_jax.ops.monotonic import ALIGNMENT
from attention_jax.ops.positions import positions_of_slots
from attention_jax.ops.recurrent import CELLS
from attention_jax.ops.summation import accumulation_dtype, upcast
from attention_jax.types import AttentionOutput, Memory, Params, State


def previous_weights() -> Tracker:
    """Previous weights: carries those of the query before; zeros at first.

    Source:
      Cohn et al. (2016), section 3.2: alpha_{j-1}, that the Markov condition looks at.
    """

    def update(
        params: Params, value: Array, query: Array, output: AttentionOutput, memory: Memory
    ) -> Array:
        return output.weights[..., 0, :]  # *B 1 S -> *B S

    return Tracker(_no_weights, update)


def previous_alignment() -> Tracker:
    """Carries where the query before stopped, where the next one begins; see `ops.monotonic`.

    Before the first query that is the first slot, whether it may be attended to or not.

    Source:
      Raffel et al. (2017), section 2.2 and eq. 13.
    """

    def init(params: Params, memory: Memory) -> Array:
        places = positions_of_slots(memory)
        # By position, since slots of a memory may stand in any order. Of no slots, the largest
        # number.
        first = places.min(-1, keepdims=True, initial=np.iinfo(np.int32).max)
        is_first = jnp.broadcast_to(places == first, memory.mask.shape)
        return is_first.astype(accumulation_dtype(memory.keys))

    def update(
        params: Params, value: Array, query: Array, output: AttentionOutput, memory: Memory
    ) -> Array:
        return output.aux[ALIGNMENT][..., 0, :]  # *B 1 S -> *B S: one query

    return Tracker(init, update)


def coverage(inverse_fertility: Callable[[Memory], Float[Array, "*B S"]] | None = None) -> Tracker:
    """Coverage: carries the sum of all earlier weights, per slot and relative to its fertility.

    C_0 = 0;   C_t[s] = C_{t-1}[s] + weights_t[s] / fertility[s]

    Args:
      inverse_fertility: From a memory to 1 / fertility[s], the part of each slot that one target
        word accounts for; one everywhere if not given. The fertility itself would not do: where
        it is small, its square, which the gradient of a quotient divides by, underflows.

    Source:
      Tu et al. (2016), on linguistic coverage. Without fertility also See et al. (2017),
      section 2.3, eq. 10, and the local fertility of Cohn et al. (2016), section 3.3.
    """

    def update(
        params: Params, value: Array, query: Array, output: AttentionOutput, memory: Memory
    ) -> Array:
        attended = output.weights[..., 0, :]  # *B 1 S -> *B S
        if inverse_fertility is not None:
            attended = attended * inverse_fertility(memory)
        return value + attended

    return Tracker(_no_weights, update)


def neural_coverage(depth: int, cell: str) -> Tracker:
    """Neural coverage: carries a vector for each slot, which a small recurrent network updates.

    C_t[s] = cell(C_{t-1}[s]; weights_t[s] w_a + h[s] W_h + query_t W_s), C_0 = 0

    `cell` is `tanh`, C' = tanh(C W_c + input), or `gru`, with gates that reset before the product.

    Args:
      depth: Depth d of a coverage vector.
      cell: `tanh` or `gru`.

    Returns:
      A tracker of values `*B S d`. It reads the parameters `coverage_recurrent` `d G` (W_c),
      `coverage_weight` `G` (w_a) and `coverage_query` `Dq G` (W_s), with G = d or, for the gates
      of a GRU, 3 d, and the memory's `aux["coverage_input"]` `*B S G`: h W_h, computed once.

    Source:
      Tu et al. (2016), on coverage by a neural network.
    """

    def init(params: Params, memory: Memory) -> Array:
        return jnp.zeros((*memory.mask.shape, depth), memory.keys.dtype)

    def update(
        params: Params, value: Array, query: Array, output: AttentionOutput, memory: Memory
    ) -> Array:
        # Each slot has a state of its own: the slots are the batch of this little network.
        weights = jnp.swapaxes(output.weights, -1, -2)  # *B 1 S -> *B S 1
        # Upcast, since a parameter's gradient is a sum over all slots: *B S 1, *B S G, *B 1 G.
        entering = (
            weights * upcast(params["coverage_weight"])
            + upcast(memory.aux["coverage_input"])
            + upcast(query @ params["coverage_query"])
        ).astype(value.dtype)
        recurrent = params["coverage_recurrent"]
        if cell == "tanh":
            return jnp.tanh(value @ recurrent + entering)
        gru = CELLS["gru_reset_before"]
        carry = gru.step({"recurrent": recurrent}, {"hidden": value}, gru.split(entering), None)
        return carry["hidden"]

    return Tracker(init, update)


def coverage_embedding(update: str, weights: str) -> Tracker:
    """Coverage embedding: carries what is left to translate of each slot, at first all of it.

    c_0[s] = table[id of s];   c_t[s] = GRU(c_{t-1}[s]; y_t W_y + weights_t[s] w_a), or
    c_t[s] = c_{t-1}[s] - weights_t[s] (y_t W_y)

    y_t is the embedded word that the decoder wrote after query t, so that the value becomes c_t
    when the word is observed, before query t + 1. Where nothing has been attended to, as before
    the first query, an observed word changes nothing.

    Args:
      update: `gru`, whose gates reset before the product, or `subtract`.
      weights: Name of the tracker that carries the weights of the query before.

    Returns:
      A tracker of values `*B S C`. It reads the parameters `coverage_table` `V C`, and
      `coverage_word` `E G` (W_y) with G = C or, for a GRU, G = 3 C beside `coverage_weight` `G`
      (w_a) and `coverage_recurrent` `C G`; the memory's `aux["source_ids"]` `*B S`; and, of what
      is observed, `written_word` `*B E`.

    Source:
      Mi, Sankaran, Wang and Ittycheriah (2016), "Coverage embedding models for neural machine
      translation", EMNLP.

    Deviations:
      Where exactly the GRU resets, and that it has no biases, is our choice, as for Tu et al.
    """

    def init(params: Params, memory: Memory) -> Array:
        if "source_ids" not in memory.aux:
            raise ValueError(
                "source_ids: expected in the memory, for coverage embeddings, found "
                f"{sorted(memory.aux) or 'nothing'}"
            )
        return look_up(params["coverage_table"], memory.aux["source_ids"])

    def keep(
        params: Params, value: Array, query: Array, output: AttentionOutput, memory: Memory
    ) -> Array:
        return value

    def observe(
        params: Params, value: Array, state: State, observed: Mapping[str, Array], memory: Memory
    ) -> Array:
        attended = state[weights][..., None]  # *B S -> *B S 1
        word = upcast(observed["written_word"] @ params["coverage_word"])[..., None, :]
        if update == "subtract":
            return (upcast(value) - attended * word).astype(value.dtype)
        gru = CELLS["gru_reset_before"]
        entering = word + attended * upcast(params["coverage_weight"])
        gates = gru.split(entering.astype(value.dtype))
        recurrent = {"recurrent": params["coverage_recurrent"]}
        new = gru.step(recurrent, {"hidden": value}, gates, None)["hidden"]
        # A GRU changes its state whatever its input is; BOS must change nothing.
        has_attended = jnp.any(attended > 0, axis=-2, keepdims=True)
        return jnp.where(has_attended, new, value)

    return Tracker(init, keep, observe, observes=("written_word",))


def _no_weights(params: Params, memory: Memory) -> Float[Array, "*B S"]:
    return jnp.zeros(memory.mask.shape, accumulation_dtype(memory.keys))
