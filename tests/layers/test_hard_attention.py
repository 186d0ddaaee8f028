"""Hard and gated attention in training: what is sampled, by which key, and what is refused."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.devices.row_keys import shard_key
from attention_jax.errors import ConfigError
from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.hard_attention import Argmax, GumbelSoftmax, Reinforce, StraightThrough
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.models import MODELS, build_model
from attention_jax.objectives import build_objective
from attention_jax.types import Call
from tests.conformance.battery import build_case, inputs, small_config
from tests.quick import quick_jit

ESTIMATORS = {
    "reinforce": Reinforce(expectation_share=0.0),
    "straight_through": StraightThrough(),
    "gumbel_softmax": GumbelSoftmax(one_hot=True),
}
B, T, S = 3, 4, 5


def case_of(estimator, score="bahdanau"):
    return build_case(small_config("hard", score=small_config(score), estimator=estimator))


@functools.cache
def trained(estimator, score="bahdanau"):
    """Compiled: (key, all inputs) -> (output, gradients of all)."""
    case = case_of(ESTIMATORS[estimator], score)

    def loss(floats, mask, key):
        output = case.attend(*floats, mask, call=Call(True, key))
        total = (output.context * jnp.cos(jnp.arange(output.context[0].size)).reshape(T, -1)).sum()
        return total + output.aux.get("sample_log_prob", jnp.zeros(())).sum(), output

    run = quick_jit(jax.grad(loss, has_aux=True))
    return case, lambda key, *arrays: run((case.params, *arrays[:-1]), arrays[-1], key)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_one_real_slot_is_read_and_the_weights_stay_a_distribution(estimator, rng):
    _, run = trained(estimator)
    query, keys, values, mask = inputs()
    gradients, output = run(rng, query, keys, values, mask.at[1].set(False))
    read, weights = np.asarray(output.aux["read"]), np.asarray(output.weights)
    is_real = np.asarray(mask.at[1].set(False))
    assert set(np.unique(read)) == {0.0, 1.0}
    assert np.all(np.moveaxis(read, 1, 2)[~is_real] == 0)
    np.testing.assert_array_equal(read.sum(-1), np.broadcast_to([[1], [0], [1]], (B, T)))
    np.testing.assert_allclose(weights[[0, 2]].sum(-1), 1, rtol=1e-5)
    np.testing.assert_array_equal(weights[1], 0)
    expected = np.einsum("bts,bsd->btd", read, np.where(is_real[..., None], values, 0))
    np.testing.assert_allclose(output.context, expected, rtol=1e-5)
    leaves = jax.tree.leaves(gradients)
    assert all(np.isfinite(leaf).all() for leaf in leaves)
    assert all(np.abs(leaf).max() > 1e-4 for leaf in leaves)  # every parameter learns
    if estimator == "reinforce":
        chosen = np.where(read > 0, weights, 0).sum(-1)
        log_prob = np.log(np.where(chosen > 0, chosen, 1))
        np.testing.assert_allclose(output.aux["sample_log_prob"], log_prob, rtol=1e-5)
        assert output.aux["is_sampled"].all()
    other = run(jax.random.fold_in(rng, 1), query, keys, values, mask)[1].aux["read"]
    assert not np.array_equal(read[[0, 2]], np.asarray(other)[[0, 2]])


@pytest.mark.parametrize("score", ["bahdanau", "neural_coverage"])
def test_one_query_at_a_time_reads_what_all_at_once_do(score, rng):
    """Also with a score that carries the weights, not the samples, from query to query."""
    case, run = trained("reinforce", score)
    query, *source = inputs()
    together = run(rng, query, *source)[1]
    memory = case.memory(case.params, *source)

    @quick_jit
    def step(query, state, position, key):
        call = Call(True, rng).at_step(key)  # as a decoder's scan has it
        return case.mechanism.attend(
            case.params, query, memory, state, positions=position, call=call
        )

    state = case.mechanism.init_state(case.params, memory)
    for t in range(T):
        one, state = step(query[:, t : t + 1], state, jnp.asarray([t]), jax.random.key(t))
        np.testing.assert_array_equal(one.aux["read"][:, 0], together.aux["read"][:, t])
        np.testing.assert_allclose(one.weights[:, 0], together.weights[:, t], rtol=1e-5)
    if score == "neural_coverage":
        soft = build_case(small_config(score)).attend(case.params, query, *source)
        np.testing.assert_allclose(together.weights, soft.weights, rtol=1e-5)


WEIGHTS = jnp.broadcast_to(jnp.asarray([0.2, 0.3, 0.5]), (64, T, 3))


def read(estimator, key, weights=WEIGHTS):
    return estimator.read(weights, jnp.arange(T), Call(True, key))


def test_the_expectation_is_drawn_for_all_steps_of_a_batch_or_of_an_example():
    keys = [jax.random.key(number) for number in range(200)]
    drawn = jax.jit(lambda key: read(Reinforce(expectation_share=0.3), key).is_sampled)
    batches = np.stack([drawn(key) for key in keys])
    assert np.all(batches == batches[:, :1, :1])
    assert 0.6 < batches[:, 0, 0].mean() < 0.8  # 3 deviations of 200
    per_example = read(Reinforce(expectation_share=0.3, drawn_for="example"), keys[0])
    sampled = np.asarray(per_example.is_sampled)
    assert np.all(sampled == sampled[:, :1]) and 0.5 < sampled[:, 0].mean() < 0.9
    np.testing.assert_array_equal(per_example.read[~sampled], WEIGHTS[~sampled])
    assert np.all(np.asarray(per_example.read[sampled]).max(-1) == 1)
    assert not read(Reinforce(expectation_share=1.0), keys[1]).is_sampled.any()
    assert read(Reinforce(expectation_share=0.0), keys[1]).is_sampled.all()


@pytest.mark.parametrize(
    "estimator", [Reinforce(), Reinforce(drawn_for="example"), GumbelSoftmax()],
    ids=["batch", "example", "gumbel"],
)  # fmt: skip
def test_devices_sample_for_their_rows_what_one_samples_for_all(estimator, rng):
    whole = read(estimator, rng)
    for shard in range(2):
        part = read(estimator, shard_key(rng, jnp.int32(shard)), WEIGHTS[:32])
        rows = slice(32 * shard, 32 * shard + 32)
        np.testing.assert_array_equal(part.read, whole.read[rows])
        np.testing.assert_array_equal(part.is_sampled, whole.is_sampled[rows])


def test_temperature_falls_geometrically_over_training_steps(rng):
    falling = GumbelSoftmax(temperature=2.0, final_temperature=0.5, anneal_steps=100)
    for step, expected in ((0, 2.0), (50, 1.0), (100, 0.5), (10_000, 0.5)):
        np.testing.assert_allclose(falling.temperature_at(jnp.int32(step)), expected, rtol=1e-6)
    constant = GumbelSoftmax(temperature=2.0)
    assert falling.temperature_at(None) == constant.temperature_at(jnp.int32(7)) == 2.0
    late = falling.read(WEIGHTS, jnp.arange(T), Call(True, rng, training_step=jnp.int32(100)))
    np.testing.assert_allclose(
        late.read, read(GumbelSoftmax(temperature=0.5), rng).read, rtol=1e-5
    )
    assert late.read.max(-1).mean() > read(constant, rng).read.max(-1).mean() + 0.1


def test_a_gate_scales_what_is_read_and_not_the_weights():
    """beta = sig(query . w + b), over soft weights and over the most probable slot."""
    query, *source = inputs()
    hard = small_config("hard", at_test=Argmax())
    for score in (small_config("bahdanau"), hard):
        plain = build_case(score)
        gated = build_case(small_config("gated", score=score))
        params = {**gated.params, **plain.params}
        found, expected = gated.attend(params, query, *source), plain.attend(
            plain.params, query, *source
        )
        logits = np.asarray(query) @ params["gate_kernel"] + params["gate_bias"]
        gate = 1 / (1 + np.exp(-np.asarray(logits, np.float64)))
        np.testing.assert_allclose(found.context, gate * expected.context, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(found.weights, expected.weights)


def test_sampling_without_a_key_is_said():
    with pytest.raises(ValueError, match="^rng: expected a key, because attention is sampled"):
        case_of(Reinforce()).attend(case_of(Reinforce()).params, *inputs(), call=Call(True))


def model_of(attention, **fields):
    values = {"name": "encoder_decoder", "attention": attention, **fields}
    return build_model(typed(MODELS.config(values["name"]), values, "config.model"), 7, 7)


@pytest.mark.parametrize(
    ("attention", "message"),
    [
        ({"estimator": {"name": "gumbel_softmax", "temperature": 0.0}},
         "estimator.temperature: expected more than 0, found 0.0"),
        ({"estimator": {"name": "gumbel_softmax", "final_temperature": 0.5}},
         "estimator.anneal_steps: expected above 0 beside final_temperature and 0 without, found "
         "0"),
        ({"estimator": {"name": "reinforce", "expectation_share": 1.5}},
         "estimator.expectation_share: expected at most 1, found 1.5"),
        ({"estimator": {"name": "reinforce", "expectation_share": -0.5}},
         "estimator.expectation_share: expected at least 0, found -0.5"),
        ({"score": {"name": "bahdanau", "num_heads": 2}},
         "score.num_heads: expected 1, for one slot is read, found 2"),
        ({"score": {"name": "local_m"}},
         "score.name: expected a score over all slots, found 'local_m'"),
        ({"score": {"name": "multi_head"}},
         "score.name: expected a score over all slots, found 'multi_head'"),
        ({"score": {"name": "coverage_embedding"}},
         "score.name: expected a score of queries and keys alone, found 'coverage_embedding', which"
         " needs source_vocabulary_size and word_dim"),
    ],
)  # fmt: skip
def test_what_cannot_be_sampled_is_one_line(attention, message):
    with pytest.raises(ConfigError) as caught:
        model_of({"name": "hard", **attention})
    assert str(caught.value) == f"config.model.attention.{message}"


HARD = {"name": "hard", "score": {"name": "bahdanau"}}
TRANSFORMER = {"name": "transformer", "num_layers": 2}


@pytest.mark.parametrize(
    ("attention", "fields", "message"),
    [
        (HARD, {"decoder": TRANSFORMER}, "attention.name: .* itself, found 'hard' over 'bahdanau', "
         "which an objective has to teach that sees attention to a source only; decoder.self_"),
        (HARD, {"decoder": {**TRANSFORMER, "self_attention": {"name": "scaled_dot"}},
                "sources": {"source": {"encoder": {"hidden_dim": 64}}}},
         "decoder.num_layers: expected 1 beside attention that an objective .*, found 2"),
        (HARD, {"name": "bidirectional"},
         "attention: expected one that no objective .* forward one's only, found 'hard' over"),
        ({"name": "gated", "score": {"name": "multi_head"}}, {},
         "attention.score.name: expected a single head, found 'multi_head' over 'scaled_dot'"),
    ],
)  # fmt: skip
def test_samples_that_no_objective_would_hear_of_are_one_line(attention, fields, message):
    with pytest.raises(ConfigError, match=rf"^config\.model\.{message}"):
        model_of(attention, **fields)


def test_objective_and_attention_ask_for_one_another():
    soft, sampled = model_of({"name": "bahdanau"}), model_of(HARD)
    predicting = model_of(HARD, predictors={"baseline": {}})
    straight = model_of({**HARD, "estimator": {"name": "straight_through"}})
    both, learnt = {"nll": {}, "reinforce": {}}, {"nll": {}, "reinforce": {"baseline": "learnt"}}
    build_objective(both).check(sampled)
    build_objective(learnt).check(predicting)
    build_objective({"nll": {}}).check(straight)
    for objectives, model, message in (
        (both, soft, "objectives.reinforce: expected config.model.attention.name='hard' with"),
        (both, straight, "objectives.reinforce: expected config.model.attention.name='hard' with"),
        ({"nll": {}}, sampled, "model.attention: expected config.objectives.reinforce beside it"),
        (learnt, sampled, "objectives.reinforce: expected config.model.predictors.baseline beside"),
        (both, predicting, "model.predictors.baseline: expected config.objectives.reinforce besi"),
    ):
        with pytest.raises(ConfigError, match=rf"^config\.{message}") as caught:
            build_objective(objectives).check(model)
        assert "\n" not in str(caught.value)


def test_equal_estimators_make_equal_mechanisms():
    one, other = (build_mechanism(small_config("hard"), 8, 8, 6) for _ in range(2))
    relaxed = dataclasses.replace(small_config("hard"), estimator=GumbelSoftmax())
    assert one == other and one != build_mechanism(relaxed, 8, 8, 6)
    assert MECHANISMS.config("hard")().estimator == Reinforce()
