"""What holds for every attention mechanism, whatever it computes."""

import contextlib
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers import hard_attention
from attention_jax.layers.attention import Attention
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.types import Call
from tests.conformance.battery import (
    CASES,
    GROUPS,
    LENGTHS,
    LONGER,
    ONE_SOURCE,
    REFINEMENT_FIELDS,
    SIZES,
    B,
    D,
    Dv,
    S,
    T,
    all_cases,
    allows,
    another,
    build_case,
    close,
    each_of,
    every_case,
    inputs,
    needs_of,
    one_case_each,
    reference,
    small_config,
    small_score,
    source_ids,
    written_words,
)
from tests.parameters import carried_over
from tests.sums import in_bfloat16, in_type, places_of, short_sums

# Less is rounding: of parameters that learn, it is a hundred times as large and more.
_LEAST_GRADIENT = 1e-5


def test_battery_holds_every_mechanism():
    built = {case.part for case in CASES.values()}
    assert built == set(ONE_SOURCE)
    assert len(CASES) == len(all_cases())  # each has a name of its own
    for name in MECHANISMS.names():
        assert MECHANISMS.find(name).PAPER and MECHANISMS.config(name).name == name


@every_case
def test_it_is_built(case):
    """And called; whatever its own file raises, other rules are not tried on one that is not."""
    if case.refusal is not None:
        raise case.refusal
    assert case.mechanism.num_heads >= 1


@every_case
def test_shapes_and_dtypes(case):
    output, _ = reference(case)
    slots = output.weights.shape[-1]
    assert output.context.shape == (B, T, case.mechanism.context_dim)
    assert output.weights.shape == output.scores.shape == (B, T, slots)
    assert slots == S or not case.mechanism.traits.is_alignment
    assert output.weights.dtype == output.scores.dtype == np.float32
    assert all(leaf.shape[:2] == (B, T) for leaf in output.aux.values())
    if case.mechanism.num_heads > 1:
        heads = output.aux["head_weights"]
        assert heads.shape == (B, T, case.mechanism.num_heads, slots)
        np.testing.assert_allclose(heads.mean(2), output.weights, rtol=1e-6, atol=1e-7)


@every_case
def test_weights_are_at_least_zero_and_sum_to_one_or_less(case):
    weights = reference(case)[0].weights
    assert weights.min() >= 0, f"found a weight of {weights.min()}"
    most = weights.sum(-1).max()
    assert most <= 1 + 1e-5, f"found weights that add up to {most}"
    if case.is_distribution:
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
    if weights.shape[-1] == S:
        assert np.all(weights[:, :, ~(np.arange(S) < max(LENGTHS))] == 0)
        for row, length in enumerate(LENGTHS):
            assert np.all(weights[row, :, length:] == 0)


@every_case
def test_one_query_at_a_time_equals_all_at_once(case):
    found = jax.jit(case.stepwise)(case.params, *inputs())
    close(found, reference(case)[0])


@every_case
def test_what_padding_holds_changes_nothing(case):
    check_padding(case, S)


@each_of(LONGER)
def test_longer_padding_changes_nothing(case):
    check_padding(case, S + 3)


def check_padding(case, size):
    """Compares padding to this size that holds NaN with less of it that holds numbers."""
    expected = reference(case)
    query, keys, values, mask = inputs(size)
    junk = jnp.where(mask[..., None], 0.0, jnp.nan)
    output, gradients = case.run(case.params, query, keys + junk, values + junk, mask)
    is_per_slot = expected[0].weights.shape[-1] == S
    for name in ("weights", "scores"):
        found = getattr(output, name)[..., : S if is_per_slot else None]
        real = np.asarray(mask)[:, None, :S] if is_per_slot else True
        wanted = getattr(expected[0], name)
        np.testing.assert_allclose(
            np.where(real, found, 0), np.where(real, wanted, 0), rtol=1e-4, atol=1e-5
        )
    np.testing.assert_allclose(output.context, expected[0].context, rtol=1e-4, atol=1e-5)
    close(gradients[:2], expected[1][:2])
    for found, wanted in zip(gradients[2:], expected[1][2:], strict=True):
        np.testing.assert_allclose(found[:, :S], wanted, rtol=1e-4, atol=1e-5)
        assert np.all(np.asarray(found)[~np.asarray(mask)] == 0)


def Dc(case):  # noqa: N802  (a dimension's name)
    return case.mechanism.context_dim


@every_case
def test_gradients_of_bfloat16_are_summed_in_float32(case):
    batch, slots = 11, 17

    def loss(params, query, keys, values, mask):
        return case.attend(params, query, keys, values, mask, is_fused=True).context.sum()

    shapes = [jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in
              ((batch, T, D), (batch, slots, D), (batch, slots, Dv))]  # fmt: skip
    mask = jax.ShapeDtypeStruct((batch, slots), bool)
    arguments = in_bfloat16(case.params), *shapes, mask
    assert short_sums(jax.grad(loss), *arguments, sizes=(batch, slots)) == []


@every_case
def test_rows_without_slots_give_zeros_and_finite_gradients(case):
    query, keys, values, mask = inputs()
    output, gradients = case.run(case.params, query, keys, values, mask.at[1].set(False))
    assert np.all(np.asarray(output.weights[1]) == 0)
    np.testing.assert_array_equal(
        output.context[1], np.broadcast_to(case.params.get("output_bias", 0), (T, Dc(case)))
    )
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((output, gradients)))
    expected = reference(case)[0]
    np.testing.assert_allclose(output.context[0], expected.context[0], rtol=1e-5, atol=1e-6)


def is_positional(case):
    """Whether slots are told apart that hold the same: by their weights, or by what is drawn."""
    if getattr(case.config, "at_test", None) == hard_attention.Sample():
        return True
    query, keys, values, _ = inputs()
    alike = jnp.broadcast_to(keys[:, :1], keys.shape)
    output, _ = case.run(case.params, query, alike, values, jnp.ones((B, S), bool))
    weights = np.asarray(output.weights)
    return not np.allclose(weights, weights[..., :1], atol=1e-5)


@every_case
def test_order_of_slots_matters_only_to_positional_mechanisms(case):
    query, keys, values, _ = inputs()
    order, mask = np.asarray([3, 0, 4, 2, 1]), jnp.ones((B, S), bool)
    plain, _ = case.run(case.params, query, keys, values, mask)
    moved, _ = case.run(case.params, query, keys[:, order], values[:, order], mask)
    same = plain.weights if plain.weights.shape[-1] != S else plain.weights[..., order]
    is_equivariant = np.allclose(moved.weights, same, atol=1e-5) and np.allclose(
        moved.context, plain.context, atol=1e-5
    )
    assert is_equivariant != is_positional(case)


@every_case
def test_every_parameter_learns(case):
    gradients = reference(case)[1][0]
    assert set(gradients) == set(case.mechanism.parameters)
    for name, gradient in gradients.items():
        if case.evaluation == "hard" and not name.startswith("chunk_"):
            assert not np.any(gradient), name  # a decision teaches nothing
            continue
        has_heads = gradient.ndim > 1 or getattr(case.mechanism, "layout", None) is None
        has_heads &= case.mechanism.num_heads > 1
        heads = gradient.reshape(case.mechanism.parameters[name].shape[0] if has_heads else 1, -1)
        least = np.abs(heads).max(-1).min()
        assert least > _LEAST_GRADIENT, f"{name} does not: its gradient is {least:.0e}"


@one_case_each
def test_jit_equals_eager(case):
    close(case.attend(case.params, *inputs()), reference(case)[0])


@one_case_each
def test_vmap_equals_batch(case):
    mapped = jax.jit(jax.vmap(case.attend, in_axes=(None, 0, 0, 0, 0)))
    close(mapped(case.params, *inputs()), reference(case)[0])


@one_case_each
def test_beams_share_a_memory(case):
    query, keys, values, mask = inputs()
    beams = jnp.stack([query[:, :1], query[:, 1:2]], 1)
    shared = [array[:, None] for array in (keys, values, mask)]
    tiled = [jnp.repeat(array, 2, 1) for array in shared]
    attend = jax.jit(case.attend)
    close(attend(case.params, beams, *shared), attend(case.params, beams, *tiled))


@one_case_each
def test_rows_share_a_memory_without_axes_of_its_own(case):
    """As many slots as there are heads, among others: no axis is taken for another."""
    query, *rest = inputs()
    shared = [array[0, : max(case.mechanism.num_heads, 2)] for array in rest]
    tiled = [jnp.stack([array] * B) for array in shared]
    attend = jax.jit(case.attend)
    close(attend(case.params, query[:, :1], *shared), attend(case.params, query[:, :1], *tiled))


@one_case_each
def test_a_memory_may_have_no_slots_yet(case):
    """As before the first token of a search; nothing is asked of it."""

    def prepare(params, keys, values, mask):
        memory = case.memory(params, keys[:, :0], values[:, :0], mask[:, :0])
        state = case.mechanism.init_state(params, memory)
        return memory, state, case.mechanism.remaining(state)

    memory, state, remaining = jax.eval_shape(prepare, case.params, *inputs()[1:])
    if case.config.name == "none":
        return  # its memory is the one slot of a summary
    assert 0 in memory.mask.shape and memory.keys.shape[:-1] == memory.mask.shape
    assert set(state) == set(case.mechanism.carries)
    assert remaining is None or remaining.shape[:2] == (B, 0)


@one_case_each
def test_bfloat16_is_close_with_float32_weights(case):
    expected, _ = reference(case)
    narrow = jax.tree.map(
        lambda leaf: leaf.astype(jnp.bfloat16) if leaf.dtype == jnp.float32 else leaf,
        (case.params, *inputs()),
    )
    found = jax.jit(case.attend)(*narrow)
    assert found.weights.dtype == found.scores.dtype == jnp.float32
    assert found.context.dtype == jnp.bfloat16
    error = np.abs(found.weights - expected.weights).max(-1)
    if "center" in expected.aux:  # rounding may move the window by a slot
        is_same = np.floor(found.aux["center"]) == np.floor(expected.aux["center"])
        is_same = is_same if is_same.ndim == 2 else is_same.all(-1)
        assert is_same.mean() > 0.5
        error = error[is_same]
    assert error.max() < 0.05


@one_case_each
def test_it_and_its_gradients_can_be_lowered_for_gpus_and_tpus(case):
    """With the branches that are taken there; nothing is run."""
    for program in (case.run, jax.jit(functools.partial(case.attend, is_fused=True))):
        traced = program.trace(case.params, *inputs())
        traced.lower(lowering_platforms=("cuda", "tpu"))


@one_case_each
def test_second_call_compiles_nothing(case):
    query, keys, values, mask = inputs()
    case.run(case.params, query, keys, values, mask)
    count = case.run._cache_size()
    case.run(case.params, 2 * query, 2 * keys, values, ~mask)
    assert case.run._cache_size() == count


def alternatives(config):
    """Yields (field, another value of it), which is MISSING where none is known."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name == "name":
            continue
        if field.name == "refinements":
            others = [{name: choices[0]} for name, choices in REFINEMENT_FIELDS.items()]
            others += [{"rope": {"base": 10.0}}, {"sliding_window": {"size": 3}}]
        elif field.name == "use_key_bias":
            continue  # refused here, see below
        elif field.name == "num_memory_heads":
            others = [1]
        elif field.name in ("head_value_dim", "max_positions"):
            others = [3]
        elif field.name == "dropout":
            others = [0.5]
        elif field.name in ("score", "chunk_score") and "named" in field.metadata:
            others = [small_score("luong_dot")]
            if not hasattr(config, "evaluation"):  # which normalises nothing
                others.append(small_score("luong_general", normalizer="entmax15"))
        elif field.name in GROUPS:
            others = GROUPS[field.name]
        elif "choices" in field.metadata:
            others = [choice for choice in field.metadata["choices"] if choice != value]
        elif field.name == "num_heads":
            others = [n for n in (2, 4) if n != value and allows(field, n)][:1]
        elif isinstance(value, bool):
            others = [not value]
        elif isinstance(value, int | float):
            others = [other for other in [another(field, value)] if other is not None]
        else:
            others = []
        for other in others or [dataclasses.MISSING]:
            yield field.name, other


def changes():
    """Yields (config, field, another value of it) of every mechanism."""
    for name in ONE_SOURCE:
        with contextlib.suppress(Exception):  # which `test_it_is_built` tells
            config = small_config(name)
            for field, other in alternatives(config):
                yield pytest.param(config, field, other, id=f"{name}-{field}")


@pytest.mark.parametrize(("config", "field", "other"), list(changes()))
def test_every_field_changes_something(config, field, other):
    """Another value means another output, of parameters that are the same where both have them.

    Or what a parameter starts from is another number.
    """
    if other is dataclasses.MISSING:
        raise NotImplementedError(f"{field}: say in `alternatives` what else it may be")
    changed = dataclasses.replace(config, **{field: other})
    is_of_test = any(
        getattr(config, name, None) != getattr(changed, name, None)
        for name in ("at_test", "evaluation")
    )
    params, before = small_output(config.name, is_of_test)
    case = build_case(changed)
    if case.starts != build_case(config).starts:
        return
    after = output_of(case, carried_over(params, case.params), is_of_test)
    same_shape = before.context.shape == after.context.shape
    is_same = same_shape and np.allclose(before.context, after.context, atol=1e-6)
    assert not is_same, f"the same of {field}={getattr(config, field)} and {field}={other}"


def output_of(case, params, is_of_test):
    """The output in training, or in a test."""
    call = Call(not is_of_test, jax.random.key(0))
    return jax.jit(functools.partial(case.attend, call=call))(params, *inputs())


@functools.cache
def small_output(name, is_of_test):
    """The parameters of a mechanism's small config, and its output."""
    case = build_case(small_config(name))
    return case.params, output_of(case, case.params, is_of_test)


@pytest.mark.parametrize("name", ONE_SOURCE)
def test_attention_layer_declares_what_the_mechanism_needs(name):
    config, (query, _, values, mask) = small_config(name), inputs()
    layer, keys = Attention(config, sizes=SIZES), inputs()[1]
    rest = dict(keys=keys, aux={"source_ids": source_ids(mask)}, observed=written_words(query))
    variables = jax.jit(functools.partial(layer.init, **rest))(
        jax.random.key(0), query, values, mask
    )
    params = variables.get("params", {})
    shapes = {key: leaf.shape for key, leaf in params.items()}
    case = build_case(config)
    assert shapes == {key: p.shape for key, p in case.mechanism.parameters.items()}
    found, _ = jax.jit(functools.partial(layer.apply, **rest))(variables, query, values, mask)
    close(found, jax.jit(case.attend)(params, query, keys, values, mask))


@pytest.mark.parametrize(
    "fields",
    [
        {"score": small_config("bahdanau")},
        {"score": small_config("local_m", score=small_score("luong_concat"))},
        *({"refinements": {name: {}}} for name in ("rope", "qk_norm", "attention_sink")),
        {"refinements": {"soft_cap": {"cap": 0.5}}},
    ],
)
def test_a_bias_of_keys_changes_weights_where_it_may_be(fields):
    plain, biased = (
        build_case(small_config("multi_head", use_key_bias=value, **fields))
        for value in (False, True)
    )
    params = carried_over(plain.params, biased.params)
    close_to = np.allclose(
        jax.jit(plain.attend)(plain.params, *inputs()).weights,
        jax.jit(biased.attend)(params, *inputs()).weights,
        atol=1e-5,
    )
    assert not close_to
    with pytest.raises(ValueError, match="use_key_bias: expected an additive score that"):
        small_config("multi_head", use_key_bias=True, refinements={"alibi": {}})


@pytest.mark.parametrize("num_heads", [1, 2])
def test_attention_layer_reads_where_it_may(num_heads):
    """A mask for each query, beside that of the padding; a layer of a causal place has none."""
    query, keys, values, mask = inputs()
    layer = Attention(small_config("bahdanau", num_heads=num_heads))
    variables = layer.init(jax.random.key(0), query, values, mask)
    past = jnp.tril(jnp.ones((T, S), bool))
    found, _ = layer.apply(variables, query, values, mask, query_mask=past)
    weights, free = found.weights, layer.apply(variables, query, values, mask)[0].weights
    assert np.all(np.asarray(weights)[:, ~past] == 0) and np.any(np.asarray(free)[:, ~past] > 0.01)
    np.testing.assert_allclose(weights.sum(-1), 1.0, rtol=1e-5)
    masks = jnp.broadcast_to(past, (B, T, S)).at[1].set(True)
    mixed, _ = layer.apply(variables, query, values, mask, query_mask=masks)
    np.testing.assert_allclose(mixed.weights[0], weights[0], rtol=1e-6)
    np.testing.assert_allclose(mixed.weights[1], free[1], rtol=1e-6)


@pytest.mark.parametrize("place", ["self", "causal"])
@pytest.mark.parametrize("refinements", [{}, {"sliding_window": {"size": 9}}])
def test_attention_layer_of_a_causal_place_is_so_within_a_sliding_window_only(place, refinements):
    _, keys, _, mask = inputs()
    config = small_config("multi_head", refinements=refinements)
    layer = Attention(config, sizes={"place": place})
    variables = layer.init(jax.random.key(0), keys, keys, mask)
    weights = np.asarray(layer.apply(variables, keys, keys, mask)[0].weights)
    ahead = weights[:, np.triu(np.ones((S, S), bool), 1)]
    assert np.any(ahead > 0.01) != (place == "causal" and bool(refinements))


@pytest.mark.parametrize("name", ["local_m", "local_p"])
@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda: small_config("none"), "score.name: expected a score over all slots, found 'none'"),
        (lambda: small_config("local_m"), "score.name: .* found 'local_m'"),
        (lambda: small_config("bahdanau", num_heads=2), "score.num_heads: expected 1, .* found 2"),
        (lambda: small_config("coverage_vector"), "score.name: .* which carries coverage"),
        (lambda: small_config("coverage_embedding"), "score.name: .* which carries coverage and"),
        (lambda: small_config("luong_location"), "score.max_positions: expected 5, .* found 8"),
    ],
)
def test_windows_reject_scores_that_cannot_fill_them(name, score, message):
    with pytest.raises(ValueError, match=message):
        small_config(name, score=score())


NEEDY = [name for name in ONE_SOURCE if "source_vocabulary_size" in needs_of(name)]


@pytest.mark.parametrize("name", NEEDY)
def test_what_a_mechanism_needs_is_asked_for(name):
    config, (query, keys, values, mask) = small_config(name), inputs()
    aux, observed = {"source_ids": source_ids(mask)}, written_words(query)
    for given, message in (
        (dict(aux=aux, observed=observed), f"source_vocabulary_size and word_dim for {name!r}"),
        (dict(sizes=SIZES, observed=observed), "source_ids: expected in the memory"),
        (dict(sizes=SIZES, aux=aux), f"observed: expected what .* for {name!r}, found none"),
    ):
        layer = Attention(config, sizes=given.pop("sizes", {}))
        with pytest.raises(ValueError, match=message):
            jax.eval_shape(
                functools.partial(layer.init, **given), jax.random.key(0), query, values, mask
            )
    case = build_case(config)
    memory = case.memory(case.params, keys, values, mask)
    with pytest.raises(ValueError, match="observed: expected what comes between several queries"):
        case.mechanism.attend(case.params, query, memory)


@each_of(LONGER)
def test_float64_is_computed_in_float64(case):
    """With `jax_enable_x64`, nothing is shorter on the way, forward or backward."""

    def loss(floats, mask):
        output = case.attend(*floats, mask)
        return output.context.sum(), (output.weights, output.scores)

    run = jax.jit(jax.value_and_grad(loss, has_aux=True))  # traced once for each type
    *floats, mask = (case.params, *inputs())
    with jax.enable_x64(True):
        floats, float32s = in_type(jnp.float64, floats), in_type(jnp.float32, floats)
        assert places_of(jnp.float32, run, floats, mask) == []
        for of in (floats, float32s):  # and float32 stays what it is
            (context, outputs), gradients = jax.eval_shape(run, of, mask)
            found = {leaf.dtype for leaf in jax.tree.leaves((context, outputs, gradients))}
            assert found == {of[1].dtype}
