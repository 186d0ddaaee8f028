"""How any attention mechanism may be called: where slots stand, for each head, with nothing."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

from attention_jax.layers.attention import Attention, build_mechanism
from tests.conformance.battery import (
    CASES,
    FEW,
    ONE_SOURCE,
    SIZES,
    B,
    D,
    Dv,
    S,
    T,
    build_case,
    close,
    each_of,
    inputs,
    reference,
    small_config,
    source_ids,
    sources_of,
    written_words,
)

# One case of each mechanism, and of each refinement: what may read where a slot stands.
REFINED = {next(iter(case.config.refinements)): name for name, case in reversed(CASES.items())
           if len(getattr(case.config, "refinements", ())) == 1}  # fmt: skip
SINKS = [name for name in CASES if name.endswith("num_first=1")]
PLACED = [name for name in CASES if name in {*FEW, *REFINED.values(), *SINKS}]
every_placed = each_of(PLACED)
# Whose definitions read the index of a query or of a slot, not the distance of both.
ABSOLUTE = {"luong_location", "structural_bias"}
ORDER = np.asarray([3, 0, 4, 2, 1])


@functools.cache
def with_positions(case):
    """Compiled: (order of the slots, their positions, those of the queries) -> output."""

    def run(params, order, slots, queries):
        query, *source = inputs()
        keys, values, mask, ids = (part[:, order] for part in (*source, source_ids(source[-1])))
        memory = case.mechanism.make_memory(params, sources_of(keys, values, mask, ids), slots)
        observed = written_words(query)
        return case.mechanism.attend(
            params, query, memory, observed=observed, positions=queries
        )[0]

    return functools.partial(jax.jit(run), case.params)


@every_placed
def test_slots_are_known_by_their_positions_and_not_by_their_order(case):
    run, slots, queries = with_positions(case), np.arange(S), np.arange(T)
    expected = run(slots, slots, queries)
    for name in ("context", "weights"):
        plain = getattr(reference(case)[0], name)
        np.testing.assert_allclose(getattr(expected, name), plain, rtol=1e-4, atol=1e-5)
    moved = run(ORDER, ORDER, queries)
    is_per_slot = expected.weights.shape[-1] == S

    def in_order(array):
        return array[..., ORDER] if is_per_slot else array

    np.testing.assert_allclose(moved.context, expected.context, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(moved.weights, in_order(expected.weights), rtol=1e-4, atol=1e-5)


@every_placed
def test_queries_and_slots_further_on_have_the_same_distances(case):
    """And other indices, which some mechanisms and the first slots of a window are about."""
    run, slots, queries = with_positions(case), np.arange(S), np.arange(T)
    here, there = run(slots, slots, queries), run(slots, slots + 5, queries + 5)
    names = {case.config.name, getattr(getattr(case.config, "score", None), "name", None)}
    window = getattr(case.config, "refinements", {}).get("sliding_window")
    is_same = np.allclose(here.weights, there.weights, atol=1e-5)
    assert is_same != (bool(names & ABSOLUTE) or bool(window and window.num_first))
    if is_same:
        np.testing.assert_allclose(here.context, there.context, rtol=1e-4, atol=1e-5)
    if "center" in here.aux:
        np.testing.assert_allclose(here.aux["center"] + 5, there.aux["center"], rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("luong_location", {}),
        ("structural_bias", {}),
        ("local_m", {}),
        ("multi_head", {"refinements": {"sliding_window": {"size": 2, "num_first": 1}}}),
        ("multi_head", {"refinements": {"relative_positions": {}}}),
    ],
)
def test_a_part_of_a_sequence_is_attended_to_as_behind_a_mask(name, fields):
    """Its slots are at indices 2 to 4 of what is masked but for them; queries stay where they are.

    But for the number of real slots, which is the same in both.
    """
    case, (query, keys, values, _) = build_case(small_config(name, **fields)), inputs()
    mask = jnp.broadcast_to(jnp.arange(S) >= 2, (B, S))
    whole = jax.jit(case.attend)(case.params, query, keys, values, mask)

    @jax.jit
    def of_part(params):
        part = (array[:, 2:] for array in (keys, values, mask))
        memory = case.mechanism.make_memory(params, sources_of(*part), jnp.arange(2, S))
        return case.mechanism.attend(params, query, memory)[0]

    found = of_part(case.params)
    np.testing.assert_allclose(found.weights, whole.weights[..., 2:], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.context, whole.context, rtol=1e-4, atol=1e-5)


@each_of([name for name in PLACED if CASES[name].has_heads])
def test_each_head_may_have_a_bias_and_a_mask_of_its_own(case):
    """Slots that are forbidden have no weight in that head."""
    query, keys, values, mask = inputs()
    heads, params = case.mechanism.num_heads, case.params
    rng = np.random.default_rng(3)
    bias = jnp.asarray(rng.normal(size=(B, heads, T, S)), jnp.float32)
    allowed = jnp.asarray(rng.random((B, heads, T, S)) < 0.7)
    observed = written_words(query)

    @jax.jit
    def attend(bias, allowed):
        memory, rows = case.memory(params, keys, values, mask), dict(bias=bias, mask=allowed)
        return case.mechanism.attend(params, query, memory, observed=observed, **rows)[0]

    found = attend(bias, allowed)
    assert found.weights.shape == (B, T, S)
    by_head = np.moveaxis(np.asarray(found.aux["head_weights"]), 2, 1)
    assert np.all(by_head[~np.asarray(allowed)] == 0)


@pytest.mark.parametrize(
    ("name", "heads", "batch"),
    [
        ("multi_head", 1, 3), ("multi_head", 2, 1), ("multi_head", 2, 2), ("multi_head", 2, 3),
        ("multi_head", 4, 3), ("bahdanau", 1, 2), ("bahdanau", 2, 2), ("scaled_dot", 2, 3),
    ],
)  # fmt: skip
def test_biases_of_heads_for_every_number_of_rows_and_heads(name, heads, batch):
    """As in T5: every head's scores are those without a bias, and its own bias."""
    case = build_case(small_config(name, num_heads=heads))
    query, keys, values, mask = (array[:batch] for array in inputs())
    bias = np.random.default_rng(4).normal(size=(batch, heads, T, S)).astype(np.float32)
    biases = (bias, bias[:1], bias[:, :, :1], bias[:, :1], bias[:, 0])

    @jax.jit
    def attend(params):
        memory = case.mechanism.make_memory(params, sources_of(keys, values, jnp.ones_like(mask)))
        attend = functools.partial(case.mechanism.attend, params, query, memory)
        return attend()[0], [attend(bias=jnp.asarray(given))[0] for given in biases]

    plain, outputs = attend(case.params)
    close(outputs[-2], outputs[-1])  # one for all heads, in both ways
    for given, found in zip(biases[:-1], outputs, strict=False):
        assert found.context.shape == plain.context.shape
        expected = plain.scores + np.broadcast_to(given, bias.shape).mean(1)
        np.testing.assert_allclose(found.scores, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["multi_head", "luong_dot", "local_m"])
@pytest.mark.parametrize("kind", ["bias", "mask"])
@pytest.mark.parametrize("shape", [(B, 3, T, S), (1, B, 2, T, S), (B, T, S + 1), (B + 1, T, S)])
def test_biases_and_masks_of_other_shapes_are_refused(name, kind, shape):
    case, (query, keys, values, mask) = build_case(small_config(name)), inputs()
    memory = case.memory(case.params, keys, values, mask)
    given = {kind: jnp.zeros(shape, bool if kind == "mask" else jnp.float32)}
    with pytest.raises((ValueError, TypeError)):
        jax.eval_shape(lambda: case.mechanism.attend(case.params, query, memory, **given))


WINDOWS = [name for name in PLACED if CASES[name].has_window]
NORMALIZED = [name for name in CASES if name.startswith("luong_dot") and name not in PLACED]
EMPTY = {"batch": (0, T, S), "queries": (B, 0, S), "slots": (B, T, 0)}


def shapes(batch, queries, slots):
    floats = [(batch, queries, D), (batch, slots, D), (batch, slots, Dv)]
    arrays = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in floats]
    return *arrays, jax.ShapeDtypeStruct((batch, slots), bool)


@pytest.mark.parametrize("placed", [False, True], ids=["in order", "placed"])
@pytest.mark.parametrize("what", EMPTY)
@each_of(PLACED + NORMALIZED)
def test_nothing_may_be_given(case, what, placed):
    """No rows, no queries or no slots: an output of that shape, and gradients."""
    batch, queries, slots = EMPTY[what]

    def loss(params, query, keys, values, mask):
        places = jnp.arange(slots) if placed else None
        memory = case.mechanism.make_memory(params, sources_of(keys, values, mask), places)
        told = written_words(query)
        output, _ = case.mechanism.attend(params, query, memory, observed=told)
        return output.context.sum() + output.weights.sum() + output.scores.sum(), output

    gradients = jax.grad(loss, argnums=range(4), has_aux=True)
    found, output = jax.eval_shape(gradients, case.params, *shapes(batch, queries, slots))
    assert output.context.shape == (batch, queries, case.mechanism.context_dim)
    if case.config.name != "none":
        assert output.weights.shape == output.scores.shape == (batch, queries, slots)
    assert found[1].shape == (batch, queries, D)


@each_of([*WINDOWS, *NORMALIZED])
def test_no_slots_give_zeros(case):
    query, keys, values, mask = inputs()
    output = jax.jit(case.attend)(case.params, query, keys[:, :0], values[:, :0], mask[:, :0])
    assert output.context.shape == (B, T, case.mechanism.context_dim)
    np.testing.assert_array_equal(output.context, 0)


@pytest.fixture
def unchecked():
    """Annotations are not checked, since sizes that are not known compare with nothing."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def exported(case, sizes):
    """Exports a call for sizes that are not known yet."""

    def call(params, query, keys, values, mask):
        memory = case.memory(params, keys, values, mask)
        words = jnp.zeros((*query.shape[:-1], SIZES["word_dim"]))
        observed = {"written_word": words, "written_id": jnp.zeros((*query.shape[:-1], 1), int)}
        return case.mechanism.attend(params, query, memory, observed=observed)[0]

    return jax.jit(call), jax.export.export(jax.jit(call))(case.params, *shapes(*sizes))


@every_placed
def test_calls_can_be_exported_for_any_sizes(case, unchecked):
    sizes = jax.export.symbolic_shape("b, t, s")
    call, program = exported(case, sizes)
    assert len(program.in_avals) == len(case.params) + 4
    if case.has_window or case.config.name == "luong_location":
        close(jax.jit(program.call)(case.params, *inputs()), call(case.params, *inputs()))
        exported(case, (sizes[0], T, S))


@pytest.mark.parametrize("name", ONE_SOURCE)
def test_equal_configs_give_equal_mechanisms_that_are_compiled_once(name):
    one, other = (build_case(small_config(name)).mechanism for _ in range(2))
    assert one == other and hash(one) == hash(other) and one is not other
    count = []

    @functools.partial(jax.jit, static_argnums=0)
    def number(mechanism):
        count.append(mechanism)
        return jnp.float32(mechanism.num_heads)

    assert number(one) == number(other) == one.num_heads and len(count) == 1
    assert one != build_mechanism(small_config(name), D, D, D, **SIZES)
    assert one != build_mechanism(small_config(name), D, D, Dv, **{**SIZES, "word_dim": 4})
    deeper = one.context_dim + 1
    changed = dataclasses.replace(one, context_dim=deeper)
    assert one != changed and changed == dataclasses.replace(other, context_dim=deeper)
    changed = dataclasses.replace(one, parts=one.parts._replace(context_dim=deeper))
    assert changed != one and changed == changed and hash(changed) != hash(one)


def test_other_configs_give_other_mechanisms():
    mechanisms = [case.mechanism for case in CASES.values() if case.refusal is None]
    assert len({*mechanisms}) == len(mechanisms)


def test_attention_layer_is_told_where_slots_stand():
    query, keys, values, mask = inputs()
    layer = Attention(small_config("luong_location"))
    variables = layer.init(jax.random.key(0), query, values, mask)
    plain, _ = layer.apply(variables, query, values, mask)
    moved, _ = layer.apply(
        variables, query, values[:, ORDER], mask[:, ORDER], slot_positions=jnp.asarray(ORDER)
    )
    np.testing.assert_allclose(moved.weights, plain.weights[..., ORDER], rtol=1e-5)
