"""Hard attention, worked out by hand: the penalty, REINFORCE's gradient and variance, the bound."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.objectives import attention_entropy, coverage_penalty, nll, reinforce
from attention_jax.ops.hard_attention import log_prob_of_slot
from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.types import AttentionOutput, ModelOutput

LOGITS = jnp.asarray([0.0, 1.0, -1.0])
ALPHA = np.asarray([0.24472847, 0.66524096, 0.09003057])
REWARDS = np.asarray([-2.0, -0.5, -3.0])  # log p(y | s) of one target token
BATCH = {
    "source_mask": jnp.ones((3, 3), bool),
    "target": jnp.zeros((3, 1), jnp.int32),
    "target_mask": jnp.ones((3, 1), bool),
}


def outputs(logits, log_probs):
    """One row for each slot that may be sampled, of a target token with those log-probabilities."""
    weights = jnp.broadcast_to(jax.nn.softmax(logits), (3, 1, 3))
    aux = {
        "sample_log_prob": log_prob_of_slot(weights, jnp.eye(3)[:, None]),
        "is_sampled": jnp.ones((3, 1), bool),
    }
    others = np.log1p(-np.exp(log_probs))
    predictions = SoftmaxPredictions(
        jnp.asarray(np.stack([log_probs, others], -1)[:, None], jnp.float32)
    )
    return ModelOutput(predictions, AttentionOutput(None, weights, None, aux))


def gradients(baseline):
    """The gradient by the logits that each sample gives, of the loss to be minimised."""
    term = reinforce.Term(baseline="none" if baseline is None else "moving_average")
    carried = () if baseline is None else jnp.asarray(baseline, float)

    def of_each(logits):
        def of_one(row):
            only = {**BATCH, "target_mask": BATCH["target_mask"] & (jnp.arange(3) == row)[:, None]}
            return term.total(outputs(logits, REWARDS), only, carried)

        return jnp.stack([of_one(row) for row in range(3)])

    return np.asarray(jax.jacobian(of_each)(LOGITS), np.float64)


def test_doubly_stochastic_penalty():
    """(1 - .7)^2 + (1 - .8)^2 + (1 - .5)^2 = .38."""
    weights = jnp.asarray([[[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]])
    batch = {"source_mask": jnp.ones((1, 3), bool), "target_mask": jnp.ones((1, 2), bool)}
    output = ModelOutput(None, AttentionOutput(None, weights, None))
    np.testing.assert_allclose(coverage_penalty.Term().total(output, batch), 0.38, rtol=1e-6)


@pytest.mark.parametrize("baseline", [None, 0.0, -1.0, 7.5])
def test_reinforce_descends_the_expected_reward_whatever_the_baseline(baseline):
    """d E[R] / d logits = [-.22217206 .39393516 -.17176311]; the loss is -E[R]."""
    mean = ALPHA @ gradients(baseline)
    np.testing.assert_allclose(mean, [0.22217206, -0.39393516, 0.17176311], rtol=2e-5)


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [
        (None, [0.56753608, 0.65525003, 0.65072383]),
        (float(ALPHA @ REWARDS), [0.09929098, 0.10523587, 0.24536905]),
    ],
)
def test_a_baseline_lowers_the_variance_of_reinforce(baseline, expected):
    each = gradients(baseline)
    variance = ALPHA @ each**2 - (ALPHA @ each) ** 2
    np.testing.assert_allclose(variance, expected, rtol=2e-5)


def test_entropy_and_its_gradient():
    """H = .83239558; the bonus is subtracted from the loss."""

    def loss(logits):
        return attention_entropy.Term().total(outputs(logits, REWARDS), BATCH) / 3

    value, gradient = jax.value_and_grad(loss)(LOGITS)
    np.testing.assert_allclose(value, -0.83239558, rtol=1e-6)
    np.testing.assert_allclose(-gradient, [0.14077036, -0.28258745, 0.14181709], rtol=1e-5)


def test_the_expected_log_likelihood_is_a_lower_bound():
    """p = [.5 .1 .2]: E[log p] = -1.84630538, and log E[p] = -1.57554654."""
    log_probs = np.log([0.5, 0.1, 0.2])
    one = {**BATCH, "target_mask": jnp.ones((1, 1), bool), "target": BATCH["target"][:1]}
    predictions = outputs(LOGITS, log_probs).predictions.logits
    each = [nll.Term().total(ModelOutput(SoftmaxPredictions(row[None]), None), one)
            for row in predictions]  # fmt: skip
    bound = -ALPHA @ np.asarray(each, np.float64)
    np.testing.assert_allclose(bound, -1.84630538, rtol=1e-6)
    marginal = np.log(ALPHA @ np.exp(-np.asarray(each, np.float64)))
    np.testing.assert_allclose(marginal, -1.57554654, rtol=1e-6)
