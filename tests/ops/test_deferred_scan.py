"""`deferred_scan` against `lax.scan`: values, gradients, transformations and what it defers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from attention_jax.ops.deferred_scan import deferred_scan
from attention_jax.ops.normalizers import sparsemax
from attention_jax.ops.scores import additive_scores
from attention_jax.ops.step_program import Program
from tests.derivatives import assert_derivatives_are_those_of

T, B, D, S = 4, 2, 3, 5


def weights_step(constants, carry, x):
    """Weights used twice, one of them transposed, and beside a product too."""
    hidden = jnp.tanh(carry @ constants["w"] + x @ constants["u"] + constants["b"])
    hidden = hidden + 0.1 * (carry @ constants["w"].T) * constants["w"].sum()
    return hidden, hidden * 2.0


def nested_step(constants, carry, x):
    inner = jax.jit(lambda w, carry: jax.jit(jnp.matmul)(carry, w) + jax.nn.softmax(x))
    carry = jax.nn.relu(inner(constants["w"], carry))
    return carry, carry.sum(-1)


def invariant_step(constants, carry, x):
    """What depends on constants alone, and a result that is a constant itself."""
    kernel = jnp.tanh(constants["w"] @ constants["w"])
    return carry @ kernel + x, (constants["b"], kernel[0, 0])


def attention_step(constants, carry, x):
    """Batched products with a memory, custom gradients inside."""
    scores = additive_scores((carry + x)[:, None], constants["keys"], constants["b"])
    weights = sparsemax(scores, constants["mask"][:, None])
    context = (weights @ constants["keys"])[:, 0]
    return jnp.tanh(context @ constants["w"]), weights[:, 0]


def counting_step(constants, carry, x):
    """Integers in the carry, gathering with them, floats beside them."""
    hidden, position = carry
    index = jnp.clip(position[:, None] + jnp.arange(2), 0, S - 1)
    window = jnp.take_along_axis(constants["keys"], index[..., None], axis=1)
    hidden = jnp.tanh(hidden @ constants["w"] + window.sum(1) + x)
    return (hidden, position + 1), (hidden, index)


def embedding_step(constants, carry, x):
    """A look-up at indices that the carry decides."""
    token = jnp.argmax(carry, -1)
    return jnp.tanh(constants["w"][token] + x), token


def looping_step(constants, carry, x):
    def body(_, value):
        return jnp.sin(value @ constants["w"])

    carry = lax.fori_loop(0, 2, body, carry) + x
    return lax.cond(carry.sum() > 0, lambda c: c, lambda c: 2.0 * c, carry), carry


def hard_step(constants, carry, x):
    carry = carry + lax.stop_gradient(x @ constants["w"]) + x @ lax.stop_gradient(constants["u"])
    return carry, None


STEPS = {
    step.__name__.removesuffix("_step"): step
    for step in (
        weights_step,
        nested_step,
        invariant_step,
        attention_step,
        counting_step,
        embedding_step,
        looping_step,
        hard_step,
    )
}


def arguments_of(name, dtype=jnp.float32):
    rng = np.random.default_rng(0)
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape), dtype)  # noqa: E731
    constants = {
        "w": draw(D, D),
        "u": draw(D, D),
        "b": draw(D),
        "keys": draw(B, S, D),
        "mask": jnp.arange(S) < jnp.asarray([[5], [3]]),
    }
    carry = draw(B, D)
    if name == "counting":
        carry = (carry, jnp.asarray([0, 2]))
    return constants, carry, draw(T, B, D)


def run(scan, step, constants, carry, inputs, **options):
    if scan == "lax":
        return lax.scan(functools.partial(step, constants), carry, inputs, **options)
    return deferred_scan(step, constants, carry, inputs, **options)


def loss(scan, step, constants, carry, inputs, **options):
    result = run(scan, step, constants, carry, inputs, **options)
    floats = [leaf for leaf in jax.tree.leaves(result) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    return sum((leaf * jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape)).sum() for leaf in floats)


def gradients(scan, step, arguments, **options):
    """Gradients with respect to every array that has one."""
    function = functools.partial(loss, scan, step, **options)
    found = jax.grad(function, argnums=(0, 1, 2), allow_int=True)(*arguments)
    return [leaf for leaf in jax.tree.leaves(found) if leaf.dtype != jax.dtypes.float0]


def values_and_gradients(step, *arguments, **options):
    """What both scans give, the deferred one first."""
    return [
        (run(scan, step, *arguments, **options), gradients(scan, step, arguments, **options))
        for scan in ("deferred", "lax")
    ]


def assert_trees_close(found, expected, **tolerances):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(np.asarray(one, float), np.asarray(other, float), **tolerances)


@pytest.mark.parametrize(
    ("name", "reverse"), [*((name, False) for name in STEPS), ("weights", True), ("counting", True)]
)
def test_deferred_scan_equals_lax_scan(name, reverse):
    both = jax.jit(functools.partial(values_and_gradients, STEPS[name], reverse=reverse))
    found, expected = both(*arguments_of(name))
    assert_trees_close(found, expected, rtol=1e-4, atol=1e-5)


def test_deferred_scan_equals_lax_scan_without_jit():
    found, expected = values_and_gradients(counting_step, *arguments_of("counting"))
    assert_trees_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["attention", "counting"])
def test_second_derivatives_and_forward_mode_are_those_of_lax_scan(name):
    """Also through custom gradients of the step, look-ups and integers in the carry."""
    constants, carry, inputs = arguments_of(name)
    mask = constants.pop("mask")

    def total(scan):
        def loss_at(point):
            constants, inputs = point
            return loss(scan, STEPS[name], {**constants, "mask": mask}, carry, inputs)

        return loss_at

    point = jax.tree.map(lambda leaf: 0.5 * leaf, (constants, inputs))
    assert_derivatives_are_those_of(total("lax"), total("deferred"), point, rtol=2e-3, atol=1e-3)


def test_hessian_of_weights_whose_gradients_are_deferred(numpy_rng):
    """Far larger than the rows they multiply; their Hessian-vector product was once zero."""
    draw = lambda *shape: jnp.asarray(numpy_rng.normal(size=shape), jnp.float32)  # noqa: E731
    weights, start, inputs = draw(40, 40) / 6, draw(2, 40), jnp.zeros((4, 0))

    def step(weights, hidden, _):
        return jnp.tanh(hidden @ weights), None

    def total(scan):
        return lambda at: (run(scan, step, at[0], at[1], inputs)[0] ** 2).sum()

    traced = jax.make_jaxpr(step)(weights, start, inputs[0])
    assert Program.build(traced, (1, 1, 1)).products
    point = (weights, start)
    assert_derivatives_are_those_of(total("lax"), total("deferred"), point, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["weights", "attention", "embedding"])
def test_deferred_scan_under_vmap(name):
    stacked = jax.tree.map(
        lambda leaf: jnp.stack([leaf, leaf] if leaf.dtype == bool else [leaf, -leaf]),
        arguments_of(name),
    )
    both = jax.jit(jax.vmap(functools.partial(values_and_gradients, STEPS[name])))
    found, expected = both(*stacked)
    assert_trees_close(found, expected, rtol=1e-4, atol=1e-5)


def test_deferred_scan_in_bfloat16():
    exact = gradients("lax", weights_step, arguments_of("weights"))
    found = jax.jit(lambda *a: gradients("deferred", weights_step, a))(
        *arguments_of("weights", jnp.bfloat16)
    )
    for one, other in zip(found, exact, strict=True):
        assert one.dtype == jnp.bfloat16
        error = np.abs(np.asarray(one, np.float32) - other).max()
        assert error <= 0.1 * np.abs(other).max()


def sums_of_every_kind_step(constants, carry, x):
    """A small matrix, a sum beside it, and rows that are looked up out of many."""
    product, row = x @ constants["small"], constants["table"][carry]
    return carry, (product + constants["bias"], (product * constants["bias"]).sum(), row)


def test_gradients_of_bfloat16_over_many_steps_are_those_of_float32():
    """Whether they are deferred or not; a sum of ones in bfloat16 would end at 256."""
    sizes = {"small": (2, 2), "bias": (2,), "table": (40, 2)}
    constants = {name: jnp.full(size, 0.25) for name, size in sizes.items()}
    start, inputs = jnp.asarray(3), jnp.full((1024, 1, 2), 0.5)

    @jax.jit
    def gradient(constants, inputs):
        def total(*arrays):
            _, outputs = deferred_scan(sums_of_every_kind_step, arrays[0], start, arrays[1])
            return sum(output.astype(jnp.float32).sum() for output in outputs)

        return jax.grad(total, (0, 1))(constants, inputs)

    exact = gradient(constants, inputs)
    short = gradient(*jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), (constants, inputs)))
    for one, other in zip(jax.tree.leaves(short), jax.tree.leaves(exact), strict=True):
        assert one.dtype == jnp.bfloat16
        np.testing.assert_allclose(np.asarray(one, np.float32), other, rtol=0.01)


def test_deferred_scan_nests():
    """A scan whose step scans."""

    def outer(scan, constants, carry, x):
        carry, ys = run(scan, weights_step, constants, carry, jnp.stack([x, 2 * x]))
        return carry, ys.sum(0)

    found, expected = (
        jax.jit(
            lambda *a, scan=scan: gradients(scan, functools.partial(outer, scan), a)
        )(*arguments_of("weights"))
        for scan in ("deferred", "lax")
    )
    assert_trees_close(found, expected, rtol=1e-3, atol=1e-4)


def test_deferred_scan_starts_from_python_numbers():
    def step(constants, carry, x):
        return carry + 1, x * carry * constants

    final, outputs = deferred_scan(step, 2.0, 0, jnp.arange(3.0))
    assert int(final) == 3
    np.testing.assert_array_equal(outputs, [0.0, 2.0, 8.0])


def primitives_in_loops(jaxpr, inside=False):
    """Yields (primitive, shape of its first result) of all that runs inside a scan."""
    for equation in jaxpr.eqns:
        is_scan = equation.primitive.name == "scan"
        if inside:
            yield equation.primitive.name, tuple(equation.outvars[0].aval.shape)
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from primitives_in_loops(inner, inside or is_scan)


def test_weight_gradients_leave_the_loop():
    """No product of a weight's shape (7 by 11) is formed inside a loop."""

    def step(constants, carry, x):
        return jnp.tanh(x @ constants["w"] + carry), None

    arguments = {"w": jnp.ones((7, 11))}, jnp.zeros((2, 11)), jnp.ones((3, 2, 7))
    shapes = {}
    for scan in ("deferred", "lax"):
        traced = jax.make_jaxpr(lambda *a, scan=scan: gradients(scan, step, a))(*arguments)
        shapes[scan] = {
            shape for name, shape in primitives_in_loops(traced.jaxpr) if name == "dot_general"
        }
    is_weight = lambda shape: sorted(shape) == [7, 11]  # noqa: E731
    assert any(map(is_weight, shapes["lax"])) and not any(map(is_weight, shapes["deferred"]))


PROJECTIONS = {
    "plain": lambda w, h: h @ w,
    "transposed": lambda w, h: h @ w.T,
    "second axis": lambda w, h: jnp.einsum("...d,fd->...f", h, w),
    "from the left": lambda w, h: jnp.moveaxis(jnp.tensordot(w, h, (0, -1)), 0, -1),
}


@pytest.mark.parametrize("rows", [(), (2,), (2, 2)])
@pytest.mark.parametrize("name", PROJECTIONS)
def test_gradients_that_left_the_loop_are_those_within_it(name, rows, numpy_rng):
    """The weights are larger than what they are multiplied with, so that this pays."""

    def step(w, hidden, x):
        hidden = jnp.tanh(PROJECTIONS[name](w, hidden) + x)
        return hidden, hidden

    arguments = [
        jnp.asarray(0.3 * numpy_rng.normal(size=size), jnp.float32)
        for size in ((12, 12), (*rows, 12), (T, *rows, 12))
    ]
    traced = jax.make_jaxpr(step)(*arguments[:2], arguments[2][0])
    assert Program.build(traced, (1, 1, 1)).products
    found, expected = (gradients(scan, step, arguments) for scan in ("deferred", "lax"))
    assert_trees_close(found, expected, rtol=1e-4, atol=1e-5)


def test_what_depends_on_constants_alone_is_computed_before_the_loop():
    def step(constants, carry, x):
        return carry + x * jnp.sin(constants).sum(), None

    traced = jax.make_jaxpr(functools.partial(deferred_scan, step))(
        jnp.ones(3), 0.0, jnp.ones(4)
    )
    assert "sin" in str(traced)
    assert "sin" not in [name for name, _ in primitives_in_loops(traced.jaxpr)]


def test_what_steps_gather_is_gathered_again_and_not_kept(numpy_rng):
    """Neither the windows of all steps nor the gradients of these are arrays of the program."""
    length, slots, width, depth = 6, 40, 5, 3

    def step(memory, carry, x):
        hidden, start = carry
        window = lax.dynamic_slice_in_dim(jnp.arange(slots), start, width)
        keys = memory[window]
        weights = jax.nn.softmax(jnp.einsum("wd,d->w", keys, hidden))
        return (jnp.tanh(x + jnp.einsum("w,wd->d", weights, keys)), start + 1), None

    def loss(scan, memory, hidden, xs):
        (final, _), _ = scan(memory, (hidden, jnp.int32(0)), xs)
        return jnp.sum(final**2)

    deferred = functools.partial(loss, functools.partial(deferred_scan, step))
    plain = functools.partial(loss, lambda memory, *rest: lax.scan(functools.partial(step, memory),
                                                                   *rest))  # fmt: skip
    arguments = [
        jnp.asarray(numpy_rng.normal(size=shape), jnp.float32)
        for shape in ((slots, depth), (depth,), (length, depth))
    ]
    found, expected = (jax.grad(one, argnums=(0, 1, 2))(*arguments) for one in (deferred, plain))
    assert_trees_close(found, expected, rtol=1e-5, atol=1e-6)
    products = (
        jax.jvp(jax.grad(one, argnums=(0, 1, 2)), tuple(arguments), tuple(arguments))[1]
        for one in (deferred, plain)
    )
    assert_trees_close(*products, rtol=1e-5, atol=1e-6)  # second derivatives are right, too
    traced = str(jax.make_jaxpr(jax.grad(deferred, argnums=(0, 1, 2)))(*arguments))
    assert "scatter-add" in traced
    kept = [f"f32[{length},{a},{b}]" for a, b in ((width, depth), (depth, width), (slots, depth))]
    assert not [shape for shape in kept if shape in traced]
    assert kept[0] in str(jax.make_jaxpr(jax.grad(plain, argnums=(0, 1, 2)))(*arguments))
