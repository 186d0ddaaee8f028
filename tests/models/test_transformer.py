"""The Transformer: against NumPy float64, cached against full, sizes of the paper, every field."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.errors import ConfigError
from attention_jax.models import build_model, find_config
from attention_jax.search import SearchConfig, search
from configs import vaswani2017

B, S, T, V, D = 3, 5, 4, 11, 6
STACK = {"num_layers": 2, "feed_forward_dim": 7}
BASE = {
    "source_embedding_dim": D,
    "target_embedding_dim": D,
    "encoder": {"name": "self_attention", **STACK},
    "decoder": {"name": "transformer", **STACK},
    "attention": {"name": "multi_head", "num_heads": 2, "head_dim": 4, "head_value_dim": 3},
    "tie_embeddings": "all",
    "initialization": {"name": "xavier"},
}


def config_of(**changes):
    merged = {
        name: {**value, **changes.get(name, {})} if isinstance(value, dict) else value
        for name, value in BASE.items()
    }
    merged |= {name: value for name, value in changes.items() if not isinstance(value, dict)}
    return typed(find_config("encoder_decoder"), merged, "config.model")


@functools.cache
def batch():
    rng = np.random.default_rng(0)
    tokens = lambda size: jnp.asarray(rng.integers(4, V, (B, size)), jnp.int32)  # noqa: E731
    return {
        "source": tokens(S),
        "source_mask": jnp.arange(S) < jnp.array([5, 3, 1])[:, None],
        "target": tokens(T),
        "target_mask": jnp.arange(T) < jnp.array([4, 2, 3])[:, None],
    }


def started(**changes):
    model = build_model(config_of(**changes), V, V)
    params = model.init(jax.random.key(0))
    noise = jax.random.key(1)  # scales of one and biases of zero would hide mistakes
    leaves, tree = jax.tree.flatten(params)
    keys = jax.random.split(noise, len(leaves))
    moved = [
        leaf + 0.1 * jax.random.normal(k, leaf.shape) for k, leaf in zip(keys, leaves, strict=True)
    ]
    return model, tree.unflatten(moved)


# ---- Against NumPy -------------------------------------------------------------------------------
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


def norm(p, x):
    centred = x - x.mean(-1, keepdims=True)
    return p["scale"] * centred / np.sqrt(x.var(-1, keepdims=True) + 1e-6) + p["bias"]


def alone(p, x):
    hidden = np.maximum(x @ p["hidden"] + p["hidden_bias"], 0)
    return hidden @ p["output"] + p["output_bias"]


def placed(table, tokens):
    positions, channels = np.arange(tokens.shape[1])[:, None], np.arange(D)
    angle = positions / 10000 ** (2 * (channels // 2) / D)
    return table[tokens] * np.sqrt(D) + np.where(channels % 2, np.cos(angle), np.sin(angle))


def reference(params, batch):
    p = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
    b = jax.tree.map(np.asarray, batch)
    table, to_source = p["target_embedding"], b["source_mask"][:, None]
    x = placed(table, b["source"])
    for layer in range(2):
        w = p["encoder"][f"layer_{layer}"]
        x = norm(w["self_norm"], x + heads(w["self_attention"], x, x, to_source)[0])
        x = norm(w["feed_forward_norm"], x + alone(w["feed_forward"], x))
    before = np.concatenate([np.ones((B, 1), int), b["target"][:, :-1]], 1)
    y, weights = placed(table, before), []
    causal = np.tri(T, dtype=bool) & b["target_mask"][:, None]
    causal |= np.eye(T, dtype=bool)  # rows of padding have to see something here
    for layer in range(2):
        w = p["decoder"][f"layer_{layer}"]
        y = norm(w["self_norm"], y + heads(w["self_attention"], y, y, causal)[0])
        context, of_layer = heads(w["attention"], y, x, to_source)
        y = norm(w["attention_norm"], y + context)
        y = norm(w["feed_forward_norm"], y + alone(w["feed_forward"], y))
        weights.append(of_layer)
    return y @ table.T + p["output_bias"], np.concatenate(weights, 2)


def nest(params):
    """Parameters by their modules."""
    return {
        **params,
        "encoder": {name: leaf for name, leaf in params["encoder"].items()},
        "decoder": {name: leaf for name, leaf in params["decoder"].items()},
    }


def test_the_transformer_is_that_of_the_paper():
    model, params = started()
    output = jax.jit(model.apply)(params, batch())
    logits, weights = reference(nest(params), batch())
    real = np.asarray(batch()["target_mask"])
    np.testing.assert_allclose(output.logits[real], logits[real], rtol=1e-3, atol=1e-4)
    found = output.attention.aux["head_weights"]
    assert found.shape == (B, T, 4, S)  # two heads of each layer, the lower layer's first
    np.testing.assert_allclose(found[real], weights[real], rtol=1e-3, atol=1e-5)
    expected = weights[:, :, :2].mean(2)  # the last layer but one is the lower of two
    np.testing.assert_allclose(output.attention.weights[real], expected[real], rtol=1e-3, atol=1e-5)


# ---- Decoding ------------------------------------------------------------------------------------
MULTI = {"score": {"name": "bahdanau", "attention_dim": 5}, "num_heads": 4, "num_memory_heads": 2}
VARIANTS = {
    "paper": {},
    "pre-norm": {
        "encoder": {"norm_order": "pre", "norm": "rms", "activation": "swiglu"},
        "decoder": {"norm_order": "pre", "positions": "learned", "alignment_layer": 1},
    },
    "additive heads in groups": {"attention": MULTI},
    "refined": {
        "attention": {
            "refinements": {
                "rope": {}, "qk_norm": {}, "sliding_window": {"size": 2}, "attention_sink": {}
            }
        },
        "decoder": {"positions": "none"},
    },
    "local": {"attention": {"score": {"name": "local_m", "half_width": 1}}},
}  # fmt: skip


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_cached_steps_equal_the_whole(changes):
    model, params = started(**changes)
    output, tokens = jax.jit(model.apply)(params, batch()), batch()["target"]
    memory, state = jax.jit(model.start, static_argnums=2)(params, batch(), T + 1)
    previous, step = jnp.full((B, 1), 1, jnp.int32), jax.jit(model.step)
    for t in range(T):
        logits, weights, state = step(params, memory, state, previous)
        real = np.asarray(batch()["target_mask"][:, t])
        np.testing.assert_allclose(logits[real, 0], output.logits[real, t], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(
            weights[real, 0], output.attention.weights[real, t], rtol=1e-4, atol=1e-5
        )
        previous = tokens[:, t : t + 1]


def test_no_position_sees_a_later_one_or_padding():
    model, params = started()
    apply, given = jax.jit(model.apply), dict(batch())
    expected = apply(params, given)
    later = {**given, "target": given["target"].at[:, 2:].set(4)}
    np.testing.assert_array_equal(apply(params, later).logits[:, :3], expected.logits[:, :3])
    source = jnp.where(given["source_mask"], given["source"], 9)
    found = apply(params, {**given, "source": source})
    np.testing.assert_allclose(found.logits, expected.logits, rtol=1e-5, atol=1e-6)


def test_beam_search_runs_on_the_cache():
    model, params = started()
    config = SearchConfig(beam_size=3, max_length_factor=0.0, max_length_constant=6)

    @jax.jit
    def decode(params, batch):
        memory, state = model.start(params, batch, 6)
        step = functools.partial(model.step, params, memory)
        return search(step, state, config, batch["source_mask"].sum(-1), 6)

    found = decode(params, batch())
    for row in range(B):  # the log-probability of each output, told all at once
        length = int(found.lengths[row, 0])
        target = found.tokens[row : row + 1, 0, :length]
        alone = {name: leaf[row : row + 1] for name, leaf in batch().items()}
        alone |= {"target": target, "target_mask": jnp.ones_like(target, bool)}
        logits = jax.nn.log_softmax(model.apply(params, alone).logits)
        total = jnp.take_along_axis(logits, target[..., None], -1).sum()
        np.testing.assert_allclose(found.log_probs[row, 0], total, rtol=1e-4)


# ---- Sizes and fields ----------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "expected"), [("base", 65e6), ("big", 213e6)])
def test_the_papers_sizes(name, expected):
    """Counts by hand with 37,000 shared symbols; the paper prints 65 and 213 million."""
    values = vaswani2017.get_config(name).model.to_dict()
    config = typed(find_config("encoder_decoder"), values, "config.model")
    size = 37_000
    model = build_model(config, size, size)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    found = sum(leaf.size for leaf in jax.tree.leaves(shapes))
    depth, width = config.target_embedding_dim, config.encoder.feed_forward_dim
    attention, norms = 4 * depth**2, 2 * depth
    alone = 2 * depth * width + width + depth
    layers = 6 * (attention + alone + 2 * norms) + 6 * (2 * attention + alone + 3 * norms)
    assert found == size * depth + size + layers
    assert abs(found / expected - 1) < 0.03


ALTERNATIVES = {
    "num_layers": 1, "feed_forward_dim": 8, "activation": "gelu", "norm": "rms",
    "norm_order": "pre", "positions": "none", "scales_embeddings": False, "dropout": 0.5,
    "hidden_dropout": 0.5, "alignment_layer": 1, "alignment_head": 1,
    "self_attention": {"name": "multi_head", "num_heads": 1, "head_dim": 4},
}  # fmt: skip


PARTS = ("encoder", "decoder")


def test_every_field_of_a_stack_changes_something():
    """A field of the shared stack is changed in encoder and decoder, by turns."""
    fields = {field.name for field in dataclasses.fields(type(config_of().decoder))}
    model, params = started()
    options = dict(rng=jax.random.key(2), train=True)
    expected = jax.jit(functools.partial(model.apply, **options))(params, batch())
    for number, name in enumerate(sorted(fields - {"name", "max_positions"})):
        part = "decoder" if name.startswith("alignment") else PARTS[number % 2]
        other = build_model(config_of(**{part: {name: ALTERNATIVES[name]}}), V, V)
        shapes = jax.eval_shape(other.init, jax.random.key(0))
        if jax.tree.map(jnp.shape, shapes) != jax.tree.map(jnp.shape, params):
            continue  # other parameters
        found = jax.jit(functools.partial(other.apply, **options))(params, batch())
        leaves = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
        assert any(not np.allclose(one, two, atol=1e-5) for one, two in leaves), name
    for part in PARTS:
        learned = build_model(
            config_of(**{part: {"positions": "learned", "max_positions": 9}}), V, V
        )
        shapes = jax.eval_shape(learned.init, jax.random.key(0))
        assert shapes[part]["positions"].shape == (9, D)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decoder": {"alignment_layer": 2}}, "alignment_layer: expected less than num_layers"),
        ({"decoder": {"alignment_head": 2}}, "alignment_head: expected less than .* 2 heads"),
        ({"encoder": {"max_positions": 9}}, "max_positions: expected only with learned positions"),
        ({"attention": {"score": {"name": "local_p"}}}, "found 'multi_head', which depends on the"),
        ({"attention": {"score": {"name": "linguistic_coverage"}}}, "which carries coverage"),
        ({"decoder": {"self_attention": {"name": "none"}}}, "which does not choose between"),
    ],
)
def test_parts_that_do_not_fit_are_rejected(changes, message):
    with pytest.raises(ConfigError, match=message) as caught:
        build_model(config_of(**changes), V, V)
    assert str(caught.value).startswith("config.model.") and "\n" not in str(caught.value)
