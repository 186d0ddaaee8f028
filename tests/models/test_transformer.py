"""The Transformer: against NumPy float64, cached against full, sizes of the paper, every field."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.models import MODELS, build_model
from attention_jax.search import SearchConfig, search
from attention_jax.types import Call
from configs import vaswani2017
from tests.models.tiny_transformer import (
    OWN,
    PARTS,
    B,
    D,
    S,
    T,
    V,
    batch,
    config_of,
    started,
)
from tests.parameters import carried_over
from tests.quick import quick_jit


def softmax(scores, allowed):
    exponentials = np.where(allowed, np.exp(scores), 0)
    return exponentials / exponentials.sum(-1, keepdims=True)


def heads(p, x, y, allowed):
    """Multi-head attention of x over y; the context and every head's weights."""
    weights, context = [], 0
    for h in range(2):
        q, k, v = (
            a @ p[f"{name}_projection"][h] for name, a in (("query", x), ("key", y), ("value", y))
        )
        weights.append(softmax(q @ np.swapaxes(k, 1, 2) / np.sqrt(q.shape[-1]), allowed))
        context = context + weights[-1] @ v @ p["output_kernel"][h]
    return context, np.stack(weights, 2)


def norm(stack, p, x):
    epsilon = stack.norm_epsilon
    if stack.norm == "rms":
        return p["scale"] * x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon)
    centred = x - x.mean(-1, keepdims=True)
    return p["scale"] * centred / np.sqrt(x.var(-1, keepdims=True) + epsilon) + p["bias"]


def alone(stack, p, x):
    hidden = x @ p["hidden"] + p["hidden_bias"]
    if stack.activation == "relu":
        hidden = np.maximum(hidden, 0)
    elif stack.activation == "gelu_erf":
        hidden *= (1 + np.vectorize(math.erf)(hidden / np.sqrt(2))) / 2
    elif stack.activation in ("gelu", "geglu"):  # by its approximation, as in the authors' programs
        hidden *= (1 + np.tanh(np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden**3))) / 2
    else:
        hidden = hidden / (1 + np.exp(-hidden))
    if stack.activation.endswith("glu"):
        hidden = hidden * (x @ p["gate"])
    return hidden @ p["output"] + p["output_bias"]


def placed(stack, p, table, tokens):
    positions, channels = np.arange(tokens.shape[1])[:, None], np.arange(D)
    embedded = table[tokens] * np.sqrt(D)
    if stack.positions == "learned":
        embedded += p["positions"][np.minimum(positions[:, 0], stack.max_positions - 1)]
        return norm(stack, p["embedding_norm"], embedded) if stack.norm_embeddings else embedded
    angle = positions / 10000 ** (2 * (channels // 2) / D)
    codes = np.where(channels % 2, np.cos(angle), np.sin(angle))
    if stack.positions == "sinusoidal_halves":
        codes = np.concatenate([codes[:, 0::2], codes[:, 1::2]], 1)
    return embedded + codes


def add(stack, p, x, function):
    """A sublayer beside its residual; `function` returns a tuple of which the first is added."""
    if stack.norm_order == "pre":
        change, *other = function(norm(stack, p, x))
        return x + change, *other
    change, *other = function(x)
    return norm(stack, p, x + change), *other


def reference(config, params, batch):
    """Logits and every head's weights to the source, sublayer by sublayer."""
    p = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
    b = jax.tree.map(np.asarray, batch)
    table, to_source = p["target_embedding"], b["source_mask"][:, None]
    stack, own = config.sources["source"].encoder, p["encoder"]
    x = placed(stack, own, table, b["source"])
    for layer in range(2):
        w = own[f"layer_{layer}"]
        x, _ = add(
            stack, w["self_norm"], x, lambda x, w=w: heads(w["self_attention"], x, x, to_source)
        )
        (x,) = add(
            stack, w["feed_forward_norm"], x, lambda x, w=w: (alone(stack, w["feed_forward"], x),)
        )
    read = norm(stack, own["norm"], x) if stack.norm_order == "pre" else x
    before = np.concatenate([np.ones((B, 1), int), b["target"][:, :-1]], 1)
    stack, own, weights = config.decoder, p["decoder"], []
    y = placed(stack, own, table, before)
    causal = np.tri(T, dtype=bool) & b["target_mask"][:, None]
    causal |= np.eye(T, dtype=bool)  # rows of padding have to see something here
    for layer in range(2):
        w = own[f"layer_{layer}"]
        y, _ = add(
            stack, w["self_norm"], y, lambda y, w=w: heads(w["self_attention"], y, y, causal)
        )
        y, of_layer = add(
            stack, w["attention_norm"], y, lambda y, w=w: heads(w["attention"], y, read, to_source)
        )
        (y,) = add(
            stack, w["feed_forward_norm"], y, lambda y, w=w: (alone(stack, w["feed_forward"], y),)
        )
        weights.append(of_layer)
    y = norm(stack, own["norm"], y) if stack.norm_order == "pre" else y
    return y @ table.T + p["output_bias"], np.concatenate(weights, 2)


# Every pair of two fields' values occurs in one of these.
STACKS = [
    {"norm_order": order, "norm": norm, "activation": activation, "positions": positions}
    | ({"max_positions": 3} if positions == "learned" else {})  # fewer than there are tokens
    for order, norm, activation, positions in (
        ("post", "layer", "relu", "sinusoidal"),
        ("pre", "rms", "relu", "learned"),
        ("post", "rms", "gelu", "learned"),
        ("pre", "layer", "gelu", "sinusoidal"),
        ("post", "layer", "swiglu", "learned"),
        ("pre", "rms", "swiglu", "sinusoidal"),
    )
]
# Those of models that other programs have trained.
STACKS += [
    {"activation": "silu", "norm_epsilon": 1e-2, "positions": "sinusoidal_halves"},
    {"activation": "gelu_erf", "norm_order": "pre"},
    {"activation": "geglu", "norm": "rms", "norm_epsilon": 1e-1},
    {"positions": "learned", "norm_embeddings": True},
]
# The paper's, then encoders and decoders that differ.
PAIRS = [(0, 0), (1, 2), (2, 3), (3, 4), (4, 5), (5, 1), (6, 7), (8, 6), (9, 9)]


@pytest.mark.parametrize(("encoder", "decoder"), PAIRS)
def test_the_transformer_is_that_of_its_equations(encoder, decoder):
    changes = {"encoder": STACKS[encoder], "decoder": STACKS[decoder]}
    model, params = started(**changes)
    output = quick_jit(model.apply)(params, batch())
    logits, weights = reference(config_of(**changes), params, batch())
    real = np.asarray(batch()["target_mask"])
    np.testing.assert_allclose(output.predictions.logits[real], logits[real], rtol=1e-3, atol=1e-4)
    found = output.attention.aux["head_weights"]
    assert found.shape == (B, T, 4, S)  # two heads of each layer, the lower layer's first
    np.testing.assert_allclose(found[real], weights[real], rtol=1e-3, atol=1e-5)
    expected = weights[:, :, :2].mean(2)  # the last layer but one is the lower of two
    np.testing.assert_allclose(output.attention.weights[real], expected[real], rtol=1e-3, atol=1e-5)


GROUPS = {"num_heads": 4, "num_memory_heads": 2}
ONE = {"num_layers": 1}
VARIANTS = {
    "paper": {},
    "pre-norm": {
        "encoder": {"norm_order": "pre", "norm": "rms", "activation": "swiglu"},
        "decoder": {
            "norm_order": "pre", "positions": "learned", "norm_embeddings": True,
            "alignment_layer": 1,
        },
    },
    "additive heads in groups": {
        "attention": {**GROUPS, "score": {"name": "bahdanau", "attention_dim": 5}}
    },
    "rotated, in windows": {
        "attention": {
            **GROUPS,
            "refinements": {
                "rope": {}, "qk_norm": {}, "sliding_window": {"size": 2}, "attention_sink": {},
                "talking_heads": {},
            },
        },
        "decoder": {"positions": "none"},
    },
    "distances, in windows": {
        "attention": {
            **GROUPS,
            "refinements": {
                "relative_positions": {"max_distance": 2}, "attention_sink": {},
                "sliding_window": {"size": 2, "num_first": 1}, "talking_heads": {},
            },
        },
        "encoder": ONE,
        "decoder": ONE,
    },
    "distances": {
        "attention": {
            **GROUPS,
            "refinements": {
                "relative_positions": {"max_distance": 2}, "alibi": {}, "soft_cap": {"cap": 0.5},
                "talking_heads": {},
            },
        },
        "encoder": ONE,
        "decoder": ONE,
    },
    "buckets of distances, one table for all layers": {
        "attention": {
            "score": {"name": "luong_dot"},
            "refinements": {"relative_buckets": {"num_buckets": 4, "max_distance": 3}},
        },
        "encoder": {"use_bias": False, "positions": "none"},
    },
    "local": {"attention": {"score": {"name": "local_m", "half_width": 1}}},
    "depth in equal parts": {
        "encoder": {**ONE, "self_attention": {"name": "luong_dot", "num_heads": 2}},
        "decoder": {**ONE, "self_attention": {"name": "bahdanau", "num_heads": 2}},
    },
    "local to the source": {
        "attention": {"score": {"name": "local_p", "half_width": 1, "prediction_dim": 3}},
        "encoder": {**ONE, **OWN},
        "decoder": {**ONE, **OWN},
    },
}  # fmt: skip


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_cached_steps_equal_the_whole(changes):
    model, params = started(**changes)
    output, tokens = jax.jit(model.apply)(params, batch()), batch()["target"]
    memory, state = jax.jit(model.start, static_argnums=2)(params, batch(), T + 1)
    previous, step = jnp.full((B, 1), 1, jnp.int32), jax.jit(model.step)
    for t in range(T):
        predictions, weights, state = step(params, memory, state, previous)
        logits = predictions.logits
        real = np.asarray(batch()["target_mask"][:, t])
        np.testing.assert_allclose(
            logits[real, 0], output.predictions.logits[real, t], rtol=1e-4, atol=1e-5
        )
        np.testing.assert_allclose(
            weights[real, 0], output.attention.weights[real, t], rtol=1e-4, atol=1e-5
        )
        previous = tokens[:, t : t + 1]


def test_no_position_sees_a_later_one_or_padding():
    model, params = started()
    apply, given = jax.jit(model.apply), dict(batch())
    expected = apply(params, given)
    later = {**given, "target": given["target"].at[:, 2:].set(4)}
    np.testing.assert_array_equal(
        apply(params, later).predictions.logits[:, :3], expected.predictions.logits[:, :3]
    )
    source = jnp.where(given["source_mask"], given["source"], 9)
    found = apply(params, {**given, "source": source})
    np.testing.assert_allclose(
        found.predictions.logits, expected.predictions.logits, rtol=1e-5, atol=1e-6
    )


def test_beam_search_runs_on_the_cache():
    model, params = started()
    config = SearchConfig(beam_size=3, max_length_factor=0.0, max_length_constant=6)

    @jax.jit
    def decode(params, batch):
        memory, state = model.start(params, batch, 6)
        step = functools.partial(model.step, params, memory)
        return search(step, state, config, batch["source_mask"].sum(-1), 6)

    found, apply = decode(params, batch()), quick_jit(model.apply)
    for row in range(B):  # the log-probability of each output, told all at once
        length = int(found.lengths[row, 0])
        target = found.tokens[row : row + 1, 0, :length]
        alone = {name: leaf[row : row + 1] for name, leaf in batch().items()}
        alone |= {"target": target, "target_mask": jnp.ones_like(target, bool)}
        logits = jax.nn.log_softmax(apply(params, alone).predictions.logits)
        total = jnp.take_along_axis(logits, target[..., None], -1).sum()
        np.testing.assert_allclose(found.log_probs[row, 0], total, rtol=1e-4)


def test_room_for_one_token_is_enough_for_one():
    model = build_model(config_of(), V, V)
    params = jax.eval_shape(model.init, jax.random.key(0))

    def first(params, batch):
        memory, state = model.start(params, batch, 1)
        return model.step(params, memory, state, jnp.full((B, 1), 1, jnp.int32))[0].logits

    assert jax.eval_shape(first, params, batch()).shape == (B, 1, V)


def test_a_single_token_is_trained_with_dropout_of_the_attention_to_the_source():
    # Positions attend to one another without it.
    model, params = started(attention={"dropout": 0.5}, encoder=OWN, decoder=OWN)
    one = {**batch(), **{name: batch()[name][:, :1] for name in ("target", "target_mask")}}
    train = quick_jit(lambda key: model.apply(params, one, Call(True, key)).predictions.logits)
    first, second = train(jax.random.key(0)), train(jax.random.key(1))
    assert not np.allclose(first, second, atol=1e-3)


@pytest.mark.parametrize(("name", "expected"), [("base", 65e6), ("big", 213e6)])
def test_the_papers_sizes(name, expected):
    """Counts by hand with 37,000 shared symbols; the paper prints 65 and 213 million."""
    values = vaswani2017.get_config(name).model.to_dict()
    config = typed(MODELS.config("encoder_decoder"), values, "config.model")
    size = 37_000
    model = build_model(config, size, size)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    found = sum(leaf.size for leaf in jax.tree.leaves(shapes))
    depth, width = config.target_embedding_dim, config.decoder.feed_forward_dim
    attention, norms = 4 * depth**2, 2 * depth
    alone = 2 * depth * width + width + depth
    layers = 6 * (attention + alone + 2 * norms) + 6 * (2 * attention + alone + 3 * norms)
    assert found == size * depth + size + layers
    assert abs(found / expected - 1) < 0.03


ALTERNATIVES = {
    "num_layers": 1, "feed_forward_dim": 8, "use_bias": False, "activation": "gelu", "norm": "rms",
    "norm_order": "pre", "norm_epsilon": 1e-1, "positions": "none", "scales_embeddings": False,
    "norm_embeddings": True, "dropout": 0.5, "hidden_dropout": 0.5, "alignment_layer": 1,
    "alignment_head": 1,
    "self_attention": {"name": "multi_head", "num_heads": 1, "head_dim": 4},
}  # fmt: skip


def test_every_field_of_a_stack_changes_something():
    """A field of the shared stack is changed in encoder and decoder, by turns.

    Parameters are the same as far as both have them, so that what differs is what is computed.
    """
    fields = {field.name for field in dataclasses.fields(type(config_of().decoder))}
    model, params = started()
    expected = trained(model, params)
    for number, name in enumerate(sorted(fields - {"name", "max_positions"})):
        part = "decoder" if name.startswith("alignment") else PARTS[number % 2]
        other, its_params = started(**{part: {name: ALTERNATIVES[name]}})
        found = trained(other, carried_over(params, its_params))
        assert any(
            not np.allclose(one, found[place], atol=1e-5)
            for place, one in expected.items()
            if one.shape == found[place].shape
        ), name


def test_layers_share_the_biases_of_buckets():
    buckets = {"relative_buckets": {"num_buckets": 4, "max_distance": 3}}
    _, params = started(attention={"refinements": buckets})
    for part in PARTS:
        assert [*params[part]["self_attention"]] == ["bucket_bias"]
        for layer in ("layer_0", "layer_1"):
            assert "bucket_bias" not in params[part][layer]["self_attention"]


@pytest.mark.parametrize("part", PARTS)
def test_the_last_learned_position_stands_for_all_later(part):
    learned = {"positions": "learned"}
    model, params = started(**{part: {**learned, "max_positions": 9}})
    other, its_params = started(**{part: {**learned, "max_positions": 3}})
    assert params[part]["positions"].shape == (9, D)
    before, after = trained(model, params), trained(other, carried_over(params, its_params))
    assert not np.allclose(before["logits"], after["logits"], atol=1e-5)
    if part == "decoder":
        np.testing.assert_allclose(before["logits"][:, :3], after["logits"][:, :3], atol=1e-5)


def trained(model, params):
    """Logits and weights as a training sees them, dropout included."""
    apply = quick_jit(functools.partial(model.apply, call=Call(True, jax.random.key(2))))
    output = apply(params, batch())
    heads = output.attention.aux["head_weights"]
    return {
        "logits": output.predictions.logits,
        "weights": output.attention.weights,
        "heads": heads,
    }
