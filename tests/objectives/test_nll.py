"""Cross-entropy against NumPy float64 and hand-computed cases."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.objectives.nll import Term
from attention_jax.ops.cross_entropy import cross_entropy
from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.types import ModelOutput
from tests.derivatives import assert_derivatives_are_those_of

FORMS = ("vocabulary", "others")


def smoothed_targets(targets, size, eps, form):
    onehot = np.eye(size)[targets]
    if form == "vocabulary":
        return (1 - eps) * onehot + eps / size
    return (1 - eps) * onehot + eps / (size - 1) * (1 - onehot)


def log_softmax(logits):
    logits = np.asarray(logits, np.float64)
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


@pytest.fixture
def example():
    draw = np.random.default_rng(0)
    logits = draw.normal(size=(3, 4, 7)).astype(np.float32) * 3
    targets = draw.integers(0, 7, (3, 4)).astype(np.int32)
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], bool)
    return jnp.asarray(logits), jnp.asarray(targets), jnp.asarray(mask)


@pytest.mark.parametrize(
    ("eps", "form", "expected"),
    [
        (0.0, "vocabulary", 0.44018970),
        (0.1, "vocabulary", 0.59018970),
        (0.1, "others", 0.64018970),
    ],
)
def test_cross_entropy_golden(eps, form, expected):
    loss = cross_entropy(
        jnp.array([[2.0, 1.0, 0.0, -1.0]]),
        jnp.array([0]),
        jnp.array([True]),
        label_smoothing=eps,
        smoothing_over=form,
    )
    np.testing.assert_allclose(loss, [expected], rtol=1e-6)


@pytest.mark.parametrize(("form", "floor"), [("vocabulary", 0.34878039), ("others", 0.43494420)])
def test_cross_entropy_minimum_is_target_entropy(form, floor):
    best = jnp.log(jnp.asarray(smoothed_targets(np.array([0]), 4, 0.1, form)))
    arguments = (jnp.array([0]), jnp.array([True]))
    settings = {"label_smoothing": 0.1, "smoothing_over": form}

    def loss(logits):
        return cross_entropy(logits, *arguments, **settings).sum()

    np.testing.assert_allclose(loss(best), floor, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(loss)(best), np.zeros((1, 4)), atol=1e-7)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("eps", [0.0, 0.1, 0.5])
def test_cross_entropy_matches_numpy(example, eps, form):
    logits, targets, mask = example
    q = smoothed_targets(targets, 7, eps, form)
    expected = -(q * log_softmax(logits)).sum(-1) * mask
    upstream = np.random.default_rng(1).normal(size=mask.shape)
    expected_gradient = (np.exp(log_softmax(logits)) - q) * (mask * upstream)[..., None]

    def loss(logits):
        return cross_entropy(logits, targets, mask, label_smoothing=eps, smoothing_over=form)

    value, pull_back = jax.vjp(loss, logits)
    np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)
    (gradient,) = pull_back(jnp.asarray(upstream, jnp.float32))
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("junk", [np.nan, np.inf, 1e30])
def test_cross_entropy_ignores_padding(example, junk):
    logits, targets, mask = example
    dirty = jnp.where(mask[..., None], logits, junk)

    def loss(logits):
        return cross_entropy(logits, targets, mask, label_smoothing=0.1).sum()

    np.testing.assert_array_equal(loss(dirty), loss(logits))
    gradient = jax.grad(loss)(dirty)
    np.testing.assert_array_equal(gradient, jax.grad(loss)(logits))
    np.testing.assert_array_equal(np.asarray(gradient)[~mask], 0.0)


@pytest.mark.parametrize("eps", [0.0, 0.1])
def test_second_derivatives_and_forward_mode(example, eps):
    """Of the real tokens' logits; what stands at padding is not a number."""
    logits, targets, mask = example
    smoothed = jnp.asarray(smoothed_targets(targets, 7, eps, "vocabulary"), jnp.float32)

    def plain(logits):
        return -(jax.nn.log_softmax(logits) * smoothed).sum(-1)[mask]

    def dirty(logits):
        logits = jnp.where(mask[..., None], logits, jnp.nan)
        return cross_entropy(logits, targets, mask, label_smoothing=eps)

    assert_derivatives_are_those_of(
        lambda at: (plain(at) ** 2).sum(), lambda at: (dirty(at) ** 2).sum(), 0.3 * logits
    )


def test_cross_entropy_allows_forbidden_tokens():
    logits = jnp.array([[0.0, -jnp.inf, 0.0]])

    def loss(logits):
        return cross_entropy(logits, jnp.array([0]), jnp.array([True])).sum()

    np.testing.assert_allclose(loss(logits), np.log(2.0), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(loss)(logits), [[-0.5, 0.0, 0.5]], rtol=1e-6)


def test_cross_entropy_survives_large_logits():
    logits = jnp.array([[1e4, -1e4, 0.0]])
    loss = cross_entropy(logits, jnp.array([1]), jnp.array([True]))
    np.testing.assert_allclose(loss, [2e4], rtol=1e-6)


def test_cross_entropy_is_float32_for_bfloat16_logits(example):
    logits, targets, mask = example
    rounded = jnp.asarray(logits, jnp.bfloat16)

    def loss(logits):
        return cross_entropy(logits, targets, mask, label_smoothing=0.1)

    exact = loss(rounded.astype(jnp.float32))
    assert loss(rounded).dtype == jnp.float32
    np.testing.assert_array_equal(loss(rounded), exact)
    assert jax.grad(lambda x: loss(x).sum())(rounded).dtype == jnp.bfloat16


@pytest.mark.parametrize(("reduction", "expected"), [("per_token", 6.0), ("per_sentence", 2.0)])
def test_count_leaves_out_padding(example, reduction, expected):
    _, targets, mask = example
    count = Term(reduction=reduction).count({"target": targets, "target_mask": mask})
    assert count == expected


@pytest.mark.parametrize(
    "change",
    [
        {"weight": 2.0},
        {"label_smoothing": 0.3},
        {"smoothing_over": "others"},
        {"reduction": "per_sentence"},
    ],
)
def test_every_field_changes_the_loss(example, change):
    logits, targets, mask = example
    batch = {"target": targets, "target_mask": mask}
    output = ModelOutput(SoftmaxPredictions(logits), None)

    def loss(term):
        return term.weight * term.total(output, batch) / term.count(batch)

    term = Term(label_smoothing=0.1)
    assert abs(loss(term) - loss(dataclasses.replace(term, **change))) > 1e-3


def test_what_smoothing_is_over_is_refused_where_nothing_is_smoothed():
    with pytest.raises(ValueError, match="smoothing_over: expected only beside label_smoothing"):
        Term(smoothing_over="others")
