"""Coverage embeddings in a whole model: which word reduces them, and what is left in the end."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.objectives import build_objective
from attention_jax.search.state import follow
from tests.models.test_encoder_decoder import DECODERS, V, build, sigmoid
from tests.parameters import drawn

LENGTHS, TARGET_LENGTHS = (5, 3), (2, 4)
ATTENTION = {"name": "coverage_embedding", "attention_dim": 5, "coverage_dim": 3}
UPDATES = ("gru", "subtract")
VARIANTS = {
    **DECODERS,
    "bahdanau-main_text": {**DECODERS["bahdanau"], "variant": "main_text"},
    "luong-no-feed": {**DECODERS["luong"], "input_feeding": False},
}


def batch(extra=0, junk=0):
    """Two sentences that end in EOS, with `extra` positions of padding that hold `junk`."""
    rng, result = np.random.default_rng(0), {}
    for side, lengths in (("source", LENGTHS), ("target", TARGET_LENGTHS)):
        size = max(lengths) + extra
        ids = np.full((2, size), junk)
        for row, length in enumerate(lengths):
            ids[row, :length] = [*rng.integers(4, V, length - 1), 2]
        result[side] = jnp.asarray(ids, jnp.int32)
        result[f"{side}_mask"] = jnp.arange(size) < jnp.asarray(lengths)[:, None]
    return result


@functools.cache
def started(decoder="bahdanau", update="gru", heads=1):
    attention = {**ATTENTION, "coverage_update": update, "num_heads": heads}
    model = build(attention=attention, decoder=VARIANTS[decoder])
    params = drawn(model, 1)
    return model, params, jax.jit(model.apply)(params, batch())


def left(attention, update, ids, words, weights):
    """One sentence's final coverage: every written word takes its share, one after the other."""
    coverage = attention["coverage_table"][ids].copy()
    for word, row in zip(words @ attention["coverage_word"], weights, strict=True):
        if update == "subtract":
            coverage -= np.outer(row, word)
            continue
        recurrent = np.split(attention["coverage_recurrent"], 3, axis=1)
        gates = np.split(word + np.outer(row, attention["coverage_weight"]), 3, axis=1)
        reset, keep = (sigmoid(gates[k] + coverage @ recurrent[k]) for k in (0, 1))
        new = np.tanh(gates[2] + (reset * coverage) @ recurrent[2])
        coverage = keep * coverage + (1 - keep) * new
    return coverage


@pytest.mark.parametrize(("decoder", "update"), [*((name, "gru") for name in VARIANTS),
                                                 ("bahdanau", "subtract")])  # fmt: skip
def test_final_coverage_is_what_all_written_words_leave(decoder, update):
    _, params, output = started(decoder, update)
    params = jax.tree.map(lambda leaf: np.asarray(leaf, float), params)
    for row, (size, length) in enumerate(zip(LENGTHS, TARGET_LENGTHS, strict=True)):
        source, target = batch()["source"][row, :size], batch()["target"][row, :length]
        words = params["target_embedding"][np.asarray(target)]
        weights = np.asarray(output.attention.weights[row, :length, :size], float)
        attention = params["decoder"]["attention"]
        expected = left(attention, update, np.asarray(source), words, weights)
        np.testing.assert_allclose(
            output.outputs["coverage"][row, :size], expected, rtol=1e-4, atol=1e-5
        )


def test_final_coverage_of_heads_is_side_by_side():
    _, params, output = started("conditional_gru", "subtract", heads=2)
    attention = jax.tree.map(lambda leaf: np.asarray(leaf, float), params["decoder"]["attention"])
    words = np.asarray(params["target_embedding"], float)[batch()["target"][1]]
    for head in (0, 1):
        of_head = {name: leaf[head] for name, leaf in attention.items()}
        weights = np.asarray(output.attention.aux["head_weights"][1, :, head, :3], float)
        expected = left(of_head, "subtract", np.asarray(batch()["source"][1, :3]), words, weights)
        found = output.outputs["coverage"][1, :3, 3 * head : 3 * head + 3]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("update", UPDATES)
def test_padding_changes_nothing(update):
    model, params, output = started("bahdanau", update)
    padded = jax.jit(model.apply)(params, batch(extra=3, junk=V - 1))
    real = np.asarray(batch()["source_mask"])
    found, expected = padded.outputs["coverage"][:, :5][real], output.outputs["coverage"][real]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        padded.predictions.logits[:, :2], output.predictions.logits[:, :2], rtol=1e-5, atol=1e-6
    )
    objective = build_objective({"nll": {}, "final_coverage": {}})
    losses = [objective(*pair)[0] for pair in ((output, batch()), (padded, batch(3, V - 1)))]
    np.testing.assert_allclose(*losses, rtol=1e-5)


@pytest.mark.parametrize("decoder", VARIANTS)
def test_hypotheses_keep_their_own_coverage(decoder):
    """Two different beginnings for each source, which change places after two words."""
    model, params, _ = started(decoder)
    targets = jnp.stack([batch()["target"], jnp.flip(batch()["target"], -1)], 1)
    apply, whole = jax.jit(model.apply), {**batch(), "target_mask": jnp.ones((2, 4), bool)}
    logits = [apply(params, {**whole, "target": targets[:, k]}).predictions.logits for k in (0, 1)]
    expected = jnp.stack(logits, 1)
    memory, state = jax.jit(model.start, static_argnums=2)(params, batch(), 4)
    state = jax.tree.map(lambda leaf: jnp.repeat(leaf, 2, 1), state)
    step, previous, order = jax.jit(model.step), jnp.ones((2, 2), jnp.int32), jnp.arange(2)
    for t in range(4):
        predictions, _, state = step(params, memory, state, previous[:, order])
        logits = predictions.logits
        np.testing.assert_allclose(logits, expected[:, order, t], rtol=1e-4, atol=1e-5)
        previous = targets[:, :, t]
        if t == 1:
            order = jnp.asarray([1, 0])
            state = follow(state, jnp.broadcast_to(order, (2, 2)))


@pytest.mark.parametrize("update", UPDATES)
def test_every_parameter_learns(update):
    model, params, _ = started("bahdanau", update)
    objective = build_objective({"nll": {}, "final_coverage": {}})

    def loss(params, batch):
        return objective(model.apply(params, batch), batch)[0]

    gradients = jax.jit(jax.grad(loss))(params, batch())
    for path, leaf in jax.tree.leaves_with_path(gradients):
        assert np.isfinite(leaf).all() and np.abs(leaf).max() > 1e-7, jax.tree_util.keystr(path)
    table = gradients["decoder"]["attention"]["coverage_table"]
    unused = sorted(set(range(V)) - set(np.ravel(batch()["source"]).tolist()))
    assert np.all(np.asarray(table)[unused] == 0)
    alone = build_objective({"final_coverage": {}})
    short = {name: leaf[:, :1] if "target" in name else leaf for name, leaf in batch().items()}
    gradients = jax.jit(jax.grad(lambda p: alone(model.apply(p, short), short)[0]))(params)
    assert np.abs(gradients["decoder"]["attention"]["coverage_table"]).max() > 1e-3
