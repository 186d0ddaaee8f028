"""Scan with deferred gradients: those of its constants are computed after the loop.

In a recurrent network the same weight matrix multiplies a small block at every step. Reverse-mode
differentiation of `lax.scan` then adds an outer product to the weight's gradient at every step:
the whole matrix is read and written T times. The sum of those T products is one large matrix
product over all steps, which is what this module computes:

  y_t = x_t W  for every t    =>    dW = [x_1; ...; x_T]^T [dy_1; ...; dy_T]

`deferred_scan` finds the products with constants by itself, in the traced step, so that step
functions stay plain mathematics, and computes whatever depends on the constants alone once, before
the loop.

Slots that a step gathers out of a constant memory, such as the windows of local attention, would
have to be kept for the backward loop, T times as many as a step reads. They are gathered again
there (rematerialization), and their gradient is added in place to that of the memory, which the
loop carries.

The backward loop multiplies by the weights' transposes, dx_t = dy_t W^T. These too are laid out
once before it: a product of few rows with a matrix that is read across its rows takes up to twice
as long.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from attention_jax.ops.custom_gradients import with_backward
from attention_jax.ops.step_operation import Operation
from attention_jax.ops.step_program import Program
from attention_jax.ops.summation import upcast

# What a backward loop with gathers makes again: slots, and the same numbers in another layout.
_MADE_AGAIN = (
    "gather", "reshape", "transpose", "squeeze", "expand_dims", "broadcast_in_dim",
    "convert_element_type",
)  # fmt: skip


def deferred_scan(
    step: Callable[[Any, Any, Any], tuple[Any, Any]],
    constants: Any,
    carry: Any,
    inputs: Any,
    *,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Scan: runs `step` over the leading axis of `inputs`, with gradients of `constants` deferred.

    Equal to `lax.scan(functools.partial(step, constants), carry, inputs, reverse=reverse)` in its
    values and derivatives, up to the order of summation in its gradients; only these are deferred.

    Args:
      step: A pure function (constants, carry, input) -> (carry, output). What it needs of arrays
        must come through its arguments: gradients do not flow to arrays it closes over.
      constants: Pytree of arrays that every step reads: weights, keys, values, masks.
      carry: Pytree that goes from step to step.
      inputs: Pytree of arrays with a leading time axis.
      reverse: Whether to run from the last input to the first; outputs keep their places.

    Returns:
      (carry, outputs), as `lax.scan` does.
    """
    constant_leaves, constant_tree = jax.tree.flatten(constants)
    carry_leaves, carry_tree = jax.tree.flatten(carry)
    input_leaves, input_tree = jax.tree.flatten(inputs)
    counts = (len(constant_leaves), len(carry_leaves), len(input_leaves))

    def flat_step(*leaves: Any) -> list[Any]:
        groups = _split(leaves, counts)
        new_carry, output = step(
            constant_tree.unflatten(groups[0]),
            carry_tree.unflatten(groups[1]),
            input_tree.unflatten(groups[2]),
        )
        return [*jax.tree.leaves(new_carry), *jax.tree.leaves(output)]

    # One step is traced on shapes alone: nothing is computed here.
    first = [jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for leaf in input_leaves]
    abstract_groups = (
        constant_tree.unflatten([_abstract(leaf) for leaf in constant_leaves]),
        carry_tree.unflatten([_abstract(leaf) for leaf in carry_leaves]),
        input_tree.unflatten(first),
    )
    output_tree = jax.tree.structure(jax.eval_shape(step, *abstract_groups)[1])
    traced = jax.make_jaxpr(flat_step)(*jax.tree.leaves(abstract_groups))
    program = Program.build(traced, counts)
    # Outside of the scan and of its custom gradient: JAX differentiates these on its own.
    invariants = program.run_invariant(constant_leaves)
    static = (program, reverse)
    run, forward, backward = (
        functools.partial(function, static) for function in (_scan, _scan_forward, _scan_backward)
    )
    carry_leaves, output_leaves = with_backward(run, forward, backward)(
        invariants, [jnp.asarray(leaf) for leaf in carry_leaves], input_leaves
    )
    return carry_tree.unflatten(carry_leaves), output_tree.unflatten(output_leaves)


def _scan(static: Any, invariants: list[Any], carry: list[Any], inputs: list[Any]) -> Any:
    program, reverse = static

    def body(carry: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
        return program.run_step(invariants, [*carry, *x])

    return lax.scan(body, carry, inputs, reverse=reverse)


def _scan_forward(static: Any, invariants: list[Any], carry: list[Any], inputs: list[Any]) -> Any:
    program, reverse = static
    length = inputs[0].shape[0]
    shapes = [operation.equation.outvars[0].aval for operation in program.products]
    # A tap is added to nothing and read by nobody: its gradient is the cotangent of one operation's
    # result at every step, which `_scan_backward` multiplies after the loop.
    taps = [jnp.zeros((length, *shape.shape), shape.dtype) for shape in shapes]
    fixed = dict(zip(program.invariants, map(lax.stop_gradient, invariants), strict=True))
    matrices = {operation.constant for operation in program.products if operation.is_matrix_product}
    transposed = {number: fixed[number].T for number in matrices}

    def run(
        ordinary: list[Any], tables: list[Any], carry: list[Any], inputs: list[Any], taps: list[Any]
    ) -> Any:
        def body(carried: Any, x: Any) -> Any:
            (tables, carry), (inputs, taps) = carried, x
            sums = dict(zip(program.tables, tables, strict=True))
            # Deferred uses of a constant have no gradient in the loop; its ordinary uses have.
            merged = list(fixed.values())
            for position, value in zip(program.ordinary, ordinary, strict=True):
                merged[position] = _as_type(value, merged[position].dtype)
            tapped: list[list[Any]] = []

            def apply(operation: Operation, operands: list[Any]) -> list[Any]:
                if operation.deferred_operand is None:
                    return operation.apply(operands)
                number, varying = operation.constant, _without(operands, operation.deferred_operand)
                if operation.is_gather:
                    (indices,), table, total = varying, fixed[number], sums[number]
                    gathered, sums[number] = operation.gather_carried(table, indices, total)
                    return [gathered]
                tap = taps[len(tapped)]
                tapped.append(varying)
                matrix = transposed.get(number)
                return [operation.apply_deferred(varying, fixed[number], matrix, tap)]

            new_carry, outputs = program.run_step(merged, [*carry, *inputs], apply)
            return (list(sums.values()), new_carry), (outputs, tapped)

        if program.tables:
            # What has been gathered is gathered again in the backward loop, not kept.
            body = jax.checkpoint(body, prevent_cse=False, policy=_is_kept)
        (_, final), (outputs, tapped) = lax.scan(
            body, (tables, carry), (inputs, taps), reverse=reverse
        )
        return (final, outputs), tapped

    # In float32, since the loop adds to these gradients at every step.
    ordinary = [upcast(invariants[position]) for position in program.ordinary]
    # Like a tap, but of the whole table, and carried: its cotangent is the table's gradient so far.
    tables = [jnp.zeros_like(upcast(fixed[number])) for number in program.tables]
    result, pullback, tapped = jax.vjp(run, ordinary, tables, carry, inputs, taps, has_aux=True)
    return result, (pullback, tapped)


def _scan_backward(static: Any, arguments: Any, saved: Any, cotangent: Any) -> Any:
    program, _ = static
    (invariants, _, _), (pullback, tapped) = arguments, saved
    ordinary, tables, carry, inputs, taps = pullback(cotangent)
    gradients: list[Any] = [None] * len(invariants)
    for position, gradient in zip(program.ordinary, ordinary, strict=True):
        gradients[position] = gradient
    # A constant may be used in several products: what each contributes is added up.
    index_of = {number: position for position, number in enumerate(program.invariants)}

    def add(index: int, gradient: Any) -> None:
        previous = gradients[index]
        gradients[index] = gradient if previous is None else previous + gradient

    for number, gradient in zip(program.tables, tables, strict=True):
        add(index_of[number], gradient)
    for operation, operands, tap in zip(program.products, tapped, taps, strict=True):
        index = index_of[operation.constant]
        add(index, operation.deferred_gradient(operands, invariants[index], tap))
    gradients = [_as_type(one, of.dtype) for one, of in zip(gradients, invariants, strict=True)]
    return gradients, carry, inputs


def _as_type(array: Any, dtype: Any) -> Any:
    """Casts where that is needed; gradients of integers, which have a type of their own, stay."""
    is_cast = array.dtype != dtype and array.dtype != jax.dtypes.float0
    return array.astype(dtype) if is_cast else array


def _is_kept(primitive: Any, *_: Any, **__: Any) -> bool:
    return primitive.name not in _MADE_AGAIN


def _without(items: list[Any], position: int) -> list[Any]:
    return items[:position] + items[position + 1 :]


def _split(leaves: Any, counts: tuple[int, ...]) -> list[list[Any]]:
    groups, start = [], 0
    for count in counts:
        groups.append(list(leaves[start : start + count]))
        start += count
    return groups


def _abstract(leaf: Any) -> jax.ShapeDtypeStruct:
    leaf = jnp.asarray(leaf)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=leaf.weak_type)
