"""The Transformer's decoder with merged attention: its equation, its past, and what it refuses."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.decoder import DECODERS, DecoderSizes
from attention_jax.layers.decoders import merged_transformer
from attention_jax.layers.encoder import Encoded, SequenceEncoder
from attention_jax.layers.mechanism import MECHANISMS
from tests.quick import quick_jit

B, T, D = 2, 4, 6
LENGTHS = {"source": (5, 2), "fr": (1, 3)}
DEPTHS = {"source": D, "fr": 5}
HEADS = MECHANISMS.config("multi_head")(num_heads=2, head_dim=3)
TARGET_MASK = jnp.asarray([[True] * T, [True] * 2 + [False] * 2])


class Made(SequenceEncoder):
    """Stands for an encoder whose annotations are given."""

    parameters = {}  # noqa: RUF012

    def __init__(self, depth):
        self.output_dim = depth

    def encode(self, params, embedded, mask, call=None):
        raise NotImplementedError


def build(names=("source", "fr"), attention=HEADS, depth=D, **fields):
    config = merged_transformer.Config(
        **{"num_layers": 2, "feed_forward_dim": 7, "norm_order": "pre", **fields}
    )
    encoders = {name: Made(DEPTHS[name]) for name in names}
    return merged_transformer.build(config, DecoderSizes(depth, encoders), attention)


def drawn(tree):
    rng = np.random.default_rng(1)
    draw = lambda one: jnp.asarray(0.5 * rng.normal(size=one.shape), jnp.float32)  # noqa: E731
    return jax.tree.map(draw, tree)


def inputs(names=("source", "fr")):
    rng, sources = np.random.default_rng(0), {}
    for name in names:
        size = max(LENGTHS[name])
        annotations = jnp.asarray(rng.normal(size=(B, size, DEPTHS[name])), jnp.float32)
        mask = jnp.arange(size) < jnp.asarray(LENGTHS[name])[:, None]
        sources[name] = Encoded(jnp.where(mask[..., None], annotations, jnp.nan), mask)
    return sources, jnp.asarray(rng.normal(size=(B, T, D)), jnp.float32)


@functools.cache
def ran(names=("source", "fr")):
    decoder = build(names)
    params = drawn(decoder.parameters)

    def run(params, sources, embedded):
        memory, state = decoder.start(params, sources, 0)
        found = decoder.run(params, memory, state, embedded, mask=TARGET_MASK)
        return found.features, found.attention, found.outputs

    return decoder, params, quick_jit(run)


@pytest.mark.parametrize("names", [("source",), ("source", "fr")])
def test_one_token_at_a_time_equals_all_at_once(names):
    decoder, params, run = ran(names)
    sources, embedded = inputs(names)
    features, attention, _ = run(params, sources, embedded)

    def steps(params, sources, embedded):
        memory, state = decoder.start(params, sources, T)
        # As a search has it: hypotheses behind the batch, which share the source.
        memory = jax.tree.map(lambda leaf: leaf[:, None], memory)
        state = jax.tree.map(lambda leaf: jnp.repeat(leaf[:, None], 2, 1), state)

        def step(state, embedded):
            found, attention, state = decoder.step(params, memory, state, embedded)
            return state, (found, attention.weights)

        both = jnp.repeat(embedded[:, None], 2, 1)  # B K T E
        return jax.lax.scan(step, state, jnp.moveaxis(both, 2, 0))[1]

    found, weights = quick_jit(steps)(params, sources, embedded)
    real = np.asarray(TARGET_MASK)
    for hypothesis in range(2):
        one = np.swapaxes(np.asarray(found[:, :, hypothesis]), 0, 1)
        np.testing.assert_allclose(one[real], np.asarray(features)[real], rtol=1e-4, atol=1e-5)
        one = np.swapaxes(np.asarray(weights[:, :, hypothesis]), 0, 1)
        expected = np.asarray(attention.weights)[real]
        np.testing.assert_allclose(one[real], expected, rtol=1e-4, atol=1e-5)


def test_sources_and_past_share_one_softmax():
    """The first layer's attention, in NumPy."""
    decoder, params, run = ran()
    sources, embedded = inputs()
    output = run(params, sources, embedded)[2]["layer_0/attention"]
    weights = jax.tree.map(np.float64, params["layer_0"])
    place = np.arange(T)[:, None] / 10000.0 ** (np.arange(D // 2) * 2 / D)
    codes = np.stack([np.sin(place), np.cos(place)], -1).reshape(T, D)
    stream = np.float64(embedded) * np.sqrt(D) + codes
    centred = stream - stream.mean(-1, keepdims=True)
    norm = weights["attention_norm"]
    stream = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
    stream = stream * norm["scale"] + norm["bias"]
    shared, own = weights["attention"]["shared"], weights["attention"]["sources"]
    for row in range(B):
        for step in range(int(TARGET_MASK[row].sum())):
            slots = {name: np.float64(each.annotations[row, : LENGTHS[name][row]])
                     for name, each in sources.items()}  # fmt: skip
            slots["target"] = stream[row, : step + 1]
            context = 0.0
            for head in range(2):
                query = stream[row, step] @ shared["query_projection"][head]
                scores = np.concatenate([
                    part @ own[name]["key_projection"][head] @ query / np.sqrt(3)
                    for name, part in slots.items()
                ])  # fmt: skip
                weight = np.exp(scores - scores.max())
                weight /= weight.sum()
                values = [part @ own[name]["value_projection"][head]
                          for name, part in slots.items()]  # fmt: skip
                context += weight @ np.concatenate(values) @ shared["output_kernel"][head]
                size = len(slots["source"])
                found = output.aux["head_weights"][row, step, head, :size]
                np.testing.assert_allclose(found, weight[:size], rtol=1e-3, atol=1e-6)
            np.testing.assert_allclose(output.context[row, step], context, rtol=1e-3, atol=1e-5)
    total = output.weights.sum(-1) + sum(
        output.aux[f"{name}/weights"].sum(-1) for name in ("fr", "target")
    )
    np.testing.assert_allclose(total, 1, rtol=1e-5)


def test_no_position_sees_a_later_one():
    _, params, run = ran()
    sources, embedded = inputs()
    features, *_ = run(params, sources, embedded)
    later, *_ = run(params, sources, embedded.at[:, 2].multiply(-1.0))
    np.testing.assert_allclose(features[:, :2], later[:, :2], rtol=1e-5, atol=1e-6)
    assert np.abs(np.asarray(features - later)[0, 2:]).max(-1).min() > 1e-3


def test_what_does_not_serve_is_refused():
    with pytest.raises(ValueError, match="decoder.name: expected a source beside 'merged_transf"):
        build(names=())
    with pytest.raises(ValueError, match="expected multi_head beside the decoder 'merged_transfor"):
        build(attention=MECHANISMS.config("bahdanau")())
    with pytest.raises(ValueError, match="self_attention: expected none, for it is merged"):
        build(self_attention=HEADS)
    with pytest.raises(ValueError, match="alignment_head: expected less than the attention's 2"):
        build(alignment_head=2)
    over = MECHANISMS.config("parallel")(score=HEADS)  # whose heads are what counts
    assert build(attention=over).parameters.keys() == build().parameters.keys()
    assert DECODERS.config("merged_transformer") is merged_transformer.Config
