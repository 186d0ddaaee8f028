"""The long short-term memory-network: an LSTM that attends to all of its earlier states.

  a_t = softmax over i < t of v . tanh(W_h h_i + W_x x_t + W_s s_{t-1})
  s_t, r_t = sum_i a_t(i) h_i, sum_i a_t(i) c_i        (h~ and c~ in the paper)
  h_t, c_t = LSTM step from (s_t, r_t) with x_t

The states so far are a tape that grows by one slot at each step. Differentiated as any loop, every
step would keep a copy of the whole tape, which is quadratic in the length. Here only the last tape
is kept: what a step saw is that tape with the later slots masked. The backward loop carries the
tape's gradient, and gradients of matrices are one product over all steps, as in `deferred_scan`.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention_jax.ops.attend import AttentionSpec, attend
from attention_jax.ops.custom_gradients import with_backward
from attention_jax.ops.masks import time_major, zero_padding
from attention_jax.ops.recurrent import CELLS, Gates, lstm_step
from attention_jax.ops.scores import additive_scores
from attention_jax.ops.summation import upcast
from attention_jax.types import Memory, Params, State

# Keys are projected as they are written, and queries with their token, so that a score is left.
SPEC = AttentionSpec(
    lambda params, query, memory, state, positions: additive_scores(
        query, memory.keys, params["vector"]
    )
)


_PARAMETERS = ("recurrent", "key_kernel", "summary_kernel", "vector")


class _Tape(NamedTuple):
    """Tape of states: `keys` `B S Da` are W_h h, `values` `B S 2D` are h and c side by side."""

    keys: Array
    values: Array


class _Inputs(NamedTuple):
    """Inputs of all steps, time-major: each token's part of gates and query, and its place."""

    gates: Gates
    query: Array
    is_real: Array
    position: Array


def run_lstmn(
    params: Params,
    projected: Float[Array, "B S G"],
    query: Float[Array, "B S Da"],
    mask: Bool[Array, "B S"],
    *,
    reverse: bool = False,
    keep: Float[Array, "B D"] | None = None,
) -> tuple[Float[Array, "B S D"], State]:
    """LSTMN: runs an LSTM whose state is an attentive summary of its earlier states.

    Args:
      params: `recurrent` `D 4D` as `lstm_step` has it; of the intra-attention, `key_kernel`
        `D Da` (W_h), `summary_kernel` `D Da` (W_s) and `vector` `Da` (v).
      projected: x_t's part of the gates, biases included.
      query: x_t's part of the query, W_x x_t.
      mask: True at real tokens.
      reverse: Whether to run from right to left.
      keep: Variational dropout: the summary's factors where it meets the gates.

    Returns:
      (hidden states, zero at padding; the last carry).

    Source:
      Cheng, Dong and Lapata (2016), section 3.1, eq. 5-10.

    Deviations:
      At the first token there is nothing to attend to, and the summaries are zeros. The authors'
      program starts from a slot of zeros, to which later tokens attend too, and its query has no
      summary.
    """
    if not mask.shape[1]:  # the tape has to have a slot: one of padding
        rows = jax.tree.map(
            lambda row: jnp.pad(row, [(0, 0), (0, 1), (0, 0)][: row.ndim]), (projected, query, mask)
        )
        hidden, final = run_lstmn(params, *rows, reverse=reverse, keep=keep)
        return hidden[:, :0], final
    cell = CELLS["lstm"]
    by_time = jax.tree.map(time_major, (cell.split(projected), query, mask))  # B S G -> S B G
    inputs = _Inputs(*by_time, jnp.arange(mask.shape[1]))
    run, forward, backward = (
        functools.partial(function, reverse) for function in (_run, _run_forward, _run_backward)
    )
    params = {name: params[name] for name in _PARAMETERS}
    values = with_backward(run, forward, backward)(params, keep, inputs)
    values = zero_padding(values, mask)
    hidden, _ = _halves(values)
    # B S 2D -> B 2D, at each row's last token.
    final = jnp.take_along_axis(values, _last(mask, reverse)[:, None, None], axis=1)[:, 0]
    return hidden, dict(zip(cell.entries, _halves(final), strict=True))


def _last(mask: Array, reverse: bool) -> Array:
    """Returns `B`, where each row's last token is read; without tokens, any place of padding."""
    from_the_end = jnp.argmax(mask if reverse else mask[:, ::-1], axis=1)
    return from_the_end if reverse else mask.shape[1] - 1 - from_the_end


def _read(
    params: Params,
    keep: Array | None,
    allowed: Array,
    vector: Array,
    tape: _Tape,
    gates: Gates,
    query: Array,
) -> tuple[Array, Array]:
    """Reads one token; returns the values that it writes on the tape, and its summary of h."""
    memory = Memory(tape.keys, tape.values, allowed)
    output, _ = attend(SPEC, {"vector": vector}, query[:, None], memory)  # a query axis of one
    hidden, cell = _halves(output.context[:, 0])
    carry = lstm_step(params, {"hidden": hidden, "cell": cell}, gates, keep)
    return jnp.concatenate([carry["hidden"], carry["cell"]], axis=-1), hidden


def _allowed(reverse: bool, is_real: Array, position: Array) -> Array:
    """Returns `B S`, True at the slots that are written before a position is read."""
    places = jnp.arange(is_real.shape[0])
    return is_real.T & (places > position if reverse else places < position)  # S B -> B S


def _run(reverse: bool, params: Params, keep: Array | None, inputs: _Inputs) -> Array:
    return _run_forward(reverse, params, keep, inputs)[0]


def _run_forward(reverse: bool, params: Params, keep: Array | None, inputs: _Inputs) -> Any:
    length, batch, depth = inputs.gates[0].shape
    dtype = inputs.query.dtype

    def step(carry: tuple[_Tape, Array], inputs_now: _Inputs) -> tuple[Any, Any]:
        tape, previous = carry
        gates, query, is_real, position = inputs_now
        allowed = _allowed(reverse, inputs.is_real, position)
        query = query + previous @ params["summary_kernel"]
        values, summary = _read(params, keep, allowed, params["vector"], tape, gates, query)
        # Its key is projected now, once, and not at each of the later tokens that read it.
        slot = _Tape(_halves(values)[0] @ params["key_kernel"], values)
        write = functools.partial(
            jax.lax.dynamic_update_index_in_dim, index=position, axis=1
        )
        tape = jax.tree.map(write, tape, slot)
        # Padding leaves the summary as it is: a query after it sees the last real token's.
        return (tape, jnp.where(is_real[:, None], summary, previous)), (previous, summary)

    tape = _Tape(
        jnp.zeros((batch, length, inputs.query.shape[-1]), dtype),
        jnp.zeros((batch, length, 2 * depth), dtype),
    )
    start = (tape, jnp.zeros((batch, depth), dtype))
    (tape, _), summaries = jax.lax.scan(step, start, inputs, reverse=reverse)
    return tape.values, (tape, summaries)


def _run_backward(
    reverse: bool, arguments: Any, saved: Any, cotangent: Array
) -> tuple[Any, Array | None, _Inputs]:
    (params, keep, inputs), (tape, summaries) = arguments, saved
    # `on_x` is the gradient by x. Transposed once, and not at every step of the loop.
    to_hidden, to_summary = params["key_kernel"].T, params["summary_kernel"].T

    def step(carry: tuple[_Tape, Array, Array], step_inputs: Any) -> tuple[Any, Any]:
        on_tape, on_summary, on_vector = carry
        (gates, query, is_real, position), previous = step_inputs
        allowed = _allowed(reverse, inputs.is_real, position)
        query = query + previous @ params["summary_kernel"]
        # The last tape, with what was written later masked, is the tape that this step saw.
        _, pullback = jax.vjp(
            functools.partial(_read, params, keep, allowed), params["vector"], tape, gates, query
        )
        key, value = (
            jax.lax.dynamic_index_in_dim(on, position, axis=1, keepdims=False).astype(part.dtype)
            for on, part in zip(on_tape, tape, strict=True)
        )
        # Only later tokens read this slot: by now, the loop has added up all of its gradient.
        on_hidden, on_cell = _halves(value)
        value = jnp.concatenate([on_hidden + key @ to_hidden, on_cell], axis=-1)
        # At padding the summary was handed on, and so is its gradient, to the last real token.
        is_real = is_real[:, None]
        zero = jnp.zeros((), on_summary.dtype)
        vector, read, gates, query = pullback((value, jnp.where(is_real, on_summary, zero)))
        on_summary = jnp.where(is_real, zero, on_summary) + query @ to_summary
        carry = (jax.tree.map(jnp.add, on_tape, read), on_summary, on_vector + vector)
        return carry, (gates, query, key)

    previous, summary = summaries
    start = (
        jax.tree.map(upcast, _Tape(jnp.zeros_like(tape.keys), cotangent)),
        jnp.zeros_like(previous[0]),
        upcast(jnp.zeros_like(params["vector"])),
    )
    (_, _, on_vector), (gates, query, keys) = jax.lax.scan(
        step, start, (inputs, previous), reverse=not reverse
    )
    hidden = time_major(_halves(tape.values)[0])
    # What the recurrent matrix multiplied: dropout comes before the product.
    used = summary if keep is None else summary * keep
    on_gates = jnp.concatenate(gates, axis=-1)
    on_keep = None if keep is None else ((on_gates @ params["recurrent"].T) * summary).sum(0)
    gradients = {
        "recurrent": _over_steps(used, on_gates),
        "key_kernel": _over_steps(hidden, keys),
        "summary_kernel": _over_steps(previous, query),
        "vector": on_vector.astype(params["vector"].dtype),
    }
    return gradients, on_keep, _Inputs(gates, query, None, None)


def _over_steps(left: Array, right: Array) -> Array:
    """Returns the gradient of a matrix that multiplies `left` at every step, in one product."""
    return jnp.einsum("tbd,tbf->df", left, right)


def _halves(values: Array) -> tuple[Array, Array]:
    """Parts h from c."""
    first, second = jnp.split(values, 2, axis=-1)
    return first, second
