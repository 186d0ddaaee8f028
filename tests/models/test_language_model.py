"""The decoder alone: cached against full, nothing of the source or of later positions is read."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.errors import ConfigError
from attention_jax.models import MODELS, build_model
from attention_jax.search.state import repeat_state
from tests.parameters import drawn

B, T, V = 2, 5, 9
ATTENTION = {
    "rotated": {"name": "multi_head", "num_heads": 2, "head_dim": 4, "refinements": {"rope": {}}},
    "depth in equal parts": {"name": "scaled_dot", "num_heads": 2},
}
DTYPES = ("float32", "bfloat16")


@functools.cache
def started(attention="rotated", **changes):
    stack = {"num_layers": 2, "feed_forward_dim": 7, "norm_order": "pre", "positions": "none"}
    fields = {"embedding_dim": 6, "attention": ATTENTION[attention], "decoder": stack, **changes}
    model = build_model(typed(MODELS.config("language_model"), fields, "config.model"), 4, V)
    return model, drawn(model)


def batch():
    target = jnp.asarray(np.random.default_rng(0).integers(4, V, (B, T)), jnp.int32)
    mask = jnp.arange(T) < jnp.array([5, 3])[:, None]
    rows = {"prompt": jnp.full((B, 1), 2, jnp.int32), "prompt_mask": jnp.ones((B, 1), bool)}  # EOS
    return {**rows, "target": target, "target_mask": mask}


@pytest.mark.parametrize("attention", ATTENTION)
def test_cached_steps_equal_the_whole(attention):
    model, params = started(attention)
    output = jax.jit(model.apply)(params, batch())
    assert output.attention is None and output.predictions.logits.shape == (B, T, V)
    memory, state = jax.jit(model.start, static_argnums=2)(params, batch(), T)
    previous, step = jnp.full((B, 1), 1, jnp.int32), jax.jit(model.step)
    for t in range(T):
        predictions, weights, state = step(params, memory, state, previous)
        logits = predictions.logits
        real = np.asarray(batch()["target_mask"][:, t])
        np.testing.assert_allclose(
            logits[real, 0], output.predictions.logits[real, t], rtol=1e-4, atol=1e-5
        )
        assert weights.shape == (B, 1, 1)
        previous = batch()["target"][:, t : t + 1]


def test_a_text_is_certain_as_long_as_it_begins():
    """Rows begin with two tokens, one and none; K hypotheses of a row begin alike."""
    model, params = started()
    length = jnp.array([2, 1, 0])
    prompt = jnp.asarray([[5, 6, 2], [7, 2, 0], [2, 0, 0]], jnp.int32)
    given = {"prompt": prompt, "prompt_mask": jnp.arange(3) <= length[:, None]}
    start, step = jax.jit(model.start, static_argnums=2), jax.jit(model.step)
    begins, state = start(params, given, T)
    nothing = {name: jnp.stack([array[2]] * 3) for name, array in given.items()}
    empty, free = start(params, nothing, T)
    state, free = repeat_state(state, 3, 2), repeat_state(free, 3, 2)
    tokens = jnp.full((3, 2), 1, jnp.int32)
    for t in range(4):
        found, _, state = step(params, begins, state, tokens)
        unbound, _, free = step(params, empty, free, tokens)
        logits, expected = found.logits, unbound.logits
        for row in range(3):
            if t < length[row]:
                probabilities = jax.nn.softmax(logits[row])
                np.testing.assert_array_equal(probabilities[:, prompt[row, t]], [1, 1])
            else:
                np.testing.assert_array_equal(logits[row], expected[row])
        tokens = logits.argmax(-1)


def test_neither_prompts_nor_later_tokens_are_read():
    model, params = started()
    given, apply = batch(), jax.jit(model.apply)
    expected = apply(params, given).predictions.logits
    later = {**given, "target": given["target"].at[:, 3:].set(4), "prompt": given["prompt"] + 2}
    np.testing.assert_array_equal(apply(params, later).predictions.logits[:, :4], expected[:, :4])
    assert "alignment" not in model.provides and model.begins_from == "prompt"


def test_tied_embeddings_have_one_table():
    tied, own = (jax.eval_shape(started(tie_embeddings=tie)[0].init, jax.random.key(0))
                 for tie in (True, False))  # fmt: skip
    assert set(own) - set(tied) == {"output"} and own["output"].shape == (V, 6)


def test_embedding_scale_is_of_what_reads_words():
    started_with = started.__wrapped__  # a cache cannot be asked for a group of fields
    one, other = (
        jax.jit(started_with(tie_embeddings=False, initialization=initialization)[0].init)(
            jax.random.key(2)
        )
        for initialization in ({"embedding_scale": 0.1}, {"embedding_scale": 0.5})
    )
    np.testing.assert_allclose(5 * one.pop("embedding"), other.pop("embedding"), rtol=1e-6)
    jax.tree.map(np.testing.assert_array_equal, one, other)


def test_a_mechanism_that_does_not_serve_is_refused_without_advice_that_is_refused_too():
    fields = {"attention": {"name": "local_p"}}
    with pytest.raises(ConfigError, match="attention.name: .* 'local_p' .* still being written$"):
        build_model(typed(MODELS.config("language_model"), fields, "config.model"), V, V)


def test_what_only_an_lstm_reads_is_refused():
    with pytest.raises(ConfigError, match="initialization.forget_bias: expected 0 in a language"):
        typed(MODELS.config("language_model"), {"initialization": {"forget_bias": 1.0}}, "model")


@pytest.mark.parametrize(
    ("field", "expected"),
    [({"alignment_layer": 0}, "none"), ({"alignment_head": 0}, "none"),
     ({"name": "gnmt"}, "'transformer'"),
     ({"self_attention": {"name": "multi_head"}}, "none .* found 'multi_head' over 'scaled_dot'$")],
)  # fmt: skip
def test_fields_that_would_change_nothing_are_rejected(field, expected):
    message = f"decoder.{next(iter(field))}: expected {expected}"
    with pytest.raises(ConfigError, match=message):
        typed(MODELS.config("language_model"), {"decoder": field}, "config.model")


def test_a_frequent_token_is_taught_in_bfloat16_as_in_float32():
    """BOS, a thousand times in a batch."""
    texts = jnp.tile(jnp.asarray([[5, 6]], jnp.int32), (1024, 1))
    known = {"target": texts, "target_mask": jnp.ones(texts.shape, bool)}
    params = started()[1]

    def gradient(dtype):
        model, _ = started(dtype=dtype)
        logits = lambda params: model.apply(params, known).predictions.logits.astype(jnp.float32)  # noqa: E731
        return jax.jit(jax.grad(lambda params: jax.nn.log_softmax(logits(params))[..., 5].sum()))(
            params
        )["embedding"]

    expected, found = (np.linalg.norm(gradient(dtype), axis=-1) for dtype in DTYPES)
    np.testing.assert_allclose(found[[1, 5]], expected[[1, 5]], rtol=0.1)
    assert expected[1] > 0
