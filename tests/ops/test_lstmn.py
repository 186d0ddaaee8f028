"""LSTM-networks: the recurrence in NumPy, and its gradient against that of an ordinary loop."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.lstmn import run_lstmn
from attention_jax.ops.recurrent import lstm_step
from tests.derivatives import assert_derivatives_are_differences
from tests.quick import quick_jit

B, S, D, A = 3, 5, 3, 4
LENGTHS = (4, 2, 0)  # all of them padded
SHAPES = {
    "recurrent": (D, 4 * D), "key_kernel": (D, A), "summary_kernel": (D, A), "vector": (A,),
}  # fmt: skip


@functools.cache
def inputs():
    rng = np.random.default_rng(0)
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape), jnp.float32)  # noqa: E731
    params = {name: draw(*shape) for name, shape in SHAPES.items()}
    mask = jnp.arange(S) < jnp.asarray(LENGTHS)[:, None]
    return params, draw(B, S, 4 * D), draw(B, S, A), mask, 2.0 * (draw(B, D) > 0)


def softmax(scores):
    exponentials = np.exp(scores - scores.max())
    return exponentials / exponentials.sum()


def lstmn(params, gates, queries, keep):
    """One sentence as a person would write it down, in the order of reading."""
    tape_h, tape_c, summary = [], [], np.zeros(D)
    for gate, query in zip(gates, queries, strict=True):
        previous, summary, cell = summary, np.zeros(D), np.zeros(D)
        if tape_h:
            hidden = query + previous @ params["summary_kernel"]
            hidden = np.tanh(hidden + np.asarray(tape_h) @ params["key_kernel"])
            weights = softmax(hidden @ params["vector"])
            summary, cell = weights @ np.asarray(tape_h), weights @ np.asarray(tape_c)
        i, f, g, o = np.split(gate + (summary * keep) @ params["recurrent"], 4)
        sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
        tape_c.append(sigmoid(f) * cell + sigmoid(i) * np.tanh(g))
        tape_h.append(sigmoid(o) * np.tanh(tape_c[-1]))
    return np.asarray(tape_h), tape_c[-1]


@pytest.mark.parametrize("reverse", [False, True])
def test_run_lstmn_equals_a_loop_in_numpy(reverse):
    params, gates, queries, mask, keep = inputs()
    run = quick_jit(functools.partial(run_lstmn, reverse=reverse, keep=keep))
    hidden, final = run(params, gates, queries, mask)
    numbers = {name: np.asarray(value, float) for name, value in params.items()}
    order = slice(None, None, -1 if reverse else 1)
    for row, length in enumerate(LENGTHS):
        assert not np.asarray(hidden)[row, length:].any()
        if not length:
            assert not any(np.asarray(part)[row].any() for part in final.values())
            continue
        expected, cell = lstmn(
            numbers, *(np.asarray(part, float)[row, :length][order] for part in (gates, queries)),
            np.asarray(keep, float)[row],
        )  # fmt: skip
        np.testing.assert_allclose(hidden[row, :length][order], expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(final["hidden"][row], expected[-1], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(final["cell"][row], cell, rtol=1e-4, atol=1e-5)


def plain(params, gates, queries, mask, *, reverse, keep):
    """The same, sentence by sentence and without a loop of its own kind, for JAX to differentiate.

    What stands at padding is never read, so that it has no gradient.
    """
    rows = []
    for row, length in enumerate(LENGTHS):
        one = slice(row, row + 1)
        tape_h, tape_c, summary = [], [], jnp.zeros((1, D))
        for t in range(length)[:: -1 if reverse else 1]:
            previous, summary, cell = summary, jnp.zeros((1, D)), jnp.zeros((1, D))
            if tape_h:
                hidden = queries[one, t] + previous @ params["summary_kernel"]
                hidden = jnp.tanh(hidden + jnp.concatenate(tape_h) @ params["key_kernel"])
                weights = jax.nn.softmax(hidden @ params["vector"])[None]
                summary = weights @ jnp.concatenate(tape_h)
                cell = weights @ jnp.concatenate(tape_c)
            parts = tuple(jnp.split(gates[one, t], 4, -1))
            carry = lstm_step(params, {"hidden": summary, "cell": cell}, parts, keep[one])
            tape_h.append(carry["hidden"])
            tape_c.append(carry["cell"])
        nothing = jnp.zeros((1, D))
        final = {"hidden": (tape_h or [nothing])[-1], "cell": (tape_c or [nothing])[-1]}
        read = tape_h[::-1] if reverse else tape_h
        rows.append((jnp.concatenate([*read, *[nothing] * (S - length)])[None], final))
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), *rows)


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_are_those_of_an_ordinary_loop(reverse):
    params, gates, queries, mask, keep = inputs()

    def loss(function, params, gates, queries):
        hidden, final = function(params, gates, queries, mask, reverse=reverse, keep=keep)
        upstream = jnp.cos(jnp.arange(hidden.size)).reshape(hidden.shape)
        return (hidden * upstream).sum() + (final["hidden"] * final["cell"]).sum()

    def both(*arguments):
        return [jax.grad(functools.partial(loss, function), (0, 1, 2))(*arguments)
                for function in (run_lstmn, plain)]  # fmt: skip

    found, expected = quick_jit(both)(params, gates, queries)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_second_derivatives_and_forward_mode_are_differences():
    """Also with respect to the factors of variational dropout."""
    *floats, mask, keep = inputs()

    def loss(point):
        params, gates, queries, keep = point
        hidden, final = run_lstmn(params, gates, queries, mask, keep=keep)
        return (hidden**2).sum() + (final["hidden"] * final["cell"]).sum()

    point = jax.tree.map(lambda leaf: 0.5 * leaf, (*floats, keep))
    assert_derivatives_are_differences(loss, point)


@pytest.mark.parametrize("reverse", [False, True])
def test_padding_may_stand_anywhere(reverse):
    """Before the tokens and between them too: they are read as if it were not there."""
    params, *inputs_by_token = inputs()[:3]
    length = 3
    gates, queries = (part[:1, :length] for part in inputs_by_token)
    upstream = jnp.cos(jnp.arange(length * D)).reshape(length, D)

    @quick_jit
    def at(places):
        def run(params, *parts):
            parts = [jnp.zeros((1, S, part.shape[-1])).at[:, places].set(part) for part in parts]
            mask = jnp.zeros((1, S), bool).at[:, places].set(True)
            hidden, final = run_lstmn(params, *parts, mask, reverse=reverse)
            hidden = hidden[0, places]
            loss = (hidden * upstream).sum() + (final["hidden"] * final["cell"]).sum()
            return loss, (hidden, final)

        return jax.value_and_grad(run, (0, 1, 2), has_aux=True)(params, gates, queries)

    expected = jax.tree.leaves(at(jnp.arange(length)))
    for places in ([0, 2, 4], [2, 3, 4], [1, 2, 4]):
        for one, other in zip(jax.tree.leaves(at(jnp.asarray(places))), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_gradients_of_bfloat16_over_many_steps_are_those_of_float32():
    """Sums in bfloat16 would stall; here the tape's are of a thousand small shares of a slot."""
    size, rng = 1024, np.random.default_rng(0)
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape), jnp.float32)  # noqa: E731
    params = {name: 0.5 * draw(*shape) for name, shape in SHAPES.items()}
    gates, queries = 0.5 * draw(1, size, 4 * D), draw(1, size, A)

    @quick_jit
    def gradient(*arguments):
        mask = jnp.ones((1, size), bool)
        total = lambda *some: run_lstmn(*some, mask)[0].astype(jnp.float32).sum()  # noqa: E731
        return jax.grad(total, (0, 1, 2))(*arguments)

    arguments = (params, gates, queries)
    exact = gradient(*arguments)
    short = gradient(*jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), arguments))
    for one, other in zip(jax.tree.leaves(short), jax.tree.leaves(exact), strict=True):
        assert one.dtype == jnp.bfloat16
        error = np.abs(np.asarray(one, np.float32) - other).max()
        assert error <= 0.03 * np.abs(other).max()


def test_memory_grows_with_the_length_and_not_with_its_square():
    params = {name: jnp.zeros(shape) for name, shape in SHAPES.items()}

    def kept(size):
        gates, queries = jnp.zeros((B, size, 4 * D)), jnp.zeros((B, size, A))
        mask = jnp.ones((B, size), bool)
        _, pullback = jax.eval_shape(
            lambda *arguments: jax.vjp(lambda *a: run_lstmn(*a, mask)[0], *arguments),
            params, gates, queries,
        )  # fmt: skip
        return sum(leaf.size for leaf in jax.tree.leaves(pullback))

    assert kept(64) < 2.2 * kept(32)
