"""Dynamic quantization: products with weight matrices in 8-bit integers, for decoding.

  x W  =  s_x s_w (x_q W_q),   x_q = round(x / s_x),  s_x = max |x| / 127

with one scale for each row of x, of what it holds at the time, and one for each column of W, found
once. The integer product is exact; on processors with instructions for it (VNNI, AMX) it takes a
fraction of the time of the product in float32. The products are found in the traced function, so
that layers stay plain mathematics: all of an array that varies with a matrix that is made of the
weights alone. Biases, normalisation, attention to a memory and softmax stay as they are.

Source:
  Jacob et al. (2018), Quantization and training of neural networks for efficient integer-arithmetic
  inference, section 2.1; there asymmetric, with ranges that are known beforehand.
"""

import math
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from attention_jax.ops.step_operation import Operation
from attention_jax.ops.step_program import Program
from attention_jax.types import Array

_LARGEST = 127  # of a symmetric range, so that no product of two overflows in its sign
# Shorter sums, and narrower results, take less time than quantizing what they are made of.
_LEAST_SIZE = 32


class Quantized(NamedTuple):
    """Quantized array: `values` times `scale`.

    Attributes:
      values: int8.
      scale: float32, with axes of one where the values share a scale.
    """

    values: Array
    scale: Array


def quantize(array: Array, axes: tuple[int, ...]) -> Quantized:
    """Symmetric quantization: rounds to 255 steps between -max and max of what shares a scale.

    Args:
      array: Real numbers.
      axes: The axes along which one scale is shared.
    """
    array = array.astype(jnp.float32)
    largest = jnp.abs(array).max(axis=axes, keepdims=True)
    # Nothing but zeros has any scale; this one keeps them zeros.
    scale = jnp.where(largest > 0, largest, 1.0) / _LARGEST
    return Quantized(jnp.round(array / scale).astype(jnp.int8), scale)


def with_quantized_products(
    function: Callable[..., Any], weights: Any, *shapes: Any
) -> Callable[..., Any]:
    """Dynamic quantization: the same function of arguments of these shapes, for these weights.

    Args:
      function: A pure function (weights, *arguments) -> pytree of arrays.
      weights: Pytree of arrays, whose matrices are quantized here, once.
      *shapes: Pytrees of arrays, or of their shapes, like the arguments.

    Returns:
      A function of the arguments. Inside loops and conditions of `function` nothing is quantized.
    """
    leaves = jax.tree.leaves(weights)
    known = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), shapes)
    traced, structure = jax.make_jaxpr(function, return_shape=True)(weights, *known)
    program = Program.build(traced, (len(leaves), 0, len(jax.tree.leaves(known))))
    invariants = program.run_invariant(leaves)
    fixed = dict(zip(program.invariants, invariants, strict=True))
    matrices = {
        id(operation): quantize(fixed[operation.operands[place]], _contracted(operation, place))
        for operation in program.loop
        if (place := _place_of_weights(operation, fixed)) is not None
    }

    def apply(operation: Operation, operands: list[Any]) -> list[Any]:
        if id(operation) not in matrices:
            return operation.apply(operands)
        sides = [
            matrices[id(operation)]
            if number in fixed
            else quantize(operand, _contracted(operation, place))
            for place, (number, operand) in enumerate(
                zip(operation.operands, operands, strict=True)
            )
        ]
        return [_product(operation, *sides)]

    def quantized_function(*arguments: Any) -> Any:
        _, results = program.run_step(invariants, jax.tree.leaves(arguments), apply)
        return jax.tree.unflatten(jax.tree.structure(structure), results)

    return quantized_function


def _place_of_weights(operation: Operation, fixed: Collection[int]) -> int | None:
    """Returns which operand of a product is a matrix of weights; None if none is."""
    if operation.equation.primitive.name != "dot_general":
        return None
    _, batch = operation.equation.params["dimension_numbers"]
    shapes = [variable.aval for variable in operation.equation.invars]
    if batch[0] or not all(jnp.issubdtype(each.dtype, jnp.floating) for each in shapes):
        return None
    for place, operand in enumerate(operation.operands):
        shape = np.array(shapes[place].shape)
        summed = np.isin(np.arange(len(shape)), _contracted(operation, place))
        sizes = math.prod(shape[summed]), math.prod(shape[~summed])
        if operand in fixed and min(sizes) >= _LEAST_SIZE:
            return place
    return None


def _contracted(operation: Operation, place: int) -> tuple[int, ...]:
    contracting, _ = operation.equation.params["dimension_numbers"]
    return tuple(contracting[place])


def _product(operation: Operation, left: Quantized, right: Quantized) -> Array:
    """Multiplies in integers, and scales the result."""
    dimensions = operation.equation.params["dimension_numbers"]
    product = lax.dot_general(
        left.values, right.values, dimensions, preferred_element_type=jnp.int32
    )
    # A result has the left one's other axes and then the right one's, and so have their scales.
    kept = [
        jnp.squeeze(each.scale, _contracted(operation, place))
        for place, each in enumerate((left, right))
    ]
    scale = kept[0].reshape(*kept[0].shape, *(1,) * kept[1].ndim) * kept[1]
    return (product * scale).astype(operation.equation.outvars[0].aval.dtype)
