"""In which precision a traced function computes, and what it sums in fewer bits than float32."""

import jax
import jax.numpy as jnp
from jax._src import source_info_util
from jax.extend import core


def short_sums(function, *arguments, sizes):
    """Lists where bfloat16 is summed over an axis of one of these sizes.

    Such a sum stands still at some hundred times what is added; over a batch or over time it is
    most often the gradient of something that many rows share.
    """
    traced = jax.make_jaxpr(function)(*arguments)
    return sorted({
        source_info_util.summarize(equation.source_info)
        for equation in _equations(traced.jaxpr)
        if equation.primitive.name == "reduce_sum" and _is_short(equation, sizes)
    })  # fmt: skip


def places_of(dtype, function, *arguments):
    """Lists where numbers of a type are made."""
    traced = jax.make_jaxpr(function)(*arguments)
    return sorted({
        source_info_util.summarize(equation.source_info)
        for equation in _equations(traced.jaxpr)
        if any(getattr(result.aval, "dtype", None) == dtype for result in equation.outvars)
    })  # fmt: skip


def in_bfloat16(tree):
    """Returns the shapes of arrays, with bfloat16 in place of float32."""
    return in_type(jnp.bfloat16, tree)


def in_type(dtype, tree):
    """Returns the shapes of arrays, with another type of floats in place of float32."""
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(
            leaf.shape, dtype if leaf.dtype == jnp.float32 else leaf.dtype
        ),
        tree,
    )


def _is_short(equation, sizes):
    operand = equation.invars[0].aval
    summed = {operand.shape[axis] for axis in equation.params["axes"]}
    return operand.dtype == jnp.bfloat16 and bool(summed & set(sizes))


def _equations(jaxpr):
    for equation in jaxpr.eqns:
        yield equation
        is_traced = lambda value: isinstance(value, core.Jaxpr | core.ClosedJaxpr)  # noqa: E731
        for value in jax.tree.leaves(equation.params, is_leaf=is_traced):
            if is_traced(value):
                yield from _equations(getattr(value, "jaxpr", value))
