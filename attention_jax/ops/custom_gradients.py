"""Custom gradients: a backward pass written by hand, and every other derivative as it should be.

Some functions have a backward pass that is faster, or keeps less, than what reverse-mode
differentiation makes of them. `with_backward` attaches one. It serves first gradients alone:

  jax.grad, jax.vjp              the backward pass written by hand
  jax.jvp, jax.jacfwd            forward mode through the plain function
  grad of grad, jax.hessian, ... the derivatives of the plain function's gradient

Hence gradient penalties, Hessian-vector products and Jacobians are right, to any order and in
either mode; what is beyond first gradients costs what it costs for the plain function. Every
custom gradient of the package is made by this, or by `jax.custom_jvp`, of which the same is true:
`jax.custom_vjp` has no forward mode, and its second derivatives are those of what was written for
speed. (`deferred_scan` uses it inside of its forward pass, which nobody else differentiates.)

The backward pass is the transpose of a linear map, from tangents of the arguments to tangents of
the result. JAX has no linear map that is given a transpose of its own and can be differentiated
and mapped over, hence a primitive, `_push`.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Primitive, unmapped_aval
from jax.interpreters import ad, batching, mlir

Function = Callable[..., Any]


def with_backward(function: Function, forward: Function, backward: Function) -> Function:
    """Custom gradient: gives a function a backward pass; other derivatives stay its own.

    Args:
      function: A pure function of pytrees of arrays, which JAX can differentiate.
      forward: Of the same arguments; returns (result, saved): the function's result, and what the
        backward pass reads beside the arguments.
      backward: (arguments, saved, cotangent of the result) -> gradients, one for each argument;
        arrays without one, such as masks, have None.

    Returns:
      The function; where a gradient is asked for, it runs `forward` and, later, `backward`.
    """

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        leaves, tree = jax.tree.flatten(arguments)

        def plain(*leaves: Any) -> Any:
            return function(*tree.unflatten(leaves))

        def run(*leaves: Any) -> Any:
            return forward(*tree.unflatten(leaves))

        def pull(leaves: Sequence[Any], saved: Any, cotangent: Any) -> list[Any]:
            return tree.flatten_up_to(backward(tree.unflatten(leaves), saved, cotangent))

        return _derived(plain, run, pull)(*leaves)

    return call


def _derived(plain: Function, run: Function, pull: Function) -> Function:
    """Attaches the backward pass to a function of flat arrays; see `with_backward`."""
    call = jax.custom_jvp(plain)
    run = _run_like(call, run)

    def rule(leaves: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        result, saved = run(*leaves)
        saved, saved_tree = jax.tree.flatten(saved)
        result_types = jax.tree.map(jax.typeof, result)
        pull_floats = _pull_like(plain, pull, result_types)
        # Arguments that are not differentiated stay out of the map: they get no gradient.
        moves, count = [type(tangent) is not SymbolicZero for tangent in tangents], len(leaves)

        def push_moving(known: Sequence[Any], moving: Sequence[Any]) -> list[Any]:
            primals, rest = known[:count], iter(moving)
            tangents = tuple(
                next(rest) if one else _zero_tangent(jax.typeof(primal))
                for one, primal in zip(moves, primals, strict=True)
            )
            return _floats(jax.jvp(plain, primals, tangents)[1])

        def pull_moving(known: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
            gradients = pull_floats(known[:count], saved_tree.unflatten(known[count:]), cotangents)
            return list(itertools.compress(gradients, moves))

        # Forward mode evaluates `push`; reverse mode transposes it, which is to run `pull` instead.
        pushed = _push.bind(
            *leaves,
            *saved,
            *itertools.compress(tangents, moves),
            num_known=count + len(saved),
            push=push_moving,
            pull=pull_moving,
            types=tuple(_floats(result_types)),
        )
        return result, _tangent(result_types, pushed)

    call.defjvp(rule, symbolic_zeros=True)
    return call


def _run_like(call: Function, run: Function) -> Function:
    """Returns the forward pass: its result has the derivatives of `call`, what it saves has none.

    What is saved depends on the arguments, too; that is accounted for by `_pull_like`.
    """
    run = jax.custom_jvp(run)

    def rule(leaves: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        result, saved = run(*leaves)
        # The result has the tangent that `call` gives it; what was saved has none.
        _, pushed = jax.jvp(call, leaves, tangents)
        still = jax.tree.map(lambda array: _zero_tangent(jax.typeof(array)), saved)
        return (result, saved), (pushed, still)

    run.defjvp(rule)
    return run


def _pull_like(plain: Function, pull: Function, result_types: Any) -> Function:
    """Returns the backward pass, as a function of the arguments and cotangents of floats.

    Its derivatives are those of what reverse-mode differentiation makes of the plain function.
    """

    @jax.custom_jvp
    def call(leaves: Sequence[Any], saved: Any, cotangents: Sequence[Any]) -> list[Any]:
        gradients = pull(leaves, saved, _tangent(result_types, cotangents))
        for place, leaf in enumerate(leaves):
            if not _is_float(jax.typeof(leaf)):
                # None is a tree without leaves, for which no tangent is due.
                gradients[place] = None
            elif gradients[place] is None:
                gradients[place] = jnp.zeros_like(leaf)
        return gradients

    def plainly(leaves: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        # What second derivatives are taken of; never run for a first gradient.
        gradients = jax.vjp(plain, *leaves)[1](_tangent(result_types, cotangents))
        return [one if _is_float(jax.typeof(one)) else None for one in gradients]

    def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        (leaves, _, cotangents), (on_leaves, _, on_cotangents) = primals, tangents
        _, pushed = jax.jvp(plainly, (leaves, cotangents), (on_leaves, on_cotangents))
        return call(*primals), pushed

    call.defjvp(rule)
    return call


def _floats(tree: Any) -> list[Any]:
    """Returns the leaves, arrays or their types, that have a derivative."""
    return [leaf for leaf in jax.tree.leaves(tree) if _is_float(leaf)]


def _tangent(types: Any, floats: Sequence[Any]) -> Any:
    """Returns a tangent or cotangent: the floats in their places, zeros in those of integers."""
    rest = iter(floats)
    return jax.tree.map(lambda one: next(rest) if _is_float(one) else _zero_tangent(one), types)


def _is_float(array: Any) -> bool:
    return jnp.issubdtype(array.dtype, jnp.inexact)


def _zero_tangent(kind: Any) -> Any:
    if not _is_float(kind):
        return np.zeros(kind.shape, jax.dtypes.float0)
    return ad.instantiate_zeros(ad.Zero(kind.to_tangent_aval()))


# A linear map that is given its transpose. The operands are `num_known` arrays that it depends on,
# and tangents. `push` is the map and `pull` its transpose; each is a function of the arrays, and of
# tangents or cotangents.

_push = Primitive("push_tangents")
_push.multiple_results = True


@_push.def_impl
def _apply(*operands: Any, num_known: int, push: Function, **_: Any) -> list[Any]:
    return push(operands[:num_known], operands[num_known:])


@_push.def_abstract_eval
def _result_types(*_: Any, types: Sequence[Any], **__: Any) -> Sequence[Any]:
    return types


def _differentiate(
    primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any
) -> tuple[Any, Any]:
    tangents = map(ad.instantiate_zeros, tangents)
    return jax.jvp(functools.partial(_apply, **parameters), tuple(primals), tuple(tangents))


def _transpose(
    cotangents: Sequence[Any], *operands: Any, num_known: int, pull: Function, **_: Any
) -> list[Any]:
    gradients = pull(operands[:num_known], list(map(ad.instantiate_zeros, cotangents)))
    return [
        *itertools.repeat(None, num_known),
        *(
            gradient if ad.is_undefined_primal(operand) else None
            for operand, gradient in zip(operands[num_known:], gradients, strict=True)
        ),
    ]


def _map_over_axis(
    size: int,
    name: Any,
    _: Any,
    operands: Sequence[Any],
    axes: Sequence[int | None],
    *,
    num_known: int,
    push: Function,
    pull: Function,
    types: Sequence[Any],
) -> tuple[list[Any], list[int | None]]:
    if all(axis is None for axis in axes):
        pushed = _push.bind(*operands, num_known=num_known, push=push, pull=pull, types=types)
        return pushed, [None] * len(pushed)
    tangents = operands[num_known:]
    tangents = map(batching.bdim_at_front, tangents, axes[num_known:], itertools.repeat(size))
    # The maps themselves are mapped, so that a batched primitive is again one with a transpose.
    over = dict(in_axes=(tuple(axes[:num_known]), 0), axis_name=name, axis_size=size)
    pushed = _push.bind(
        *operands[:num_known],
        *tangents,
        num_known=num_known,
        push=jax.vmap(push, **over),
        pull=jax.vmap(pull, **over),
        types=tuple(unmapped_aval(size, 0, one) for one in types),
    )
    return pushed, [0] * len(pushed)


# Compiled as the plain linear map, for `jvp` under `jit`.
mlir.register_lowering(_push, mlir.lower_fun(_apply, multiple_results=True))
ad.primitive_jvps[_push] = _differentiate
ad.primitive_transposes[_push] = _transpose
batching.axis_primitive_batchers[_push] = _map_over_axis
