"""Custom gradients: used where a gradient is asked for, and nowhere else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.custom_gradients import with_backward
from tests.derivatives import assert_derivatives_are_those_of

MASK = jnp.asarray([[1], [0], [1]])


def plain(weights, rows, mask):
    return {"y": jnp.tanh(rows @ weights["w"]) * mask, "places": mask * 2}


def forward(weights, rows, mask):
    result = plain(weights, rows, mask)
    return result, jnp.tanh(rows @ weights["w"])


def backward(arguments, hidden, cotangent):
    weights, rows, mask = arguments
    product = cotangent["y"] * mask * (1 - hidden**2)
    return {"w": rows.T @ product}, product @ weights["w"].T, None


def of(scale):
    """With a gradient `scale` times the right one, so that it can be told where it is used."""

    def scaled(*of_result):
        of_weights, of_rows, _ = backward(*of_result)
        return {"w": scale * of_weights["w"]}, scale * of_rows, None

    return with_backward(plain, forward, scaled)


def loss(function):
    return lambda point: (function(*point, MASK)["y"] ** 3).sum()


@pytest.fixture
def point(numpy_rng):
    draw = lambda *shape: jnp.asarray(0.5 * numpy_rng.normal(size=shape), jnp.float32)  # noqa: E731
    return {"w": draw(3, 4)}, draw(3, 3)


def test_derivatives_are_those_of_the_plain_function(point):
    assert_derivatives_are_those_of(loss(plain), loss(of(1)), point)


def test_first_gradients_are_those_written_by_hand_and_no_other_derivative_is(point):
    def total(function):  # a linear one, which leaves all derivatives to the function
        return lambda point: function(*point, MASK)["y"].sum()

    twice, right, ones = total(of(2)), total(plain), jax.tree.map(jnp.ones_like, point)
    gradient, expected = jax.grad(twice)(point), jax.grad(right)(point)
    np.testing.assert_allclose(gradient[1], 2 * expected[1], rtol=1e-6)
    for derivative in (
        lambda f: jax.jvp(f, (point,), (ones,))[1],
        lambda f: jax.jvp(jax.grad(f), (point,), (ones,))[1][1],
        lambda f: jax.grad(lambda at: jax.jvp(f, (at,), (ones,))[1])(point)[1],
    ):
        np.testing.assert_allclose(derivative(twice), derivative(right), rtol=1e-4, atol=1e-5)


def test_third_derivatives(point):
    weights, rows = point
    third = lambda f: lambda d: jax.jacfwd(jax.hessian(lambda r: loss(f)((weights, r))))(d)  # noqa: E731
    np.testing.assert_allclose(third(of(1))(rows), third(plain)(rows), rtol=1e-3, atol=1e-4)


def test_mapped_with_a_named_axis_and_shared_arguments(point):
    """One matrix for each head, and rows that all of them read."""

    def heads(function):
        def one(weights, rows):
            y = function({"w": weights}, rows, MASK)["y"]
            return y * (1.0 + jax.lax.axis_index("head"))

        def total(point):
            weights = jnp.stack([point[0]["w"], -2 * point[0]["w"]], axis=1)
            each = jax.vmap(one, in_axes=(1, None), axis_name="head")(weights, point[1])
            return (each**3).sum()

        return total

    assert_derivatives_are_those_of(heads(plain), heads(of(1)), point)


@pytest.mark.parametrize("wrap", [jax.checkpoint, lambda f: f], ids=["checkpoint", "as it is"])
def test_inside_of_a_loop(point, wrap):
    def looped(function):
        def step(rows, weights):
            return wrap(lambda *known: function(*known, MASK)["y"])(weights, rows)[:, :3], None

        def total(point):
            steps = {"w": jnp.stack([point[0]["w"]] * 3)}
            return (jax.lax.scan(step, point[1], steps)[0] ** 2).sum()

        return total

    assert_derivatives_are_those_of(looped(plain), looped(of(1)), point)


def test_arguments_that_do_not_move_have_no_tangent(point):
    """Gradients of one argument alone, the others being known."""
    gradient = jax.jit(jax.grad(lambda rows: loss(of(1))((point[0], rows))))(point[1])
    expected = jax.grad(loss(plain))(point)[1]
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)
