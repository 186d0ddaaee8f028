"""Training and evaluation steps of a linear model against NumPy float64."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.devices import pad_rows
from attention_jax.objectives import Objective, add_pairs, nll
from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.types import Call, ModelOutput
from attention_jax.updates.averaging import MovingAverage, NoAveraging
from attention_jax.updates.decays import Constant
from attention_jax.updates.optimizers import SGD, Adam, build_optimizer
from attention_jax.updates.plateau import Plateau
from attention_jax.updates.schedules import build_schedule
from attention_jax.updates.state import start_state
from attention_jax.updates.step import make_eval_step, make_train_step
from tests.training.linear_model import LinearModel, loss_and_gradient, random_batch

RNG = jax.random.key(7)
PLAIN_SGD = SGD(learning_rate=0.5, clip_norm=0.0)


class Trainer:
    """A train step with all that it was made from; `trainer_of` keeps one of each kind."""

    def __init__(
        self,
        *,
        model=LinearModel(),
        nll=nll.Term(),
        optimizer=PLAIN_SGD,
        schedule=Constant(),
        averaging=NoAveraging(),
        accumulate_steps=1,
    ):
        self.model, self.objective = model, Objective({"nll": nll})
        transformation = build_optimizer(optimizer)
        self.start = start_state(model, transformation, jax.random.key(0), averaging=averaging)
        self.step = jax.jit(
            make_train_step(
                model,
                self.objective,
                transformation,
                build_schedule(
                    schedule, optimizer.learning_rate, steps_per_epoch=10, total_steps=100
                ),
                averaging=averaging,
                accumulate_steps=accumulate_steps,
            )
        )

    def run(self, *batches, state=None):
        """Returns the last state and the summary of the last step."""
        state = self.start if state is None else state
        for batch in batches:
            state, metrics = self.step(state, batch, RNG)
        return state, self.objective.summary(add_pairs([metrics]))


trainer_of = functools.cache(Trainer)  # compiling takes longer than all else here


def assert_close(tree, expected, rtol=1e-5, atol=1e-6):
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=rtol, atol=atol), tree, expected
    )


def assert_equal(tree, expected):
    jax.tree.map(np.testing.assert_array_equal, tree, expected)


class Exploding(LinearModel):
    """Adds nothing to the logits, but multiplies it by a column of the batch."""

    def apply(self, params, batch, call=Call()):
        output = super().apply(params, batch, call)
        bias = params["decoder"]["bias"]
        nothing = bias - jax.lax.stop_gradient(bias)
        logits = output.predictions.logits + batch["factor"][:, None, None] * nothing
        return ModelOutput(SoftmaxPredictions(logits), None)


def exploding_batch(last_factor):
    batch = random_batch()
    factor = np.zeros(batch["index"].shape, np.float32)
    factor[-1] = last_factor
    return {**batch, "factor": factor}


@pytest.mark.parametrize("reduction", ["per_token", "per_sentence"])
def test_train_step_matches_numpy(reduction):
    trainer = trainer_of(nll=nll.Term(weight=2.0, reduction=reduction))
    batch = random_batch(rows=8, filler=3)
    count = batch["target_mask"].sum() if reduction == "per_token" else 5
    params = trainer.start.params
    loss, gradient = loss_and_gradient(params, batch, 2.0 / count)
    state, summary = trainer.run(batch)
    expected = jax.tree.map(lambda p, g: p - 0.5 * g, params, gradient)
    assert_close(state.params, expected)
    np.testing.assert_allclose(summary["loss"], loss, rtol=1e-6)
    norm = np.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(gradient)))
    np.testing.assert_allclose(summary["gradient_norm"], norm, rtol=1e-6)
    assert summary["learning_rate"] == 0.5
    assert summary["skipped"] == 0.0
    assert (state.step, state.skipped) == (1, 0)


def test_clipping_divides_by_the_batch_first():
    """The summed gradient [600, 800] of 128 sentences becomes [3, 4] under a norm of 5."""

    class Sum(nll.Term):
        def total(self, output, batch):
            return (output.predictions.logits[:, 0] @ jnp.array([600 / 128, 800 / 128])).sum()

    class Pair(LinearModel):
        def init(self, rng):
            return {"w": jnp.zeros(2)}

        def apply(self, params, batch, call=Call()):
            return ModelOutput(SoftmaxPredictions(jnp.broadcast_to(params["w"], (128, 1, 2))), None)

    trainer = Trainer(
        model=Pair(),
        nll=Sum(reduction="per_sentence"),
        optimizer=SGD(learning_rate=1.0, clip_norm=5.0),
    )
    batch = {"target": np.zeros((128, 1), np.int32), "target_mask": np.ones((128, 1), bool)}
    state, summary = trainer.run(batch)
    np.testing.assert_allclose(summary["gradient_norm"], 7.8125, rtol=1e-6)
    np.testing.assert_allclose(state.params["w"], [-3.0, -4.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("reduction", "parts"), [("per_token", 2), ("per_token", 8), ("per_sentence", 4)]
)
def test_accumulation_gives_the_gradient_of_the_whole_batch(reduction, parts):
    term = nll.Term(label_smoothing=0.1, reduction=reduction)
    batch = random_batch(rows=8, filler=3)  # so that some parts hold filler rows only
    whole, whole_summary = trainer_of(nll=term).run(batch, batch)
    split, split_summary = trainer_of(nll=term, accumulate_steps=parts).run(batch, batch)
    assert_close(split.params, whole.params, rtol=1e-5, atol=1e-7)
    assert split_summary.keys() == whole_summary.keys()
    for name, value in whole_summary.items():
        np.testing.assert_allclose(split_summary[name], value, rtol=1e-5)


@pytest.mark.parametrize("reduction", ["per_token", "per_sentence"])
def test_accumulation_of_padded_rows_is_that_of_the_rows_alone(reduction):
    term, batch = nll.Term(reduction=reduction), random_batch(rows=8)
    whole, whole_summary = trainer_of(nll=term).run(batch)
    split, split_summary = trainer_of(nll=term, accumulate_steps=3).run(pad_rows(batch, 3))
    assert_close(split.params, whole.params, rtol=1e-6, atol=1e-6)
    assert split_summary == pytest.approx(whole_summary, rel=1e-6)


def test_accumulation_needs_padded_rows():
    with pytest.raises(ValueError, match="a multiple of 3 rows, one for each part, found 8"):
        trainer_of(accumulate_steps=3).run(random_batch(rows=8))


def test_accumulation_draws_other_dropout_for_every_part():
    batch = {name: np.repeat(leaf[:1], 2, axis=0) for name, leaf in random_batch().items()}
    model = LinearModel(dropout=0.5)
    split, _ = trainer_of(model=model, accumulate_steps=2).run(batch)
    one, _ = trainer_of(model=model).run({name: leaf[:1] for name, leaf in batch.items()})
    # Had both parts the same dropout, two equal rows would count as one.
    assert np.abs(split.params["output"] - one.params["output"]).max() > 1e-3


def test_dropout_depends_on_step_and_key_alone():
    trainer = trainer_of(model=LinearModel(dropout=0.5), optimizer=SGD(learning_rate=0.0))
    batch = random_batch()
    first, at_first = trainer.run(batch)
    _, again = trainer.run(batch)
    _, at_second = trainer.run(batch, state=first)
    assert at_first == again
    assert at_first["nll"] != at_second["nll"]
    _, other_key = trainer.step(trainer.start, batch, jax.random.key(8))
    assert float(other_key["nll"][0] / other_key["nll"][1]) != pytest.approx(at_first["nll"])


@pytest.mark.parametrize(
    ("factor", "accumulate_steps"),
    [(np.nan, 1), (np.nan, 2), (3e38, 1)],  # with the last, the loss is finite
)
def test_update_that_is_not_finite_changes_no_bit(factor, accumulate_steps):
    trainer = trainer_of(
        model=Exploding(),
        optimizer=Adam(),
        averaging=MovingAverage(),
        accumulate_steps=accumulate_steps,
    )
    good, bad = exploding_batch(0.0), exploding_batch(factor)
    before, _ = trainer.run(good)
    state, summary = trainer.run(bad, bad, state=before)
    for name in ("params", "optimizer", "average", "plateau"):
        assert_equal(getattr(state, name), getattr(before, name))
    assert (state.step, state.skipped, state.skipped_in_a_row) == (3, 2, 2)
    assert summary == {"skipped": 1.0}
    after, summary = trainer.run(good, state=state)
    assert (after.step, after.skipped, after.skipped_in_a_row) == (4, 2, 0)
    assert summary["skipped"] == 0.0
    assert np.abs(after.params["output"] - state.params["output"]).max() > 1e-5


def test_loss_that_is_not_finite_skips_the_update_whatever_the_gradient():
    class Infinite(nll.Term):
        def total(self, output, batch):
            return super().total(output, batch) + jnp.inf

    trainer = Trainer(nll=Infinite())
    state, summary = trainer.run(random_batch())
    assert_equal(state.params, trainer.start.params)
    assert summary == {"skipped": 1.0}


def test_metrics_of_skipped_steps_count_nothing():
    trainer = trainer_of(model=Exploding())
    good, bad = exploding_batch(0.0), exploding_batch(np.nan)
    _, of_good = trainer.step(trainer.start, good, RNG)
    _, of_bad = trainer.step(trainer.start, bad, RNG)
    both = trainer.objective.summary(add_pairs([of_good, of_bad]))
    alone = trainer.objective.summary(add_pairs([of_good]))
    assert both == {**alone, "skipped": 0.5}


def test_moving_average_follows_the_parameters():
    trainer = trainer_of(averaging=MovingAverage(decay=0.2))
    batch = random_batch()
    first, _ = trainer.run(batch)
    expected = jax.tree.map(
        lambda old, new: 0.1 * np.float64(old) + 0.9 * np.float64(new),
        trainer.start.params,
        first.params,
    )
    assert_close(first.average, expected)


def test_plateau_scales_the_learning_rate():
    trainer = trainer_of(schedule=Plateau())
    state = trainer.start
    scaled = dataclasses.replace(
        state, plateau=dataclasses.replace(state.plateau, scale=jnp.float32(0.25))
    )
    batch = random_batch()
    full, _ = trainer.run(batch)
    quarter, summary = trainer.run(batch, state=scaled)
    assert summary["learning_rate"] == 0.125
    step = jax.tree.map(lambda new, old: new - old, full.params, state.params)
    small = jax.tree.map(lambda new, old: new - old, quarter.params, state.params)
    assert_close(small, jax.tree.map(lambda leaf: leaf / 4, step))


def test_training_learns_in_mixed_precision_with_float32_state():
    trainer = trainer_of(
        model=LinearModel(dtype=jnp.bfloat16),
        optimizer=Adam(learning_rate=0.05),
        averaging=MovingAverage(),
        accumulate_steps=2,
    )
    batch = random_batch(rows=4)
    _, first = trainer.run(batch)
    state, last = trainer.run(*[batch] * 60)
    assert last["loss"] < 0.5 * first["loss"]
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(state)} == {"float32", "int32"}
    _, metrics = trainer.step(state, batch, RNG)
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(metrics)} == {"float32"}


def test_training_twice_gives_the_same_bits():
    batches = [random_batch(seed) for seed in range(3)]
    first, _ = Trainer(model=LinearModel(dropout=0.3), optimizer=Adam()).run(*batches)
    second, _ = Trainer(model=LinearModel(dropout=0.3), optimizer=Adam()).run(*batches)
    assert_equal(first, second)


def test_train_step_compiles_once():
    trainer = trainer_of(optimizer=Adam(), averaging=MovingAverage())
    trainer.run(*[random_batch(seed) for seed in range(4)])
    assert trainer.step._cache_size() == 1


def test_eval_step_measures_without_dropout_and_label_smoothing():
    trainer = trainer_of(model=LinearModel(dropout=0.5), nll=nll.Term(label_smoothing=0.2))
    batch = random_batch(rows=8, filler=2)
    params = trainer.start.params
    eval_step = jax.jit(make_eval_step(trainer.model, trainer.objective))
    summary = trainer.objective.summary(add_pairs([eval_step(params, batch)]))
    total, _ = loss_and_gradient(params, batch)
    per_token = total / batch["target_mask"].sum()
    np.testing.assert_allclose(summary["nll"], per_token, rtol=1e-6)
    np.testing.assert_allclose(summary["nll_per_sentence"], total / 6, rtol=1e-6)
    np.testing.assert_allclose(summary["perplexity"], np.exp(per_token), rtol=1e-6)
    assert abs(summary["loss"] - summary["nll"]) > 1e-2


@pytest.mark.parametrize("averaging", [NoAveraging(), MovingAverage()])
def test_with_x64_a_step_keeps_the_types_of_its_state(averaging):
    """All floats are float64: parameters, their average, the optimiser's state and the norms."""
    model, adam, batch = LinearModel(dtype=jnp.float64), build_optimizer(Adam()), random_batch()
    with jax.enable_x64(True):
        schedule = build_schedule(Plateau(), 1e-3, steps_per_epoch=10, total_steps=100)
        step = make_train_step(
            model, Objective({"nll": nll.Term()}), adam, schedule, averaging=averaging,
            accumulate_steps=2, max_gradient_ratio=4.0,
        )  # fmt: skip
        start = functools.partial(start_state, averaging=averaging, max_gradient_ratio=4.0)
        state = jax.eval_shape(functools.partial(start, model, adam), RNG)
        types = jax.tree.map(lambda leaf: leaf.dtype, state)
        assert {kind.name for kind in jax.tree.leaves(types)} == {"float64", "int32"}
        new, metrics = jax.eval_shape(step, state, batch, RNG)
        assert jax.tree.map(lambda leaf: leaf.dtype, new) == types
        assert {leaf.dtype.name for leaf in jax.tree.leaves(metrics)} == {"float64"}
