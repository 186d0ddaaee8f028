"""Symmetric training: the trace against NumPy, its places, its padding; the reverse likelihood."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.errors import ConfigError
from attention_jax.models import MODELS, build_model
from attention_jax.objectives import add_pairs, bilingual_symmetry, build_objective, nll
from attention_jax.objectives.metrics import means, token_metrics
from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.types import AttentionOutput, ModelOutput, swap_sides

T, S, V = 4, 5, 7
TARGET_LENGTHS, SOURCE_LENGTHS = (4, 2, 0, 3), (3, 5, 0, 2)
SYMMETRY = bilingual_symmetry.Term()


def mask(lengths, size):
    return jnp.arange(size) < jnp.asarray(lengths)[:, None]


@pytest.fixture
def batch(numpy_rng):
    """Four pairs, one of them a row that only fills the batch."""
    sides = {"target": (TARGET_LENGTHS, T), "source": (SOURCE_LENGTHS, S)}
    return {
        name: value
        for side, (lengths, size) in sides.items()
        for name, value in (
            (side, jnp.asarray(numpy_rng.integers(3, V, (4, size)), jnp.int32)),
            (f"{side}_mask", mask(lengths, size)),
        )
    }


def output_of(forward, reverse, logits=(None, None)):
    forward, reverse = (
        ModelOutput(
            SoftmaxPredictions(values),
            AttentionOutput(None, jnp.asarray(weights, jnp.float32), None),
        )
        for weights, values in zip((forward, reverse), logits, strict=True)
    )
    return ModelOutput(forward.predictions, forward.attention, {"reverse": reverse})


def attention(draw, rows, columns, lengths):
    """Rows of weights over the first few columns."""
    is_real = np.asarray(mask(lengths, columns))[:, None]
    weights = draw.dirichlet(np.ones(columns), (4, rows)) * is_real
    return weights / np.maximum(weights.sum(-1, keepdims=True), 1e-9)


def trace(forward, reverse):
    """The trace of the product of two matrices of one sentence, by the book, in float64."""
    product = np.asarray(forward, np.float64) @ np.asarray(reverse, np.float64)
    return sum(product[index, index] for index in range(len(product)))


def test_total_is_the_trace_of_the_product_whatever_padding_holds(batch, numpy_rng):
    forward = attention(numpy_rng, T, S, SOURCE_LENGTHS)
    reverse = attention(numpy_rng, S, T, TARGET_LENGTHS)
    expected = sum(
        trace(a[:t, :s], b[:s, :t])
        for a, b, t, s in zip(forward, reverse, TARGET_LENGTHS, SOURCE_LENGTHS, strict=True)
    )
    real = np.asarray(batch["target_mask"][:, :, None] & batch["source_mask"][:, None, :])
    junk = np.where(real, forward, np.nan), np.where(real.swapaxes(1, 2), reverse, np.nan)
    value, gradients = jax.value_and_grad(
        lambda weights: SYMMETRY.total(output_of(*weights), batch)
    )(junk)
    np.testing.assert_allclose(value, -expected, rtol=1e-6)
    # d tr(A B) / dA is B transposed, and the other way round.
    np.testing.assert_allclose(gradients[0], np.where(real, -reverse.swapaxes(1, 2), 0), rtol=1e-6)
    backward = np.where(real, -forward, 0).swapaxes(1, 2)
    np.testing.assert_allclose(gradients[1], backward, rtol=1e-6)


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_only_the_same_place_is_rewarded(shift):
    """The models agree on a monotone alignment, or one of them is a token off."""
    batch = {side: jnp.ones((1, 5), bool) for side in ("target_mask", "source_mask")}
    forward, reverse = np.eye(5)[None], np.eye(5, k=shift)[None]
    assert SYMMETRY.total(output_of(forward, reverse), batch) == (0 if shift else -5)


def test_ends_of_sentences_count_like_any_token():
    batch = {"target_mask": mask([3], 4), "source_mask": mask([2], 4)}
    forward, reverse = np.zeros((1, 4, 4)), np.zeros((1, 4, 4))
    forward[0, 2, 1] = reverse[0, 1, 2] = 1  # EOS, the last real token of each side
    assert SYMMETRY.total(output_of(forward, reverse), batch) == -1
    assert SYMMETRY.count(batch) == 3


def test_trace_is_at_most_the_length_of_the_shorter_side(numpy_rng):
    batch = {"target_mask": jnp.ones((4, T), bool), "source_mask": jnp.ones((4, S), bool)}
    for concentration in (0.01, 1.0):
        forward = numpy_rng.dirichlet(np.full(S, concentration), (4, T))
        reverse = numpy_rng.dirichlet(np.full(T, concentration), (4, S))
        assert -SYMMETRY.total(output_of(forward, reverse), batch) <= 4 * T
    assert SYMMETRY.total(output_of(np.eye(T, S)[None].repeat(4, 0),
                                    np.eye(S, T)[None].repeat(4, 0)), batch) == -4 * T  # fmt: skip


def test_reverse_likelihood_is_the_likelihood_of_the_swapped_batch(batch, numpy_rng):
    logits = jnp.asarray(numpy_rng.normal(size=(4, S, V)), jnp.float32)
    output = ModelOutput(None, None, {"reverse": ModelOutput(SoftmaxPredictions(logits), None)})
    other = {"target": batch["source"], "target_mask": batch["source_mask"]}
    for fields in ({}, {"label_smoothing": 0.1, "reduction": "per_sentence"}):
        reverse = build_objective({"reverse_nll": fields}).terms["reverse_nll"]
        plain = nll.Term(**fields)
        assert reverse.total(output, batch) == plain.total(output.outputs["reverse"], other)
        assert reverse.count(batch) == plain.count(other) == (3 if fields else 10)
    log_probs = np.asarray(jax.nn.log_softmax(logits), np.float64)
    expected = -sum(
        log_probs[row, place, batch["source"][row, place]]
        for row, length in enumerate(SOURCE_LENGTHS)
        for place in range(length)
    )
    unsmoothed = build_objective({"reverse_nll": {}}).terms["reverse_nll"]
    np.testing.assert_allclose(unsmoothed.total(output, batch), expected, rtol=1e-6)


@pytest.mark.parametrize("reduction", ["per_token", "per_sentence"])
def test_loss_is_that_of_the_paper(batch, numpy_rng, reduction):
    """Summed over sentences, -log p(t|s) - log p(s|t) - gamma tr; here each over its count."""
    gamma = 0.7
    matrices = (attention(numpy_rng, T, S, SOURCE_LENGTHS),
                attention(numpy_rng, S, T, TARGET_LENGTHS))  # fmt: skip
    logits = [jnp.asarray(numpy_rng.normal(size=(4, n, V)), jnp.float32) for n in (T, S)]
    output = output_of(*matrices, logits)
    names = {"nll": {}, "reverse_nll": {}, "bilingual_symmetry": {"weight": gamma}}
    objective = build_objective({n: {**f, "reduction": reduction} for n, f in names.items()})
    loss, metrics = objective(output, batch)
    totals = {name: float(term.total(output, batch)) for name, term in objective.terms.items()}
    counts = (9, 10, 9) if reduction == "per_token" else (3, 3, 3)
    expected = sum(
        weight * total / count
        for weight, total, count in zip((1, 1, gamma), totals.values(), counts, strict=True)
    )
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    summary = objective.summary(add_pairs([metrics]))
    np.testing.assert_allclose(summary["loss"], loss, rtol=1e-6)
    reverse = means(add_pairs([token_metrics(output.outputs["reverse"], swap_sides(batch))]))
    assert summary["reverse/accuracy"] == reverse["accuracy"]
    assert summary["reverse/nll"] == reverse["nll"] != summary["nll"]


def test_swapping_the_sides_twice_changes_nothing(batch):
    once = swap_sides({**batch, "index": jnp.arange(4), "links": None})
    assert set(once) == set(batch) and once["source"] is batch["target"]
    assert {name: once[name] is batch[name] for name in once} == dict.fromkeys(batch, False)
    assert swap_sides(once) == batch


@pytest.mark.parametrize(
    ("model", "objectives", "words"),
    [
        ({"name": "encoder_decoder"}, {"nll": {}, "bilingual_symmetry": {}},
         "config.objectives.bilingual_symmetry: expected a model of both directions, as with "
         "config.model.name='bidirectional', found a model without"),
        ({"name": "encoder_decoder"}, {"nll": {}, "reverse_nll": {}},
         "config.objectives.reverse_nll: expected a model of both directions"),
        ({"name": "bidirectional"}, {"nll": {}},
         "config.objectives: expected reverse_nll for a model of both directions, since nothing "
         "else teaches the reverse one to write, found nll"),
        ({"name": "bidirectional"}, {"nll": {}, "bilingual_symmetry": {}},
         "config.objectives: expected reverse_nll for a model of both directions"),
        ({"name": "bidirectional", "attention": {"name": "none"}},
         {"nll": {}, "reverse_nll": {}, "bilingual_symmetry": {}},
         "config.objectives.bilingual_symmetry: expected a model that attends to source positions"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(model, objectives, words):
    fields = {name: value for name, value in model.items() if name != "name"}
    built = build_model(typed(MODELS.config(model["name"]), fields), 9, 8)
    with pytest.raises(ConfigError) as caught:
        build_objective(objectives).check(built)
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("attention", "objectives"),
    [
        ("bahdanau", {"nll": {}, "reverse_nll": {}, "bilingual_symmetry": {}}),
        ("bahdanau", {"nll": {}, "reverse_nll": {}}),
        ("none", {"nll": {}, "reverse_nll": {}}),
    ],
)
def test_what_fits_is_accepted(attention, objectives):
    config = typed(MODELS.config("bidirectional"), {"attention": {"name": attention}})
    build_objective(objectives).check(build_model(config, 9, 8))
