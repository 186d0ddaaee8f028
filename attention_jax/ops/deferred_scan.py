"""A scan whose gradients with respect to its constants are computed after the loop.

In a recurrent network the same weight matrix multiplies a small block at every step. Reverse-mode
differentiation of `lax.scan` then adds an outer product to the weight's gradient at every step:
the whole matrix is read and written T times. The sum of those T products is one large matrix
product over all steps, which is what this module computes:

  y_t = x_t W  for every t    =>    dW = [x_1; ...; x_T]^T [dy_1; ...; dy_T]

`deferred_scan` finds the products with constants by itself, in the traced step, so that step
functions stay plain mathematics. It treats the gathering of slots out of a constant memory in the
same way, and computes whatever depends on the constants alone once, before the loop.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

_DEFERRED_PRIMITIVES = ("dot_general", "gather")
_INLINED_PRIMITIVES = ("pjit", "jit", "closed_call")


def deferred_scan(
    step: Callable[[Any, Any, Any], tuple[Any, Any]],
    constants: Any,
    carry: Any,
    inputs: Any,
    *,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Scans `step` over the leading axis of `inputs`, deferring gradients of `constants`.

    Equal to `lax.scan(functools.partial(step, constants), carry, inputs, reverse=reverse)` in its
    values and, up to the order of summation, in its reverse-mode gradients.

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

    first = [jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for leaf in input_leaves]
    abstract_groups = (
        constant_tree.unflatten([_abstract(leaf) for leaf in constant_leaves]),
        carry_tree.unflatten([_abstract(leaf) for leaf in carry_leaves]),
        input_tree.unflatten(first),
    )
    output_tree = jax.tree.structure(jax.eval_shape(step, *abstract_groups)[1])
    traced = jax.make_jaxpr(flat_step)(*jax.tree.leaves(abstract_groups))
    program = _Program.build(traced, counts)
    invariants = program.run_invariant(constant_leaves)
    carry_leaves, output_leaves = _scan(
        (program, reverse), invariants, [jnp.asarray(leaf) for leaf in carry_leaves], input_leaves
    )
    return carry_tree.unflatten(carry_leaves), output_tree.unflatten(output_leaves)


@dataclasses.dataclass(frozen=True, eq=False)
class _Operation:
    """One primitive application; operands are value numbers, or literals."""

    equation: Any
    operands: tuple[Any, ...]
    results: tuple[int, ...]
    deferred_operand: int | None = None

    def apply(self, operands: list[Any]) -> list[Any]:
        primitive = self.equation.primitive
        parameters = primitive.get_bind_params(self.equation.params)
        results = primitive.bind(*operands, **parameters)
        return list(results) if primitive.multiple_results else [results]


@dataclasses.dataclass(frozen=True, eq=False)
class _Literal:
    value: Any


@dataclasses.dataclass(frozen=True, eq=False)
class _Program:
    """A traced step, parted into what is done once and what is done at every step.

    Attributes:
      before: Operations that depend on constants only.
      loop: The others.
      constants: Value numbers of the step's constants.
      varying: Value numbers of its carry and inputs.
      invariants: Value numbers that the loop takes from outside.
      ordinary: Positions in `invariants` of those used otherwise than as a deferred operand.
      outputs: Operands that the step returns: the new carry, then its outputs.
      num_carry: How many leaves the carry has.
    """

    before: tuple[_Operation, ...]
    loop: tuple[_Operation, ...]
    constants: tuple[int, ...]
    varying: tuple[int, ...]
    invariants: tuple[int, ...]
    ordinary: tuple[int, ...]
    outputs: tuple[Any, ...]
    num_carry: int

    @classmethod
    def build(cls, traced: Any, counts: tuple[int, int, int]) -> "_Program":
        operations, arguments, outputs = _inline(traced)
        constants, varying = arguments[: counts[0]], arguments[counts[0] :]
        fixed, before, loop = set(constants), [], []
        for operation in operations:
            is_fixed = [isinstance(o, _Literal) or o in fixed for o in operation.operands]
            if all(is_fixed):
                before.append(operation)
                fixed.update(operation.results)
            else:
                loop.append(_mark_deferred(operation, is_fixed))
        used, ordinary = {}, set()
        for operation in loop:
            for position, operand in enumerate(operation.operands):
                if operand in fixed:
                    used[operand] = None
                    if position != operation.deferred_operand:
                        ordinary.add(operand)
        for operand in outputs:
            if operand in fixed:
                used[operand] = None
                ordinary.add(operand)
        invariants = tuple(used)
        positions = tuple(i for i, value in enumerate(invariants) if value in ordinary)
        return cls(
            tuple(before),
            tuple(loop),
            tuple(constants),
            tuple(varying),
            invariants,
            positions,
            tuple(outputs),
            counts[1],
        )

    @property
    def deferred(self) -> list[_Operation]:
        return [operation for operation in self.loop if operation.deferred_operand is not None]

    def run_invariant(self, constants: list[Any]) -> list[Any]:
        """Computes what the loop takes from outside, out of the step's constants."""
        values = dict(zip(self.constants, constants, strict=True))
        for operation in self.before:
            results = operation.apply([_read(values, o) for o in operation.operands])
            values.update(zip(operation.results, results, strict=True))
        return [jnp.asarray(values[number]) for number in self.invariants]

    def run_step(
        self,
        invariants: list[Any],
        varying: list[Any],
        deferred_invariants: list[Any] | None = None,
        taps: list[Any] | None = None,
    ) -> tuple[list[Any], list[Any], list[list[Any]]]:
        """Runs one step.

        Args:
          invariants: What the loop takes from outside.
          varying: Leaves of the carry and of the step's input.
          deferred_invariants: What deferred operations read in place of `invariants`.
          taps: Arrays added to the results of the deferred operations.

        Returns:
          (carry, outputs, varying operands of every deferred operation).
        """
        values = dict(zip(self.invariants, invariants, strict=True))
        values.update(zip(self.varying, varying, strict=True))
        deferred = dict(zip(self.invariants, deferred_invariants or invariants, strict=True))
        tapped: list[list[Any]] = []
        for operation in self.loop:
            operands = [_read(values, operand) for operand in operation.operands]
            position = operation.deferred_operand
            if position is not None:
                operands[position] = deferred[operation.operands[position]]
            results = operation.apply(operands)
            if position is not None:
                if taps is not None:
                    results = [results[0] + taps[len(tapped)]]
                tapped.append(_without(operands, position))
            values.update(zip(operation.results, results, strict=True))
        returned = [_read(values, operand) for operand in self.outputs]
        return returned[: self.num_carry], returned[self.num_carry :], tapped


def _mark_deferred(operation: _Operation, is_fixed: list[bool]) -> _Operation:
    name = operation.equation.primitive.name
    if name not in _DEFERRED_PRIMITIVES:
        return operation
    result = operation.equation.outvars[0].aval
    if not jnp.issubdtype(result.dtype, jnp.floating):
        return operation
    candidates = (0,) if name == "gather" else (0, 1)
    for position in candidates:
        if is_fixed[position] and not isinstance(operation.operands[position], _Literal):
            if _pays(operation, position):
                return dataclasses.replace(operation, deferred_operand=position)
    return operation


def _pays(operation: _Operation, position: int) -> bool:
    """Whether adding to the constant's gradient moves more memory than keeping the rows would.

    A small matrix stays in cache, and adding a large batch's products to it is cheap.
    """
    sizes = [variable.aval.size for variable in operation.equation.invars]
    constant = sizes.pop(position)
    return constant > sum(sizes) + operation.equation.outvars[0].aval.size


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _scan(static: Any, invariants: list[Any], carry: list[Any], inputs: list[Any]) -> Any:
    program, reverse = static

    def body(carry: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
        new_carry, output, _ = program.run_step(invariants, [*carry, *x])
        return new_carry, output

    return lax.scan(body, carry, inputs, reverse=reverse)


def _scan_forward(static: Any, invariants: list[Any], carry: list[Any], inputs: list[Any]) -> Any:
    program, reverse = static
    length = inputs[0].shape[0]
    shapes = [operation.equation.outvars[0].aval for operation in program.deferred]
    taps = [jnp.zeros((length, *shape.shape), shape.dtype) for shape in shapes]
    fixed = [lax.stop_gradient(value) for value in invariants]

    def run(ordinary: list[Any], carry: list[Any], inputs: list[Any], taps: list[Any]) -> Any:
        merged = list(fixed)
        for position, value in zip(program.ordinary, ordinary, strict=True):
            merged[position] = value

        def body(carry: list[Any], x: Any) -> Any:
            new_carry, output, tapped = program.run_step(merged, [*carry, *x[0]], fixed, x[1])
            return new_carry, (output, tapped)

        final, (outputs, tapped) = lax.scan(body, carry, (inputs, taps), reverse=reverse)
        return (final, outputs), tapped

    ordinary = [invariants[position] for position in program.ordinary]
    result, pullback, tapped = jax.vjp(run, ordinary, carry, inputs, taps, has_aux=True)
    return result, (pullback, tapped, invariants)


def _scan_backward(static: Any, residuals: Any, cotangent: Any) -> Any:
    program, _ = static
    pullback, tapped, invariants = residuals
    ordinary, carry, inputs, taps = pullback(cotangent)
    gradients: list[Any] = [None] * len(invariants)
    for position, gradient in zip(program.ordinary, ordinary, strict=True):
        gradients[position] = gradient
    index_of = {number: position for position, number in enumerate(program.invariants)}
    for operation, operands, tap in zip(program.deferred, tapped, taps, strict=True):
        index = index_of[operation.operands[operation.deferred_operand]]
        gradient = _deferred_gradient(operation, operands, invariants[index], tap)
        previous = gradients[index]
        gradients[index] = gradient if previous is None else previous + gradient
    return gradients, carry, inputs


_scan.defvjp(_scan_forward, _scan_backward)


def _deferred_gradient(
    operation: _Operation, operands: list[Any], constant: Any, cotangent: Any
) -> Any:
    """Returns the constant's gradient through one operation, over all steps at once."""

    def over_all_steps(constant: Any) -> Any:
        def one_step(operands: list[Any]) -> Any:
            full = list(operands)
            full.insert(operation.deferred_operand, constant)
            return operation.apply(full)[0]

        return jax.vmap(one_step)(operands)

    _, pullback = jax.vjp(over_all_steps, constant)
    return pullback(cotangent)[0]


def _inline(traced: Any) -> tuple[list[_Operation], list[int], list[Any]]:
    """Numbers every value of a traced function, with calls to jitted functions inlined."""
    operations: list[_Operation] = []
    counter = iter(range(10**9))

    def walk(closed: Any, arguments: list[Any]) -> list[Any]:
        numbers: dict[Any, Any] = dict(zip(closed.jaxpr.invars, arguments, strict=True))
        for variable, value in zip(closed.jaxpr.constvars, closed.consts, strict=True):
            numbers[variable] = _Literal(value)

        def number_of(atom: Any) -> Any:
            return _Literal(atom.val) if hasattr(atom, "val") else numbers[atom]

        for equation in closed.jaxpr.eqns:
            operands = [number_of(atom) for atom in equation.invars]
            if equation.primitive.name in _INLINED_PRIMITIVES:
                results = walk(equation.params["jaxpr"], operands)
            else:
                results = [next(counter) for _ in equation.outvars]
                operations.append(_Operation(equation, tuple(operands), tuple(results)))
            numbers.update(zip(equation.outvars, results, strict=True))
        return [number_of(atom) for atom in closed.jaxpr.outvars]

    arguments = [next(counter) for _ in traced.jaxpr.invars]
    outputs = walk(traced, list(arguments))
    return operations, arguments, outputs


def _read(values: dict[int, Any], operand: Any) -> Any:
    return operand.value if isinstance(operand, _Literal) else values[operand]


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
