"""Monotonic attention and MoChA learn a monotone task, and decide as they expected to."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attention_jax.configuration import typed
from attention_jax.models import MODELS, build_model
from attention_jax.objectives import build_objective
from attention_jax.types import Call, SpecialIds
from tests.quick import quick_jit

V, D, S, ROWS, STEPS, TESTED = SpecialIds.COUNT + 4, 16, 4, 16, 800, 128
DOUBLED = SpecialIds.COUNT  # the symbol that is written twice
SCORE = {"name": "normed_bahdanau", "attention_dim": D}
ATTENTION = {
    "monotonic": {"name": "monotonic", "score": SCORE, "noise": 2.0},
    "mocha": {"name": "mocha", "score": SCORE, "chunk_score": {"name": "luong_general"}},
}


def build(attention, evaluation="hard"):
    values = {
        "name": "encoder_decoder",
        "target_embedding_dim": D,
        "sources": {
            "source": {
                "input": {"embedding_dim": D}, "encoder": {"hidden_dim": D, "direction": "forward"}
            }
        },
        "attention": {**attention, "evaluation": evaluation},
        "decoder": {"name": "luong", "hidden_dim": D, "attentional_dim": D, "bridge": "zero"},
    }  # fmt: skip
    return build_model(typed(MODELS.config("encoder_decoder"), values, "config.model"), V, V)


def batches(number, rows, seed):
    """Sources of up to S symbols; targets copy them, one of the symbols twice."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, S + 1, size=(number, rows))
    source = np.full((number, rows, S + 1), SpecialIds.PAD)
    target = np.full((number, rows, 2 * S + 1), SpecialIds.PAD)
    for place in np.ndindex(number, rows):
        symbols = rng.integers(SpecialIds.COUNT, V, size=lengths[place])
        written = np.repeat(symbols, np.where(symbols == DOUBLED, 2, 1))
        for side, tokens in ((source, symbols), (target, written)):
            side[place][: len(tokens) + 1] = [*tokens, SpecialIds.EOS]
    return {
        name: jnp.asarray(array)
        for side, tokens in (("source", source), ("target", target))
        for name, array in ((side, tokens.astype(np.int32)), (f"{side}_mask", tokens > 0))
    }


def trained(model):
    """Parameters after some hundred updates, one scan of which is compiled."""
    objective, optimizer = build_objective({"nll": {}}), optax.adam(1e-2)

    def update(carry, step):
        params, state = carry
        batch, rng = step

        def loss(params):
            return objective(model.apply(params, batch, Call(True, rng)), batch)[0]

        changes, state = optimizer.update(jax.grad(loss)(params), state)
        return (optax.apply_updates(params, changes), state), None

    params = model.init(jax.random.key(0))
    steps = batches(STEPS, ROWS, 0), jax.random.split(jax.random.key(1), STEPS)
    run = quick_jit(lambda carry, steps: jax.lax.scan(update, carry, steps)[0][0])
    return run((params, optimizer.init(params)), steps)


@pytest.mark.parametrize("name", ATTENTION)
def test_learns_and_decides_as_expected(name):
    model, batch = build(ATTENTION[name]), jax.tree.map(lambda leaf: leaf[0], batches(1, TESTED, 9))
    params, mask = trained(model), np.asarray(batch["target_mask"])

    @quick_jit
    def outputs(params):
        others = [build(ATTENTION[name], evaluation) for evaluation in ("hard", "expected")]
        found = [other.apply(params, batch) for other in others]
        scores = found[0].predictions.scores()[0]
        return scores.argmax(-1), [each.attention.aux["alignment"] for each in found]

    tokens, alignments = outputs(params)
    assert np.mean((tokens == batch["target"])[mask]) > 0.95
    stops = [np.asarray(alignment).argmax(-1) for alignment in alignments]
    # Of nine trainings from other parameters, .86 to .99: gates are not quite 0 or 1 yet.
    assert np.mean((stops[0] == stops[1])[mask]) > 0.75
    assert np.all(np.diff(stops[0], axis=1)[mask[:, 1:]] >= 0)
    sizes = np.asarray(batch["source_mask"]).sum(-1)
    assert stops[0][mask].max() > 2  # it does read on
    assert np.mean(stops[0][np.arange(TESTED), mask.sum(-1) - 1] >= sizes - 2) > 0.9
