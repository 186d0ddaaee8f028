"""An operation of a scan's traced step, and what it does where its gradient is deferred.

Used by `deferred_scan`, which says why: the gradient of a product with a constant is that over all
steps at once, and what a gather gives to a constant's is added in place by the backward loop.
"""

import dataclasses
from typing import Any

import jax
from jax import lax


@dataclasses.dataclass(frozen=True, eq=False)
class Operation:
    """Operation: one application of a JAX primitive in the traced step.

    Attributes:
      equation: As it was traced.
      operands: Value numbers, or literals.
      results: Value numbers.
      deferred_operand: Position of the constant whose gradient is deferred, if there is one.
    """

    equation: Any
    operands: tuple[Any, ...]
    results: tuple[int, ...]
    deferred_operand: int | None = None

    @property
    def constant(self) -> int:
        """Value number of the constant whose gradient is deferred."""
        return self.operands[self.deferred_operand]

    @property
    def is_gather(self) -> bool:
        """Whether it gathers slots."""
        return self.equation.primitive.name == "gather"

    @property
    def is_matrix_product(self) -> bool:
        """Whether it multiplies rows by a constant matrix, over one axis and without batch axes."""
        if self.deferred_operand is None or self.equation.primitive.name != "dot_general":
            return False
        contracting, batch = self.equation.params["dimension_numbers"]
        constant = self.equation.invars[self.deferred_operand].aval
        return constant.ndim == 2 and len(contracting[0]) == 1 and not batch[0]

    @property
    def is_plain_projection(self) -> bool:
        """Whether it is `rows @ matrix`: the last axis of the one times the first of the other."""
        if not self.is_matrix_product or self.deferred_operand != 1:
            return False
        (rows, matrix), _ = self.equation.params["dimension_numbers"]
        return (rows, matrix) == ((self.equation.invars[0].aval.ndim - 1,), (0,))

    def apply(self, operands: list[Any]) -> list[Any]:
        """Computes the results from the operands' values."""
        primitive = self.equation.primitive
        parameters = primitive.get_bind_params(self.equation.params)
        results = primitive.bind(*operands, **parameters)
        return list(results) if primitive.multiple_results else [results]

    def apply_transposed(self, operands: list[Any]) -> Any:
        """Computes the result of a matrix product from the operands, the matrix transposed."""
        contracting, batch = self.equation.params["dimension_numbers"]
        # Of two axes, the one that is not contracted is contracted once the matrix is transposed.
        flipped = list(contracting)
        flipped[self.deferred_operand] = (1 - contracting[self.deferred_operand][0],)
        parameters = {**self.equation.params, "dimension_numbers": (tuple(flipped), batch)}
        return self.equation.primitive.bind(*operands, **parameters)

    def apply_deferred(self, varying: list[Any], constant: Any, transposed: Any, tap: Any) -> Any:
        """Applies a deferred operation, with the cotangent of its result as the tap's gradient.

        Args:
          varying: Its other operands.
          constant: Its deferred operand.
          transposed: The transposed constant of a matrix product, else None.
          tap: Of the result's shape; its values do not matter.
        """
        place = self.deferred_operand

        def apply(varying: list[Any], constant: Any) -> Any:
            return self.apply(_with(varying, place, constant))[0]

        def forward(varying: list[Any], constant: Any, *rest: Any) -> tuple[Any, Any]:
            return apply(varying, constant), constant if transposed is None else transposed

        def backward(fixed: Any, cotangent: Any) -> tuple[Any, ...]:
            def linear(varying: list[Any]) -> Any:
                if transposed is None:
                    return apply(varying, fixed)
                return self.apply_transposed(_with(varying, place, fixed))

            # Linear in the varying operands: transposing needs no values of them to be kept.
            gradient = jax.linear_transpose(linear, varying)(cotangent)[0]
            return gradient, None, None, cotangent

        # Not `with_backward`: nobody differentiates this but the scan's own `vjp`.
        product = jax.custom_vjp(lambda varying, constant, *rest: apply(varying, constant))
        product.defvjp(forward, backward)
        return product(varying, constant, transposed, tap)

    def gather_carried(self, table: Any, indices: Any, total: Any) -> tuple[Any, Any]:
        """Gathers out of a constant table, whose gradient the backward loop carries.

        There it is the cotangent of `total`, to which each step adds its own in place.

        Args:
          table: What is gathered from; without a gradient of its own.
          indices: What is gathered.
          total: Of the table's shape; its values do not matter.

        Returns:
          (what was gathered, `total` for whatever gathers next).
        """
        parameters = self.equation.params
        dimensions = parameters["dimension_numbers"]
        scattered = lax.ScatterDimensionNumbers(
            update_window_dims=dimensions.offset_dims,
            inserted_window_dims=dimensions.collapsed_slice_dims,
            scatter_dims_to_operand_dims=dimensions.start_index_map,
            operand_batching_dims=dimensions.operand_batching_dims,
            scatter_indices_batching_dims=dimensions.start_indices_batching_dims,
        )

        def apply(table: Any, indices: Any, total: Any) -> tuple[Any, Any]:
            return self.apply([table, indices])[0], total

        def forward(table: Any, indices: Any, total: Any) -> tuple[Any, Any]:
            return apply(table, indices, total), indices

        def backward(indices: Any, cotangents: Any) -> tuple[Any, ...]:
            gathered, total = cotangents
            gathered = gathered.astype(total.dtype)
            added = lax.scatter_add(total, indices, gathered, scattered, mode=parameters["mode"])
            return None, None, added

        # Not `with_backward`: nobody differentiates this but the scan's own `vjp`.
        gather = jax.custom_vjp(apply)
        gather.defvjp(forward, backward)
        return gather(table, indices, total)

    def deferred_gradient(self, varying: list[Any], constant: Any, cotangent: Any) -> Any:
        """Returns the constant's gradient through one operation, over all steps at once."""
        if self.is_plain_projection:
            # Written out, for a transposed product comes of it otherwise; not as rows of one
            # matrix, for rows of a batch that several devices share cannot be lined up.
            (rows,) = varying
            axes = tuple(range(rows.ndim - 1))
            return lax.dot_general(
                rows, cotangent, ((axes, axes), ((), ())),
                precision=self.equation.params["precision"],
            )  # fmt: skip

        def over_all_steps(constant: Any) -> Any:
            def one_step(varying: list[Any]) -> Any:
                return self.apply(_with(varying, self.deferred_operand, constant))[0]

            # Over the steps' axis: the transpose of this is the one large product.
            return jax.vmap(one_step)(varying)

        _, pullback = jax.vjp(over_all_steps, constant)
        return pullback(cotangent)[0]


def _with(items: list[Any], position: int, item: Any) -> list[Any]:
    return [*items[:position], item, *items[position:]]
