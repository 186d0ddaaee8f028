"""REINFORCE against the exact gradient of the expected likelihood, all samples enumerated."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.errors import ConfigError
from attention_jax.objectives import build_objective, nll, reinforce
from attention_jax.ops.hard_attention import log_prob_of_slot
from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.types import AttentionOutput, ModelOutput

T, S, V = 2, 3, 4
SAMPLES = np.asarray(list(itertools.product(range(S), repeat=T)))  # all of them, N T
ONE = {"target": jnp.asarray([[1, 3]]), "target_mask": jnp.ones((1, T), bool)}
BASELINES = {"none": (), "moving_average": jnp.asarray(-1.3), "learnt": ()}


def parameters(seed=0):
    """Scores that depend on the slot before, and logits that depend on both slots so far."""
    rng = np.random.default_rng(seed)
    shapes = {"start": (S,), "after": (S, S), "here": (T, S, V), "before": (S, V), "baseline": ()}
    return {name: jnp.asarray(rng.normal(size=shape), float) for name, shape in shapes.items()}


def run(params, sample, is_sampled=True):
    """Runs a decoder of two steps on one sample; returns its output and log p(sample)."""
    first, second = sample
    scores = jnp.stack([params["start"], params["after"][first]])
    weights, read = jax.nn.softmax(scores)[None], jax.nn.one_hot(sample, S)[None]
    logits = jnp.stack(
        [params["here"][0, first], params["here"][1, second] + params["before"][first]]
    )
    log_prob = log_prob_of_slot(weights, read)
    aux = {
        "sample_log_prob": log_prob if is_sampled else jnp.zeros_like(log_prob),
        "is_sampled": jnp.full((1, T), is_sampled),
    }
    attention = AttentionOutput(None, weights, None, aux)
    outputs = {"baseline": params["baseline"][None]}
    return ModelOutput(SoftmaxPredictions(logits[None]), attention, outputs), log_prob.sum()


def likelihood(output):
    return -nll.Term().total(output, ONE)


def over_samples(function, params):
    """Sums what a function returns for each sample, times its probability."""

    def of_one(sample):
        output, log_prob = run(params, sample)
        return function(output, jnp.exp(log_prob))

    return jax.vmap(of_one)(jnp.asarray(SAMPLES)).sum()


def exact_gradient(params):
    """That of -E_s[log p(y | s)], through the probabilities of the samples too."""
    return jax.grad(
        lambda params: over_samples(lambda output, p: -p * likelihood(output), params)
    )(params)


def expected_gradient(params, term, carried=(), weight=1.0):
    """The mean over all samples of the gradient that `nll` and the term give of one."""

    def loss(output, probability):
        total = weight * term.total(output, ONE, carried) - likelihood(output)
        return jax.lax.stop_gradient(probability) * total

    return jax.grad(lambda params: over_samples(loss, params))(params)


def assert_close(found, expected):
    for name in ("start", "after", "here", "before"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("returns", ["sequence", "to_go"])
def test_the_gradient_is_unbiased_with_any_baseline(returns, baseline):
    params, term = parameters(), reinforce.Term(returns=returns, baseline=baseline)
    expected = exact_gradient(params)
    assert_close(expected_gradient(params, term, BASELINES[baseline]), expected)
    assert np.abs(expected["start"]).max() > 0.05 and np.abs(expected["after"]).max() > 0.03


def test_without_it_the_weights_learn_nothing_and_with_the_other_sign_the_contrary():
    """The negative log-likelihood times log alpha, as one published program has it, ascends."""
    params, term = parameters(), reinforce.Term(baseline="none")
    expected = exact_gradient(params)
    assert not expected_gradient(params, term, weight=0.0)["start"].any()
    wrong = expected_gradient(params, term, weight=-1.0)
    np.testing.assert_allclose(wrong["start"], -expected["start"], rtol=1e-4)


def test_the_mean_over_time_is_a_return_of_its_own_scale():
    params, term = parameters(), reinforce.Term(returns="mean", baseline="moving_average")
    found = expected_gradient(params, term, jnp.asarray(-1.3))
    np.testing.assert_allclose(T * found["start"], exact_gradient(params)["start"], rtol=1e-4)


def test_advantages_against_numpy():
    """Two sentences, of two tokens and of one; what stands at padding is NaN."""
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(2, T, V))
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    first, second, third = log_probs[0, 0, 1], log_probs[0, 1, 3], log_probs[1, 0, 2]
    mask = np.asarray([[1, 1], [1, 0]], bool)
    batch = {"target": np.asarray([[1, 3], [2, 0]]), "target_mask": mask}
    logits[1, 1] = np.nan
    aux = {"sample_log_prob": jnp.zeros((2, T)), "is_sampled": jnp.ones((2, T), bool)}
    output = ModelOutput(
        SoftmaxPredictions(jnp.asarray(logits, jnp.float32)),
        AttentionOutput(None, None, None, aux), {"baseline": jnp.asarray([-1.0, -2.0])},
    )  # fmt: skip
    expected = {
        ("sequence", "moving_average"): [[first + second + 1] * 2, [third + 0.5, 0]],
        ("to_go", "moving_average"): [[first + second + 1, second + 0.5], [third + 0.5, 0]],
        ("mean", "none"): [[(first + second) / 2] * 2, [third, 0]],
        ("to_go", "learnt"): [[first + second + 2, second + 1], [third + 2, 0]],
    }
    for (returns, baseline), advantage in expected.items():
        term = reinforce.Term(returns=returns, baseline=baseline)
        found = term.advantage(output, batch, jnp.asarray(-0.5))
        np.testing.assert_allclose(found, advantage, rtol=1e-5, atol=1e-6)
    measured = reinforce.Term(returns="to_go").measure(output, batch, jnp.asarray(-0.5))
    squares = np.square(expected["to_go", "moving_average"]).sum()
    np.testing.assert_allclose(measured["squared_advantage"], (squares, 3), rtol=1e-5)
    np.testing.assert_allclose(measured["log_likelihood"], (first + second + third, 3), rtol=1e-5)


def test_a_learnt_baseline_is_taught_the_mean_log_likelihood_and_nothing_else():
    params, term = parameters(), reinforce.Term(baseline="learnt")
    output, _ = run(params, jnp.asarray([2, 0]))

    def total(params):
        return term.total(run(params, jnp.asarray([2, 0]))[0], ONE)

    gradient = jax.grad(total)(params)
    error = float(params["baseline"]) - float(likelihood(output)) / T
    np.testing.assert_allclose(gradient["baseline"], 2 * error, rtol=1e-5)
    assert not gradient["here"].any() and gradient["start"].any()


def test_batches_that_read_the_expectation_contribute_nothing():
    params = parameters()
    for baseline, carried in BASELINES.items():
        term = reinforce.Term(baseline=baseline)

        def total(params, term=term, carried=carried):
            return term.total(run(params, jnp.asarray([2, 0]), False)[0], ONE, carried)

        value, gradient = jax.value_and_grad(total)(params)
        assert value == 0 and not any(leaf.any() for leaf in jax.tree.leaves(gradient))
    term = reinforce.Term()
    measured = term.measure(run(params, jnp.asarray([2, 0]), False)[0], ONE, jnp.asarray(-1.3))
    assert measured["log_likelihood"] == (0, 0)
    np.testing.assert_array_equal(term.follow(jnp.asarray(-1.3), measured), jnp.asarray(-1.3))


def test_the_moving_average_starts_at_zero_and_keeps_nine_tenths():
    term, pairs = reinforce.Term(), {"log_likelihood": (jnp.asarray(-6.0), jnp.asarray(3.0))}
    carried = term.start()
    for expected in (-0.2, -0.38, -0.542):
        carried = term.follow(carried, pairs)
        np.testing.assert_allclose(carried, expected, rtol=1e-6)
    assert reinforce.Term(baseline="none").start() == ()


def test_an_objective_reports_what_is_carried():
    """Under the term's name, as sums and counts, from what the last step left."""
    objective = build_objective({"nll": {}, "reinforce": {"weight": 0.5}})
    output, _ = run(parameters(), jnp.asarray([1, 1]))
    carried = {"reinforce": jnp.asarray(-1.0)}
    loss, metrics = objective(output, ONE, jnp.int32(0), carried=carried)
    advantage = float(likelihood(output)) + T
    np.testing.assert_allclose(
        metrics["reinforce/squared_advantage"], (T * advantage**2, T), rtol=1e-5
    )
    expected = objective.terms["reinforce"].total(output, ONE, jnp.asarray(-1.0))
    np.testing.assert_allclose(
        loss, (-likelihood(output) + 0.5 * expected) / T, rtol=1e-5
    )
    new = objective.follow(carried, metrics)["reinforce"]
    np.testing.assert_allclose(new, -0.9 + 0.1 * likelihood(output) / T, rtol=1e-5)


def test_a_decay_beside_another_baseline_is_refused():
    with pytest.raises(ConfigError, match="^config.objectives.reinforce.decay: expected only besi"):
        build_objective({"reinforce": {"baseline": "none", "decay": 0.5}})


def test_counts_are_those_of_the_likelihood():
    for reduction in ("per_token", "per_sentence"):
        terms = reinforce.Term(reduction=reduction), nll.Term(reduction=reduction)
        assert len({float(term.count(ONE)) for term in terms}) == 1
