"""The step of a scan as a traced program: what is done once, what at every step, what is deferred.

Used by `deferred_scan`, which says why.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from attention_jax.ops.step_operation import Operation

_DEFERRED_PRIMITIVES = ("dot_general", "gather")
_INLINED_PRIMITIVES = ("pjit", "jit", "closed_call")


@dataclasses.dataclass(frozen=True, eq=False)
class _Literal:
    value: Any


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """Program: a traced step, split into what is done once and what is done at every step.

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

    before: tuple[Operation, ...]
    loop: tuple[Operation, ...]
    constants: tuple[int, ...]
    varying: tuple[int, ...]
    invariants: tuple[int, ...]
    ordinary: tuple[int, ...]
    outputs: tuple[Any, ...]
    num_carry: int

    @classmethod
    def build(cls, traced: Any, counts: tuple[int, int, int]) -> "Program":
        # In the order of the trace, in which operands come before what is made of them.
        operations, arguments, outputs = _inline(traced)
        constants, varying = arguments[: counts[0]], arguments[counts[0] :]
        # What depends on constants alone is constant itself: computed once, before the loop.
        fixed, before, loop = set(constants), [], []
        for operation in operations:
            is_fixed = [isinstance(o, _Literal) or o in fixed for o in operation.operands]
            if all(is_fixed):
                before.append(operation)
                fixed.update(operation.results)
            else:
                loop.append(_mark_deferred(operation, is_fixed))
        # A dict as an ordered set: the order of the invariants must not change from run to run.
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
    def products(self) -> list[Operation]:
        """The loop's products with a constant whose gradient is computed after the loop."""
        return [operation for operation in self._deferred if not operation.is_gather]

    @property
    def tables(self) -> list[int]:
        """Value numbers of the constants that slots are gathered from."""
        return list(dict.fromkeys(one.constant for one in self._deferred if one.is_gather))

    @property
    def _deferred(self) -> list[Operation]:
        return [operation for operation in self.loop if operation.deferred_operand is not None]

    def run_invariant(self, constants: list[Any]) -> list[Any]:
        """Loop-invariant code motion: computes, out of the constants, what every step reads."""
        values = dict(zip(self.constants, constants, strict=True))
        for operation in self.before:
            results = operation.apply([_read(values, o) for o in operation.operands])
            values.update(zip(operation.results, results, strict=True))
        return [jnp.asarray(values[number]) for number in self.invariants]

    def run_step(
        self,
        invariants: list[Any],
        varying: list[Any],
        apply: Callable[[Operation, list[Any]], list[Any]] = Operation.apply,
    ) -> tuple[list[Any], list[Any]]:
        """Interprets the traced operations of one step.

        Args:
          invariants: What the loop takes from outside.
          varying: Leaves of the carry and of the step's input.
          apply: Computes an operation's results from its operands' values.

        Returns:
          (carry, outputs).
        """
        values = dict(zip(self.invariants, invariants, strict=True))
        values.update(zip(self.varying, varying, strict=True))
        for operation in self.loop:
            results = apply(operation, [_read(values, o) for o in operation.operands])
            values.update(zip(operation.results, results, strict=True))
        returned = [_read(values, operand) for operand in self.outputs]
        return returned[: self.num_carry], returned[self.num_carry :]


def _mark_deferred(operation: Operation, is_fixed: list[bool]) -> Operation:
    name = operation.equation.primitive.name
    if name not in _DEFERRED_PRIMITIVES:
        return operation
    result = operation.equation.outvars[0].aval
    if not jnp.issubdtype(result.dtype, jnp.floating):
        return operation
    # The other operand of a gather is its indices.
    candidates = (0,) if name == "gather" else (0, 1)
    for position in candidates:
        if is_fixed[position] and not isinstance(operation.operands[position], _Literal):
            if _pays(operation, position):
                return dataclasses.replace(operation, deferred_operand=position)
    return operation


def _pays(operation: Operation, position: int) -> bool:
    """Whether adding to the constant's gradient moves more memory than keeping the rows would.

    A small matrix stays in cache, and adding a large batch's products to it is cheap.
    """
    sizes = [variable.aval.size for variable in operation.equation.invars]
    constant = sizes.pop(position)
    # Floats that move at each step: the whole constant's gradient, or the rows that are kept.
    return constant > sum(sizes) + operation.equation.outvars[0].aval.size


def _inline(traced: Any) -> tuple[list[Operation], list[int], list[Any]]:
    """Numbers every value of a traced function, with calls to jitted functions inlined."""
    operations: list[Operation] = []
    counter = iter(range(10**9))

    # Numbers, not JAX's variables: those of a function that is called twice would be mixed up.
    def walk(closed: Any, arguments: list[Any]) -> list[Any]:
        numbers: dict[Any, Any] = dict(zip(closed.jaxpr.invars, arguments, strict=True))
        for variable, value in zip(closed.jaxpr.constvars, closed.consts, strict=True):
            # Arrays that the step closes over: they are part of the program, without gradients.
            numbers[variable] = _Literal(value)

        def number_of(atom: Any) -> Any:
            return _Literal(atom.val) if hasattr(atom, "val") else numbers[atom]

        for equation in closed.jaxpr.eqns:
            operands = [number_of(atom) for atom in equation.invars]
            if equation.primitive.name in _INLINED_PRIMITIVES:
                # Calls are inlined, so that products inside jitted functions are found.
                results = walk(equation.params["jaxpr"], operands)
            else:
                results = [next(counter) for _ in equation.outvars]
                operations.append(Operation(equation, tuple(operands), tuple(results)))
            numbers.update(zip(equation.outvars, results, strict=True))
        return [number_of(atom) for atom in closed.jaxpr.outvars]

    arguments = [next(counter) for _ in traced.jaxpr.invars]
    outputs = walk(traced, list(arguments))
    return operations, arguments, outputs


def _read(values: dict[int, Any], operand: Any) -> Any:
    return operand.value if isinstance(operand, _Literal) else values[operand]
