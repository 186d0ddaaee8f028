"""Model FLOPs: the arithmetic of a model's matrix products, counted from shapes alone."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax

from attention_jax.types import Model

_BACKWARD_AND_FORWARD = 3  # a product's two gradients are products of the same size


def training_flops(model: Model, batch: Mapping[str, Any]) -> float:
    """Counts the model FLOPs of a training step, by which utilisation (MFU) is measured.

      flops = 3 sum_products 2 M N K

    Those of the matrix products of the forward pass, as the model arranges them, and twice as many
    for the backward pass. What is computed again instead of kept, softmax, tanh and the update rule
    are left out, so a model cannot look better by computing more.

    Args:
      model: From `build_model`.
      batch: Its batch, or shapes and types in its place.

    Source:
      Chowdhery et al. 2022, PaLM: Scaling Language Modeling with Pathways, appendix B, on model
      FLOPs utilisation.
    """
    params = jax.eval_shape(model.init, jax.random.key(0))
    return _BACKWARD_AND_FORWARD * product_flops(
        lambda params, batch: model.apply(params, batch).predictions, params, dict(batch)
    )


def product_flops(function: Callable, *arguments: Any) -> float:
    """Counts the floating-point operations of a function's matrix products.

    Args:
      function: Traced, not run.
      arguments: Arrays, or shapes and types.

    Raises:
      ValueError: If there is a loop of unknown length, or a product of another kind.
    """
    return _count(jax.make_jaxpr(function)(*arguments).jaxpr)


def _count(jaxpr: Any) -> float:
    total = 0.0
    for equation in _needed(jaxpr):
        name, inner = equation.primitive.name, list(_inner(equation.params.values()))
        if name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            depth = math.prod(left[axis] for axis in contracted)
            # A multiplication and an addition for each of M N K terms.
            total += 2.0 * depth * math.prod(equation.outvars[0].aval.shape)
        elif name == "cond":
            total += max(_count(branch) for branch in inner)  # one branch runs, at most this one
        elif name == "scan":
            total += equation.params["length"] * sum(_count(body) for body in inner)
        elif name == "while" and any(_count(body) for body in inner):
            raise ValueError("expected loops of known length around products, found a while loop")
        elif name.startswith("conv_general"):
            raise ValueError(f"expected products that are dot_general, found {name}")
        else:
            total += sum(_count(body) for body in inner)
    return total


def _needed(jaxpr: Any) -> Iterator[Any]:
    """Yields the equations that the results depend on; the compiler removes all others."""
    wanted = set(map(id, jaxpr.outvars))
    for equation in reversed(jaxpr.eqns):
        if any(id(variable) in wanted for variable in equation.outvars):
            wanted.update(map(id, equation.invars))
            yield equation


def _inner(values: Any) -> Iterator[Any]:
    """Yields the inner programs (jaxprs) that an equation's parameters hold."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from _inner(value)
        elif hasattr(value := getattr(value, "jaxpr", value), "eqns"):
            yield value
