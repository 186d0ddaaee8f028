"""Combinations of several sources: their equations in NumPy, and what holds for all of them."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.mechanism import MECHANISMS
from tests.conformance.battery import ONE_SOURCE, close, small_config, written_words
from tests.quick import quick_jit

B, T, D = 3, 4, 6
LENGTHS = {"source": (5, 1, 3), "fr": (3, 2, 4)}
SIZES = {"word_dim": 3}
COMBINATIONS = sorted(set(MECHANISMS.names()) - set(ONE_SOURCE))
HEADS = small_config("multi_head", num_heads=2, head_dim=3, use_bias=True)


def config(name, score="bahdanau", **fields):
    score = HEADS if score == "multi_head" else small_config(score)
    return MECHANISMS.config(name)(score=score, **fields)


# What each is tried with: scores of one head, of several, windows, and what is carried.
CASES = {
    "concatenated-bahdanau": (config("concatenated"), {"source": D, "fr": 5}),
    "concatenated-local_p": (config("concatenated", "local_p"), {"source": D, "fr": 5}),
    "flat-bahdanau": (config("flat"), {"source": D, "fr": 5}),
    "flat-luong_general": (config("flat", "luong_general"), {"source": D, "fr": 5}),
    "flat-multi_head": (config("flat", "multi_head"), {"source": D, "fr": 5}),
    "hierarchical-bahdanau": (config("hierarchical"), {"source": D, "fr": 5}),
    "hierarchical-multi_head": (
        config("hierarchical", "multi_head", over=HEADS), {"source": D, "fr": 5}
    ),
    "hierarchical-neural_coverage": (
        config("hierarchical", "neural_coverage"), {"source": D, "fr": 5}
    ),
    "parallel-coverage_vector": (config("parallel", "coverage_vector"), {"source": D, "fr": D}),
    "parallel-multi_head": (config("parallel", "multi_head"), {"source": D, "fr": 5}),
    "serial-luong_general": (config("serial", "luong_general"), {"source": D, "fr": D}),
    "serial-multi_head": (config("serial", "multi_head"), {"source": D, "fr": 5}),
}  # fmt: skip
every_case = pytest.mark.parametrize("name", CASES)


@functools.cache
def built(name):
    attention, depths = CASES[name]
    sources = tuple(depths.items())
    return build_mechanism(attention, D, D, D, sources=sources, **SIZES)


def drawn(mechanism, seed=1):
    rng = np.random.default_rng(seed)
    return jax.tree.map(
        lambda parameter: jnp.asarray(0.5 * rng.normal(size=parameter.shape), jnp.float32),
        mechanism.parameters,
    )


def inputs(name, more=0):
    """Returns (query, {source: (annotations, mask)}), with more padding if asked for."""
    rng, arrays = np.random.default_rng(0), {}
    for source, depth in CASES[name][1].items():
        lengths = np.asarray(LENGTHS[source])
        size = lengths.max()
        slots = jnp.asarray(rng.normal(size=(B, size, depth)), jnp.float32)
        mask = jnp.asarray(np.arange(size + more) < lengths[:, None])
        arrays[source] = (jnp.pad(slots, ((0, 0), (0, more), (0, 0))), mask)
    return jnp.asarray(rng.normal(size=(B, T, D)), jnp.float32), arrays


def encoded(arrays):
    return {name: Encoded(*parts) for name, parts in arrays.items()}


@functools.cache
def run(name):
    """Compiled: (params, query, slots, masks) -> (output, gradients of all but the masks)."""
    mechanism = built(name)

    def loss(params, query, slots, masks):
        sources = {source: Encoded(slots[source], masks[source]) for source in slots}
        memory = mechanism.make_memory(params, sources)
        output, _ = mechanism.attend(params, query, memory, observed=written_words(query))
        upstream = jnp.cos(jnp.arange(output.context.size)).reshape(output.context.shape)
        return (output.context * upstream).sum(), output

    def both(*arguments):
        gradients, output = jax.grad(loss, (0, 1, 2), has_aux=True)(*arguments)
        return output, gradients

    return quick_jit(both)


def answered(name, arrays, params=None):
    query, _ = inputs(name)
    slots, masks = ({s: parts[i] for s, parts in arrays.items()} for i in (0, 1))
    return run(name)(drawn(built(name)) if params is None else params, query, slots, masks)


def softmax(scores):
    shifted = np.exp(scores - scores.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def additive(params, query, keys):
    """Scores `T S` of one row, in float64."""
    hidden = np.tanh((query @ params["query_kernel"])[:, None] + keys @ params["key_kernel"])
    return hidden @ params["vector"]


def rows(name):
    """Yields (query, annotations of the first source, of the second, output) of each row."""
    query, arrays = inputs(name)
    output, _ = answered(name, arrays)
    (one, _), (other, _) = arrays.values()
    for row in range(B):
        real = [np.float64(array[row, : LENGTHS[source][row]])
                for source, array in zip(LENGTHS, (one, other), strict=True)]  # fmt: skip
        yield row, np.float64(query[row]), *real, jax.tree.map(lambda leaf: leaf[row], output)  # noqa: B023


def test_flat_is_one_softmax_over_all_slots():
    params = jax.tree.map(np.float64, drawn(built("flat-bahdanau")))
    for _, query, one, other, output in rows("flat-bahdanau"):
        scores = [
            additive({**params["shared"], **params["sources"][name]}, query, slots)
            for name, slots in (("source", one), ("fr", other))
        ]
        weights = softmax(np.concatenate(scores, -1))
        values = [slots @ params["sources"][name]["value_kernel"]
                  for name, slots in (("source", one), ("fr", other))]  # fmt: skip
        np.testing.assert_allclose(output.context, weights @ np.concatenate(values), rtol=1e-4)
        size = len(one)
        np.testing.assert_allclose(output.weights[:, :size], weights[:, :size], rtol=1e-4)
        found = output.aux["fr/weights"][:, : len(other)]
        np.testing.assert_allclose(found, weights[:, size:], rtol=1e-4)


def contexts_of(params, query, one, other):
    weights = [softmax(additive(params["sources"][name], query, slots))
               for name, slots in (("source", one), ("fr", other))]  # fmt: skip
    return weights, [part @ slots for part, slots in zip(weights, (one, other), strict=True)]


def test_hierarchical_attends_to_the_contexts():
    params = jax.tree.map(np.float64, drawn(built("hierarchical-bahdanau")))
    for _, query, one, other, output in rows("hierarchical-bahdanau"):
        weights, contexts = contexts_of(params, query, one, other)
        over = params["over"]
        scores, values = [], []
        for name, context in zip(("source", "fr"), contexts, strict=True):
            own = {**over["shared"], **over["sources"][name]}
            hidden = np.tanh(query @ own["query_kernel"] + context @ own["key_kernel"])
            scores.append(hidden @ own["vector"])
            values.append(context @ own["value_kernel"])
        shares = softmax(np.stack(scores, -1))
        np.testing.assert_allclose(output.aux["shares"], shares, rtol=1e-4)
        expected = sum(shares[:, k, None] * values[k] for k in range(2))
        np.testing.assert_allclose(output.context, expected, rtol=1e-4, atol=1e-6)
        # Weights are those of the first source by itself, whatever its share.
        np.testing.assert_allclose(output.weights[:, : len(one)], weights[0], rtol=1e-4)
        np.testing.assert_allclose(output.aux["fr/weights"][:, : len(other)], weights[1], rtol=1e-4)


def test_concatenated_contexts_stand_side_by_side():
    """That of each source once, whatever their order: not the first one's twice."""
    params = jax.tree.map(np.float64, drawn(built("concatenated-bahdanau")))
    for _, query, one, other, output in rows("concatenated-bahdanau"):
        _, contexts = contexts_of(params, query, one, other)
        np.testing.assert_allclose(
            output.context, np.concatenate(contexts, -1), rtol=1e-4, atol=1e-6
        )


def test_serial_asks_the_second_source_with_what_the_first_has_told():
    params = jax.tree.map(np.float64, drawn(built("serial-luong_general")))
    norm = params["norms"]["fr"]
    for _, query, one, other, output in rows("serial-luong_general"):
        first = softmax(query @ params["sources"]["source"]["kernel"] @ one.T) @ one
        asked = query + first
        centred = asked - asked.mean(-1, keepdims=True)
        asked = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
        asked = asked * norm["scale"] + norm["bias"]
        second = softmax(asked @ params["sources"]["fr"]["kernel"] @ other.T) @ other
        np.testing.assert_allclose(output.context, first + second, rtol=1e-3, atol=1e-5)


def test_parallel_adds_what_each_source_answers():
    name = "parallel-multi_head"
    mechanism, params, (query, arrays) = built(name), drawn(built(name)), inputs(name)
    total = 0.0
    for source, depth in CASES[name][1].items():
        one = build_mechanism(HEADS, D, depth, depth)
        own = params["sources"][source]
        memory = one.make_memory(own, encoded({source: arrays[source]}))
        total = total + quick_jit(one.attend)(own, query, memory)[0].context
    np.testing.assert_allclose(answered(name, arrays)[0].context, total, rtol=1e-4, atol=1e-5)
    assert mechanism.context_dim == D


@every_case
def test_weights_are_of_the_first_source_and_those_of_others_beside_them(name):
    mechanism, (_, arrays) = built(name), inputs(name)
    output, _ = answered(name, arrays)
    assert output.context.shape == (B, T, mechanism.context_dim)
    assert output.weights.shape == output.scores.shape == (B, T, max(LENGTHS["source"]))
    assert output.aux["fr/weights"].shape == (B, T, max(LENGTHS["fr"]))
    assert all(leaf.shape[:2] == (B, T) for leaf in jax.tree.leaves(output.aux))
    if mechanism.num_heads > 1:
        heads = output.aux["head_weights"]
        np.testing.assert_allclose(heads.mean(2), output.weights, rtol=1e-5)
        assert output.aux["fr/head_weights"].shape[2] == mechanism.num_heads
    total = output.weights.sum(-1)
    if name.startswith("flat"):
        total = total + output.aux["fr/weights"].sum(-1)
    if "local" not in name:
        np.testing.assert_allclose(total, 1, rtol=1e-5)


@every_case
def test_one_query_at_a_time_equals_all_at_once(name):
    mechanism, params, (query, arrays) = built(name), drawn(built(name)), inputs(name)
    memory = mechanism.make_memory(params, encoded(arrays))

    def step(state, inputs):
        query, observed, position = inputs
        if mechanism.observes:
            state = mechanism.observe(params, memory, state, observed)
        output, state = mechanism.attend(
            params, query[:, None], memory, state, positions=position[None]
        )
        return state, jax.tree.map(lambda part: part[:, 0], output)

    by_time = jax.tree.map(lambda part: jnp.swapaxes(part, 0, 1), (query, written_words(query)))
    _, outputs = quick_jit(functools.partial(jax.lax.scan, step))(
        mechanism.init_state(params, memory), (*by_time, jnp.arange(T))
    )
    stepwise = jax.tree.map(lambda part: jnp.swapaxes(part, 0, 1), outputs)
    close(stepwise, answered(name, arrays)[0])


@every_case
def test_what_padding_holds_changes_nothing(name):
    _, arrays = inputs(name)
    expected, wanted = answered(name, arrays)
    _, longer = inputs(name, more=2)
    junk = {
        source: (slots + jnp.where(mask[..., None], 0.0, jnp.nan), mask)
        for source, (slots, mask) in longer.items()
    }
    output, gradients = answered(name, junk)
    np.testing.assert_allclose(output.context, expected.context, rtol=1e-4, atol=1e-5)
    size = expected.weights.shape[-1]
    np.testing.assert_allclose(output.weights[..., :size], expected.weights, rtol=1e-4, atol=1e-5)
    close(gradients[:2], wanted[:2])
    for source, (_, mask) in junk.items():
        assert np.all(np.asarray(gradients[2][source])[~np.asarray(mask)] == 0)


@every_case
def test_an_empty_source_adds_nothing_and_none_gives_zeros(name):
    _, arrays = inputs(name)
    slots, mask = arrays["fr"]
    others = {**arrays, "fr": (slots, mask.at[1].set(False))}
    changed = {**others, "fr": (slots + 3.0, others["fr"][1])}
    output, gradients = answered(name, others)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((output.context, gradients)))
    np.testing.assert_array_equal(output.context[1], answered(name, changed)[0].context[1])
    assert not np.asarray(output.aux["fr/weights"][1]).any()
    if "shares" in output.aux and "multi_head" not in name:
        np.testing.assert_allclose(output.aux["shares"][1], [[1.0, 0.0]] * T, rtol=1e-6)
    nothing = {s: (slots, mask.at[1].set(False)) for s, (slots, mask) in arrays.items()}
    output, gradients = answered(name, nothing)
    assert not np.asarray(output.weights[1]).any()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((output.context, gradients)))
    if "multi_head" not in name:  # whose contexts have a bias
        assert not np.asarray(output.context[1]).any()


@every_case
def test_every_parameter_learns_and_every_source_matters(name):
    _, arrays = inputs(name)
    output, (of_params, of_query, of_slots) = answered(name, arrays)
    for path, gradient in jax.tree.leaves_with_path(of_params):
        if "key_bias" not in jax.tree_util.keystr(path):
            assert np.abs(gradient).max() > 0, jax.tree_util.keystr(path)
    for source, gradient in of_slots.items():
        assert (np.abs(gradient).max((1, 2)) > 0).all(), source


@pytest.mark.parametrize("name", COMBINATIONS)
def test_masks_of_heads_reach_every_source(name):
    """As when heads are ablated: one row of the mask for each head, the same for all slots."""
    name = f"{name}-multi_head" if f"{name}-multi_head" in CASES else f"{name}-bahdanau"
    mechanism, params, (query, arrays) = built(name), drawn(built(name)), inputs(name)
    sizes = [array.shape[1] for array, _ in arrays.values()]
    none = jnp.zeros((1, mechanism.num_heads, 1, 1), bool)
    second = jnp.arange(sum(sizes))[None] >= sizes[0]

    @quick_jit
    def weights(mask):
        memory = mechanism.make_memory(params, encoded(arrays))
        output, _ = mechanism.attend(params, query, memory, mask=mask)
        return output.weights, output.aux["fr/weights"]

    assert not any(np.asarray(part).any() for part in weights(none))
    one, other = weights(second)
    assert not np.asarray(one).any() and np.asarray(other).any()


def test_a_head_that_stands_for_all_is_of_the_first_source():
    for name in ("flat-multi_head", "parallel-multi_head"):
        mechanism = dataclasses.replace(built(name), alignment_head=1)
        query, arrays = inputs(name)
        params = drawn(mechanism)
        memory = mechanism.make_memory(params, encoded(arrays))
        output, _ = quick_jit(mechanism.attend)(params, query, memory)
        np.testing.assert_array_equal(output.weights, output.aux["head_weights"][:, :, 1])


@pytest.mark.parametrize(
    ("attention", "depths", "message"),
    [
        (config("flat"), {"source": D}, "expected several sources for 'flat', found source alone"),
        (config("flat", "local_p"), {"source": D, "fr": D}, "where in its source a slot stands"),
        (config("flat", "none"), {"source": D, "fr": D}, "no score of queries and keys"),
        (config("flat", "neural_coverage"), {"source": D, "fr": D}, "'neural_coverage', which"),
        (config("flat", "luong_concat"), {"source": D, "fr": 5}, "projects the keys of each"),
        (config("parallel"), {"source": D, "fr": 5}, "of one depth for 'parallel', found source"),
        (config("serial"), {"source": D, "fr": 5}, "as deep as queries .6. for 'serial', found 5"),
        (
            config("hierarchical", over=small_config("local_p")), {"source": D, "fr": D},
            "attention.over.name: expected a score for slots",
        ),
        (
            config("concatenated", "hard"), {"source": D, "fr": D},
            "needs no objective to teach it, found 'hard'",
        ),
    ],
)  # fmt: skip
def test_what_does_not_serve_is_refused(attention, depths, message):
    with pytest.raises(ValueError, match=message):
        build_mechanism(attention, D, D, D, sources=tuple(depths.items()), **SIZES)


def test_combinations_of_combinations_are_refused():
    with pytest.raises(ValueError, match="score.name: expected attention to one source, found 'fl"):
        MECHANISMS.config("parallel")(score=config("flat"))
    with pytest.raises(ValueError, match="over.name: expected attention to one source"):
        MECHANISMS.config("hierarchical")(over=config("flat"))
