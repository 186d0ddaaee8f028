"""First and second derivatives of functions under test, in forward and in reverse mode."""

import jax
import jax.numpy as jnp
import numpy as np

from tests.quick import quick_jit

HESSIAN_VECTOR_PRODUCTS = ("reverse over reverse", "forward over reverse", "reverse over forward")


def hessian_vector_product(mode, function, point, direction):
    """Returns the Hessian of a scalar function, times a direction, by one of the three orders."""
    if mode == "reverse over reverse":
        return jax.grad(lambda at: _dot(jax.grad(function)(at), direction))(point)
    if mode == "forward over reverse":
        return jax.jvp(jax.grad(function), (point,), (direction,))[1]
    return jax.grad(lambda at: jax.jvp(function, (at,), (direction,))[1])(point)


def direction_for(point, seed=1):
    """Draws a direction of the same shapes; masks and other integers are no part of a point."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape), leaf.dtype), point)


def assert_derivatives_are_those_of(plain, function, point, **tolerances):
    """Compares derivatives of two scalar functions of a pytree of floats.

    First derivatives in both modes, and second ones in all orders of the two, with those of a
    function that JAX differentiates by itself.
    """
    direction = direction_for(point)
    tolerances = dict(rtol=5e-4, atol=1e-4) | tolerances

    def first_of(function):
        tangent = jax.jvp(function, (point,), (direction,))[1]
        return {"gradient": jax.grad(function)(point), "tangent": tangent}

    def second_of(function, *modes):
        return {mode: hessian_vector_product(mode, function, point, direction) for mode in modes}

    @quick_jit
    def both():
        (product,) = second_of(plain, "forward over reverse").values()
        expected = first_of(plain) | dict.fromkeys(HESSIAN_VECTOR_PRODUCTS, product)
        return expected, first_of(function) | second_of(function, *HESSIAN_VECTOR_PRODUCTS)

    expected, found = both()
    for name, one in expected.items():
        for leaf, other in zip(jax.tree.leaves(one), jax.tree.leaves(found[name]), strict=True):
            np.testing.assert_allclose(other, leaf, err_msg=name, **tolerances)
    second = jax.tree.leaves(expected[HESSIAN_VECTOR_PRODUCTS[0]])
    assert max(float(abs(leaf).max()) for leaf in second) > 1e-3  # else they would show nothing


def assert_derivatives_are_differences(function, point, step=1e-2, **tolerances):
    """Compares derivatives of a scalar function with differences of it and of its gradient."""
    direction = direction_for(point)
    tolerances = dict(rtol=2e-2, atol=2e-3) | tolerances
    ahead, behind = (
        jax.tree.map(lambda at, to, by=by: at + by * to, point, direction) for by in (step, -step)
    )

    @quick_jit
    def found():
        tangent = jax.jvp(function, (point,), (direction,))[1]
        return tangent, {
            mode: hessian_vector_product(mode, function, point, direction)
            for mode in HESSIAN_VECTOR_PRODUCTS
        }

    value_and_gradient = quick_jit(jax.value_and_grad(function))
    slope, expected = jax.tree.map(
        lambda one, other: (one - other) / (2 * step),
        value_and_gradient(ahead), value_and_gradient(behind),
    )  # fmt: skip
    tangent, products = found()
    np.testing.assert_allclose(tangent, slope, **tolerances)
    for mode, product in products.items():
        for leaf, other in zip(jax.tree.leaves(expected), jax.tree.leaves(product), strict=True):
            np.testing.assert_allclose(other, leaf, err_msg=mode, **tolerances)


def _dot(one, other):
    return sum(jax.tree.leaves(jax.tree.map(lambda a, b: (a * b).sum(), one, other)))
