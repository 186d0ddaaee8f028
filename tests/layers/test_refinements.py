"""Multi-head attention and each of its refinements, against loops in NumPy float64 and by hand."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.encoder import sequence
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.mechanisms.multi_head import Config
from attention_jax.layers.parameters import shared_names
from attention_jax.layers.refinement import REFINEMENTS, without_positions
from attention_jax.ops import fused_dot
from attention_jax.ops.attend import make_memory
from attention_jax.ops.dropout import dropout_factors
from attention_jax.types import Call
from tests.conformance.battery import small_score

B, T, D, H, DK, DV = 2, 5, 6, 4, 4, 3
LENGTHS = (5, 3)
UNSCALED = MECHANISMS.config("luong_dot")()
LOCAL = MECHANISMS.config("local_m")(half_width=1, score=MECHANISMS.config("scaled_dot")())
PLACES = MECHANISMS.config("luong_location")(max_positions=5)
WINDOW_OF_PLACES = MECHANISMS.config("local_m")(half_width=2, score=PLACES)
CASES = {
    "plain": {},
    "bias": {"use_bias": True},
    "groups": {"num_memory_heads": 2},
    "rope": {"refinements": {"rope": {"base": 100.0}}},
    "rope-halves": {"refinements": {"rope": {"layout": "halves"}}},
    "alibi": {"refinements": {"alibi": {}}},
    "alibi-groups": {"refinements": {"alibi": {}}, "num_memory_heads": 2},
    "relative_buckets": {
        "refinements": {"relative_buckets": {"num_buckets": 6, "max_distance": 5}}
    },
    "relative_positions": {"refinements": {"relative_positions": {"max_distance": 2}}},
    "relative_keys": {
        "refinements": {"relative_positions": {"max_distance": 1, "adds_values": False}}
    },
    "relative_positions-unscaled": {
        "score": UNSCALED, "refinements": {"relative_positions": {"max_distance": 2}}
    },
    "sliding_window": {"refinements": {"sliding_window": {"size": 2}}},
    "sliding_window-first": {"refinements": {"sliding_window": {"size": 1, "num_first": 2}}},
    "soft_cap": {"refinements": {"soft_cap": {"cap": 0.7}}},
    "qk_norm": {"refinements": {"qk_norm": {}}},
    "qk_norm-l2": {"refinements": {"qk_norm": {"norm": "l2", "length": 9}}},
    "attention_sink": {"refinements": {"attention_sink": {}}},
    "attention_sink-zero": {"refinements": {"attention_sink": {"is_learned": False}}},
    "talking_heads": {"refinements": {"talking_heads": {}}},
    "talking_heads-scores": {"refinements": {"talking_heads": {"mixes_weights": False}}},
    "talking_heads-weights": {"refinements": {"talking_heads": {"mixes_scores": False}}},
    "alibi-steepness": {"refinements": {"alibi": {"steepness": 2.0}}},
    "talking_heads-groups": {"refinements": {"talking_heads": {}}, "num_memory_heads": 2},
    "talking_heads-local": {"score": LOCAL, "refinements": {"talking_heads": {}}},
}  # fmt: skip


def built(place="causal", **fields):
    config = Config(num_heads=H, head_dim=DK, head_value_dim=DV, **fields)
    return config, build_mechanism(config, D, D, D, place=place)


def drawn(mechanism, place):
    rng = np.random.default_rng(1)
    params = {name: 0.6 * rng.normal(size=p.shape) for name, p in mechanism.parameters.items()}
    x, mask = rng.normal(size=(B, T, D)), np.arange(T) < np.asarray(LENGTHS)[:, None]
    allowed = mask[:, None, :] & (np.tri(T, dtype=bool) if place == "causal" else True)
    return params, x, mask, np.broadcast_to(allowed, (B, T, T))


def rotated(vectors, base, layout):
    depth, result = vectors.shape[-1], np.array(vectors)
    for t in range(vectors.shape[1]):
        for k in range(depth // 2):
            pair = (2 * k, 2 * k + 1) if layout == "interleaved" else (k, k + depth // 2)
            angle = t * base ** (-2 * k / depth)
            turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            result[:, t, pair] = vectors[:, t, pair] @ turn.T
    return result


def normalized(vectors, gain):
    return gain * vectors / np.sqrt((vectors**2).mean(-1, keepdims=True) + 1e-6)


def projected(config, params, x, mask, h):
    """Queries, keys and values of one head, with what acts on them."""
    g = h // (H // (config.num_memory_heads or H))
    used = config.refinements
    q, k = x @ params["query_projection"][h], x @ params["key_projection"][g]
    v = x @ params["value_projection"][g]
    if config.use_bias:
        q, v = q + params["query_bias"][h], v + params["value_bias"][g]
    if "qk_norm" in used and used["qk_norm"].norm == "rms":
        q, k = normalized(q, params["query_scale"][h]), normalized(k, params["key_scale"][g])
    elif "qk_norm" in used:
        length = used["qk_norm"].length
        q, k = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (q, k))
        q = q * params["query_scale"][h] * np.log2(length**2 - length) * np.sqrt(DK)
    if "rope" in used:
        q, k = (rotated(a, used["rope"].base, used["rope"].layout) for a in (q, k))
    return q, k, np.where(mask[..., None], v, 0)


def scored(config, params, q, k, h, is_causal):
    """Scores of one head, before heads talk."""
    used, offset = config.refinements, np.arange(T) - np.arange(T)[:, None]
    scale = 1.0 if config.score == UNSCALED else 1 / np.sqrt(DK)
    scores = q @ np.swapaxes(k, 1, 2) * scale
    if "relative_positions" in used:
        reach = used["relative_positions"].max_distance
        table = params["distance_keys"][h][np.clip(offset, -reach, reach) + reach]
        scores = scores + np.einsum("btd,tsd->bts", q, table) * scale
    if "soft_cap" in used:
        scores = used["soft_cap"].cap * np.tanh(scores / used["soft_cap"].cap)
    if "alibi" in used:
        scores = scores - 2.0 ** (-used["alibi"].steepness * (h + 1) / H) * np.abs(offset)
    if "relative_buckets" in used:
        sizes = used["relative_buckets"].num_buckets, used["relative_buckets"].max_distance
        buckets = [[bucket(s - t, *sizes, is_causal) for s in range(T)] for t in range(T)]
        scores = scores + params["bucket_bias"][h][np.array(buckets)]
    return scores


def weighed(config, params, scores, allowed, h):
    exponentials = np.where(allowed, np.exp(scores), 0)
    total = exponentials.sum(-1, keepdims=True)
    if "attention_sink" in config.refinements:
        total = total + np.exp(params["sink"][h] if "sink" in params else 0.0)
    return exponentials / np.where(total > 0, total, 1)


def reference(config, params, x, mask, allowed):
    """Contexts, and the heads' mean weights before those are mixed."""
    used, heads = config.refinements, [projected(config, params, x, mask, h) for h in range(H)]
    is_causal = not allowed[0, 0, 1]
    scores = np.stack(
        [scored(config, params, q, k, h, is_causal) for h, (q, k, _) in enumerate(heads)]
    )
    if "sliding_window" in used:
        offset, window = np.arange(T) - np.arange(T)[:, None], used["sliding_window"]
        is_near = np.abs(offset) < window.size
        is_first = (np.arange(T) < window.num_first) & (offset < window.size)
        allowed = allowed & (is_near | is_first)
    if config.score == LOCAL:
        allowed = allowed & (np.abs(np.arange(T) - np.arange(T)[:, None]) <= 1)
    if "mixed_scores" in params:
        scores = np.einsum("hg,gbts->hbts", np.eye(H) + params["mixed_scores"], scores)
    weights = np.stack([weighed(config, params, scores[h], allowed, h) for h in range(H)])
    reported = weights.mean(0)
    if "mixed_weights" in params:
        weights = np.einsum("hg,gbts->hbts", np.eye(H) + params["mixed_weights"], weights)
    context = np.zeros((B, T, D))
    for h, (_, _, v) in enumerate(heads):
        read = weights[h] @ v
        if "distance_values" in params:
            reach = used["relative_positions"].max_distance
            offset = np.clip(np.arange(T) - np.arange(T)[:, None], -reach, reach) + reach
            table = params["distance_values"][h][offset]
            read = read + np.einsum("bts,tsd->btd", weights[h], table)
        context += read @ params["output_kernel"][h]
    return context + params.get("output_bias", 0.0), reported


def bucket(offset, number, furthest, is_causal):
    """The bucket of one offset, by the formula of the paper's program."""
    number, first, distance = (number, 0, max(-offset, 0)) if is_causal else (
        number // 2, number // 2 if offset > 0 else 0, abs(offset)
    )  # fmt: skip
    exact = number // 2
    if distance < exact:
        return first + distance
    growth = math.log(distance / exact) / math.log(furthest / exact)
    return first + min(exact + int(growth * (number - exact) + 1e-9), number - 1)


@pytest.mark.parametrize("groups", [None, 2])
@pytest.mark.parametrize("place", ["causal", "self"])
def test_scores_have_the_bias_of_their_bucket(place, groups):
    sizes = {"num_buckets": 6, "max_distance": 5}
    _, plain = built(place, num_memory_heads=groups)
    _, mechanism = built(place, num_memory_heads=groups, refinements={"relative_buckets": sizes})
    assert shared_names(mechanism.parameters, "layers") == {"bucket_bias"}
    params, x, mask, allowed = drawn(mechanism, place)
    params, x = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), (params, x))
    scores = []
    for each in (plain, mechanism):
        memory = each.make_memory(params, sequence(x, jnp.asarray(mask)))
        scores.append(each.attend(params, x, memory, mask=jnp.asarray(allowed))[0].scores)
    buckets = [[bucket(s - t, 6, 5, place == "causal") for s in range(T)] for t in range(T)]
    expected = np.asarray(params["bucket_bias"])[:, np.array(buckets)].mean(0)  # over heads
    found = np.asarray(scores[1] - scores[0])
    np.testing.assert_allclose(found[0], expected, atol=1e-5)


def test_buckets_need_distances_to_fall_into_them():
    with pytest.raises(ValueError, match=r"max_distance: expected more than half of num_buckets"):
        REFINEMENTS.config("relative_buckets")(num_buckets=8, max_distance=4)


@pytest.mark.parametrize("place", ["causal", "self"])
@pytest.mark.parametrize("fields", CASES.values(), ids=CASES)
def test_heads_are_those_of_the_equations(fields, place):
    config, mechanism = built(place, **fields)
    params, x, mask, allowed = drawn(mechanism, place)

    @functools.partial(jax.jit, static_argnums=3)
    def found(params, x, allowed, is_fused):
        memory = mechanism.make_memory(params, sequence(x, jnp.asarray(mask)))
        output, _ = mechanism.attend(params, x, memory, mask=allowed, is_fused=is_fused)
        return output.context, output.weights

    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), (params, x))
    expected = reference(config, params, x, mask, allowed)
    for is_fused in (False, True)[: 2 if place == "causal" else 1]:
        for one, other in zip(found(*single, allowed, is_fused), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


def test_every_refinement_is_tried():
    tried = {name for fields in CASES.values() for name in fields.get("refinements", {})}
    assert tried == set(REFINEMENTS.names())


SCORES = [
    name
    for name in MECHANISMS.names()
    if MECHANISMS.config(name).reads_keys and small_score(name)
]


@pytest.mark.parametrize("place", ["causal", "self"])
@pytest.mark.parametrize("score", SCORES)
def test_a_sliding_window_is_a_mask_under_every_score(score, place):
    """In several blocks, of which the positions have two axes."""
    window = {"sliding_window": {"size": 2, "num_first": 1}}
    _, banded = built(place, score=small_score(score), refinements=window)
    _, masked = built(place, score=small_score(score))
    params, x, mask, allowed = drawn(banded, place)
    offset, params = np.arange(T) - np.arange(T)[:, None], jax.tree.map(jnp.float32, params)
    near = (np.abs(offset) < 2) | ((np.arange(T) < 1) & (offset < 2))

    def attended(mechanism, params, x, allowed):
        memory = mechanism.make_memory(params, sequence(x, jnp.asarray(mask)))
        output, _ = mechanism.attend(params, x, memory, mask=jnp.asarray(allowed))
        return output.context, output.weights

    @jax.jit
    def both(params, x):
        return attended(banded, params, x, allowed), attended(masked, params, x, allowed & near)

    for one, other in zip(*both(params, jnp.float32(x)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("refinements", [{}, {"talking_heads": {}}], ids=["plain", "talking"])
def test_dropout_and_mixing_change_contexts_and_no_weights(refinements):
    """Weights are mixed first and dropped then, both on the way to the context alone."""
    _, mechanism = built(dropout=0.5, refinements=refinements)
    params, x, mask, allowed = drawn(mechanism, "causal")
    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), params)
    memory = mechanism.make_memory(
        single, sequence(jnp.asarray(x, jnp.float32), jnp.asarray(mask))
    )
    rng = jax.random.key(0)

    @functools.partial(jax.jit, static_argnums=0)
    def attend(train):
        query = jnp.asarray(x, jnp.float32)
        call = dict(mask=jnp.asarray(allowed), call=Call(train, rng))
        return mechanism.attend(single, query, memory, **call)[0]

    whole, dropped = attend(False), attend(True)
    heads = np.asarray(dropped.aux["head_weights"], float)
    np.testing.assert_array_equal(heads, whole.aux["head_weights"])
    np.testing.assert_array_equal(dropped.weights, whole.weights)
    assert heads.min() >= 0
    np.testing.assert_allclose(heads.sum(-1), 1, rtol=1e-5)

    mixing = np.eye(H) + params.get("mixed_weights", 0.0)
    averaged, expected = np.einsum("hg,btgs->bths", mixing, heads), np.zeros((B, T, D))
    for h, key in enumerate(jax.random.split(rng, H)):
        factors = dropout_factors(Call(True, key), 0.5, (B, T, T), jnp.float32)
        values = np.where(mask[..., None], x @ params["value_projection"][h], 0)
        expected += averaged[:, :, h] * factors @ values @ params["output_kernel"][h]
    np.testing.assert_allclose(dropped.context, expected, rtol=1e-4, atol=1e-5)
    assert not np.allclose(dropped.context, whole.context, atol=0.1)


def test_dropout_forbids_the_fused_path_in_training_only(monkeypatch):
    _, mechanism = built("self", dropout=0.5)
    taken = watched_fused_path(monkeypatch)

    def attend(params, x, mask, train):
        memory = mechanism.make_memory(params, sequence(x, mask))
        call = Call(train, jax.random.key(0))
        return mechanism.attend(params, x, memory, call=call, is_fused=True)[0]

    params, x, mask, _ = drawn(mechanism, "self")
    for train in (True, False):
        assert not taken
        jax.eval_shape(functools.partial(attend, train=train), params, x, mask)
    assert taken


@pytest.mark.parametrize("fields", [{}, {"mixes_scores": False}, {"mixes_weights": False}])
def test_talking_heads_have_no_fused_path(fields, monkeypatch):
    _, mechanism = built("self", refinements={"talking_heads": fields})
    taken = watched_fused_path(monkeypatch)
    params, x, mask, _ = drawn(mechanism, "self")

    def attend(params, x, mask):
        memory = mechanism.make_memory(params, sequence(x, mask))
        return mechanism.attend(params, x, memory, is_fused=True)[0]

    jax.eval_shape(attend, params, x, mask)
    assert not taken


def watched_fused_path(monkeypatch):
    """Returns a list that grows when contexts come from the fused path."""
    context, taken = fused_dot.fused_dot_context, []

    def fused(*arguments):
        taken.append(True)
        return context(*arguments)

    monkeypatch.setattr(fused_dot, "fused_dot_context", fused)
    return taken


def test_normalised_queries_and_keys_by_hand():
    """The scores of query (3, 4) and key (1, 0)."""
    gains = {"query_scale": jnp.ones(2), "key_scale": jnp.ones(2)}
    factor, length = {"query_scale": jnp.float32(10.0)}, {"norm": "l2", "length": 2}
    for score, fields, params, expected in (
        ("scaled_dot", {}, gains, 1.19999875 / np.sqrt(2)),
        ("luong_dot", {}, gains, 1.19999875),
        ("scaled_dot", length, factor, 6.0),
        ("luong_dot", length, factor, 6.0),
    ):
        heads = dict(num_heads=1, head_dim=2, score=MECHANISMS.config(score)())
        config = Config(**heads, refinements={"qk_norm": fields})
        parts = build_mechanism(config, 2, 2, 2, place="self").parts
        kernels = {f"{name}_projection": jnp.eye(2) for name in ("query", "key", "value")}
        params = {**kernels, **params}
        query = parts.spec.prepare_query(params, jnp.array([[3.0, 4.0]]), jnp.arange(1))
        memory = make_memory(
            parts.spec, params, jnp.array([[1.0, 0.0]]), jnp.zeros((1, 2)), jnp.ones(1, bool)
        )
        score = parts.spec.score(params, query, memory, {}, jnp.arange(1))
        np.testing.assert_allclose(score, [[expected]], rtol=1e-5)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"refinements": {"ropee": {}}}, "refinements.ropee: no such field; did you mean 'rope'"),
        ({"refinements": {"rope": {"base": 0.5}}}, "refinements.rope.base: expected more than 1"),
        *(
            ({"refinements": {"sliding_window": {field: 2**31}}},
             f"^refinements.sliding_window.{field}: expected at most 1073741824, found 2147483648$")
            for field in ("size", "num_first")
        ),
        ({"num_memory_heads": 3}, "num_memory_heads: expected a divisor of num_heads = 4, found 3"),
        (
            {"refinements": {"relative_positions": {}, "rope": {}}},
            "^refinements.relative_positions: expected no 'rope' beside it, found both$",
        ),
        ({"score": PLACES}, "^score.name: expected a score of queries and keys, .* 'luong_loc"),
        ({"score": WINDOW_OF_PLACES}, "^score.score.name: expected a score of queries and keys"),
    ],
)  # fmt: skip
def test_fields_that_do_not_fit_are_rejected(fields, message):
    with pytest.raises(ValueError, match=message):
        Config(num_heads=4, **fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"head_dim": 3, "refinements": {"rope": {}}}, "head_dim: expected an even depth"),
        ({"num_heads": 1, "refinements": {"talking_heads": {}}}, "num_heads: expected more than"),
        ({"refinements": {"rope": {}}, "place": "cross"}, "attends to itself for 'rope'"),
        (
            {"score": MECHANISMS.config("local_p")(), "refinements": {"talking_heads": {}}},
            "^attention.score.name: expected scores of the same slots .* 'local_p' over 'luong_gen",
        ),
        *(
            (
                {"score": MECHANISMS.config(score)(), "refinements": {name: fields}},
                f"^attention.score.name: expected dot products of .* for '{name}'.* '{score}'$",
            )
            for name, fields in (
                ("rope", {}), ("relative_positions", {}), ("qk_norm", {"norm": "l2"})
            )
            for score in ("bahdanau", "luong_general")
        ),
    ],
)  # fmt: skip
def test_refinements_that_do_not_fit_are_rejected(fields, message):
    place = fields.pop("place", "self")
    with pytest.raises(ValueError, match=message):
        build_mechanism(Config(**fields), D, D, D, place=place)


def test_positional_refinements_can_be_left_out():
    config = Config(refinements={"rope": {}, "soft_cap": {}, "alibi": {}})
    assert set(without_positions(config).refinements) == {"soft_cap"}
    assert hash(config) != hash(without_positions(config))


@pytest.mark.parametrize(
    ("fields", "has_key_bias"),
    [
        ({"refinements": {"rope": {}}}, False),
        ({"refinements": {"rope": {}, "alibi": {}}}, False),
        ({"refinements": {"rope": {}, "soft_cap": {}}}, True),
        ({"refinements": {"alibi": {}}, "score": MECHANISMS.config("bahdanau")()}, True),
    ],
)
def test_a_bias_of_keys_goes_with_the_positions_that_it_needs(fields, has_key_bias):
    config = without_positions(Config(use_key_bias=True, **fields))
    assert config.use_key_bias == has_key_bias
    assert not without_positions(Config(refinements={"rope": {}})).use_key_bias


def compiled_costs(mechanism, length):
    """Yields the operations and bytes of contexts, then those of their gradients."""
    shapes = {
        name: jax.ShapeDtypeStruct(p.shape, jnp.float32) for name, p in mechanism.parameters.items()
    }

    def total(params, x):
        memory = mechanism.make_memory(params, sequence(x, jnp.ones((1, length), bool)))
        return jnp.sum(mechanism.attend(params, x, memory)[0].context)

    x = jax.ShapeDtypeStruct((1, length, D), jnp.float32)
    for function in (total, jax.grad(total, (0, 1))):
        compiled = jax.jit(function).lower(shapes, x).compile()
        yield compiled.cost_analysis()["flops"], compiled.memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize("num_first", [0, 4])
def test_cost_and_memory_of_a_sliding_window_are_linear(num_first):
    """Forward and backward."""
    window = {"sliding_window": {"size": 16, "num_first": num_first}}
    _, mechanism = built("causal", refinements=window)
    short, long = (list(compiled_costs(mechanism, size)) for size in (128, 512))
    for (few, little), (many, much) in zip(short, long, strict=True):
        assert 3.5 < many / few < 4.5
        assert much / little < 4.5


def test_cost_and_memory_of_all_slots_are_not():
    _, mechanism = built("causal")
    short, long = (list(compiled_costs(mechanism, size)) for size in (128, 512))
    for (few, little), (many, much) in zip(short, long, strict=True):
        assert many / few > 6 and much / little > 6


def test_one_query_reads_its_window_of_a_cache():
    """What depends on the number of slots is their projection, four times as much."""
    costs = {}
    for window in ({"sliding_window": {"size": 16}}, {}):
        _, mechanism = built("causal", refinements=window)
        for size in (128, 512):
            x = jax.ShapeDtypeStruct((1, size, D), jnp.float32)
            params = {
                name: jax.ShapeDtypeStruct(p.shape, jnp.float32)
                for name, p in mechanism.parameters.items()
            }
            mask = jax.ShapeDtypeStruct((1, size), bool)
            memory = jax.eval_shape(mechanism.make_memory, params, sequence(x, mask))
            query = jax.ShapeDtypeStruct((1, 1, D), jnp.float32)

            def context(params, query, memory, mechanism=mechanism):
                positions = jnp.array([100])
                return mechanism.attend(params, query, memory, positions=positions)[0].context

            step = jax.jit(context).lower(params, query, memory).compile()
            costs[bool(window), size] = step.cost_analysis()["flops"]
    assert costs[True, 512] < 1.2 * costs[True, 128]
    assert costs[False, 512] > 2 * costs[False, 128]


def test_gradients_of_bfloat16_distances_over_many_slots_are_those_of_float32():
    """Almost all slots lie beyond the greatest distance; a sum of ones would end at 256."""
    length = 1500
    fields = {"relative_positions": {"max_distance": 1, "adds_values": False}}
    _, mechanism = built("self", refinements=fields)
    params, _, _, _ = drawn(mechanism, "self")
    x = np.random.default_rng(3).normal(1.0, 0.1, (1, length, D))
    low = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.bfloat16), (params, x))

    @jax.grad
    def gradient(params, x):
        memory = mechanism.make_memory(params, sequence(x, jnp.ones((1, length), bool)))
        return (mechanism.attend(params, x[:, :8], memory)[0].scores / length).sum()

    found = jax.jit(gradient)(*low)["distance_keys"]
    full = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), low)
    expected = jax.jit(gradient)(*full)["distance_keys"]
    assert found.dtype == jnp.bfloat16
    np.testing.assert_allclose(found.astype(jnp.float32), expected, rtol=0.05, atol=1e-3)


def test_local_p_places_windows_of_bfloat16_as_of_float32():
    """Which between 1,000 and 2,000 has no number that is not a multiple of eight."""
    length, rng = 1999, np.random.default_rng(3)
    mechanism = build_mechanism(MECHANISMS.config("local_p")(), D, D, D)
    params, _, _, _ = drawn(mechanism, "self")
    x = rng.normal(size=(1, length, D))
    low = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.bfloat16), (params, x))

    @jax.jit
    def center(params, x):
        memory = mechanism.make_memory(params, sequence(x, jnp.ones((1, length), bool)))
        return mechanism.attend(params, x[:, :16], memory)[0].aux["center"]

    full = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), low)
    np.testing.assert_allclose(center(*low), center(*full), atol=0.01)
