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
from attention_jax.layers.refinement import REFINEMENTS
from attention_jax.ops.attend import make_memory
from tests.conformance.battery import small_score
from tests.refined_heads import DK, B, D, H, T, built, drawn

UNSCALED = MECHANISMS.config("luong_dot")()
LOCAL = MECHANISMS.config("local_m")(half_width=1, score=MECHANISMS.config("scaled_dot")())
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
