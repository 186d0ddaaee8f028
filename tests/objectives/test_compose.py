"""Objectives found by name, weighted and summed."""

import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

import attention_jax.objectives
from attention_jax.configuration import plain, typed
from attention_jax.errors import ConfigError, PartError
from attention_jax.models import MODELS, build_model
from attention_jax.objectives import add_pairs, build_objective
from attention_jax.objectives.compose import OBJECTIVES
from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.types import ModelOutput

# An objective that punishes every real sentence by its `height`.
TOWER = """
import dataclasses
import jax.numpy as jnp
from attention_jax.configuration import setting
from attention_jax.objectives.schedule import WeightSchedule

@dataclasses.dataclass(frozen=True)
class Term:
    weight: float = setting(1.0)
    schedule: WeightSchedule = dataclasses.field(default_factory=WeightSchedule)
    height: float = setting(1.0)

    def count(self, batch):
        return jnp.sum(batch["target_mask"].any(-1), dtype=jnp.float32)

    def total(self, output, batch):
        return self.height * self.count(batch)
"""


@pytest.fixture
def tower(tmp_path, monkeypatch):
    (tmp_path / "tower.py").write_text(TOWER)
    path = [*attention_jax.objectives.__path__, str(tmp_path)]
    monkeypatch.setattr(attention_jax.objectives, "__path__", path)


def example(rows=6, seed=0):
    draw = np.random.default_rng(seed)
    lengths = draw.integers(0, 5, rows)
    batch = {
        "target": draw.integers(0, 5, (rows, 4)).astype(np.int32),
        "target_mask": np.arange(4) < lengths[:, None],
    }
    return draw.normal(size=(rows, 4, 5)).astype(np.float32), batch


def evaluate(objective, logits, batch, step=None, counts=None):
    step = None if step is None else jnp.int32(step)
    return objective(
        ModelOutput(SoftmaxPredictions(jnp.asarray(logits)), None), batch, step, counts
    )


def test_names_are_the_files_with_a_term(tower):
    assert {"nll", "tower"} <= set(OBJECTIVES.names())
    assert not {"compose", "metrics", "__init__"} & set(OBJECTIVES.names())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"nl": {}}, "config.objectives.nl: no such field; did you mean 'nll'?"),
        ({"metrics": {}}, "config.objectives.metrics: no such field; expected one of"),
        ({"compose": {}}, "config.objectives.compose: no such field; expected one of"),
        ({"../nll": {}}, "no such field"),
        ({"nll": {"wieght": 1.0}}, "config.objectives.nll.wieght: no such field; did you mean"),
        ({"nll": {"label_smoothing": 1.0}}, "label_smoothing: expected less than 1, found 1.0"),
        ({"nll": 1.0}, "config.objectives.nll: expected a group of fields, found 1.0"),
        ({}, "config.objectives: expected at least one of"),
        ("nll", "config.objectives: expected a group of fields, found 'nll'"),
    ],
)
def test_build_objective_names_the_mistake(config, message):
    with pytest.raises(ConfigError) as caught:
        build_objective(config)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_build_objective_reads_config_dicts_and_its_own_terms():
    objective = build_objective(ConfigDict({"nll": {"label_smoothing": 0.1}}))
    assert objective.terms["nll"].label_smoothing == 0.1
    assert build_objective(objective.terms) == objective
    assert build_objective(plain(objective.terms)) == objective


def test_objective_is_the_weighted_sum_of_its_terms(tower):
    logits, batch = example()
    nll, _ = evaluate(build_objective({"nll": {}}), logits, batch)
    objective = build_objective({"nll": {"weight": 2.0}, "tower": {"weight": 0.5, "height": 3.0}})
    loss, metrics = evaluate(objective, logits, batch, step=0)
    np.testing.assert_allclose(loss, 2.0 * nll + 0.5 * 3.0, rtol=1e-6)
    assert {"loss/nll", "loss/tower", "nll", "accuracy", "nll_per_sentence"} == set(metrics)


@pytest.mark.parametrize("method", ["total", "count"])
@pytest.mark.parametrize(
    ("returned", "found"),
    [(jnp.ones(3), r"an array of shape \(3,\)"), ((1.0, 2.0), "tuple"), (None, "NoneType")],
)
def test_a_term_that_returns_no_number_is_named_with_its_file(
    tower, monkeypatch, method, returned, found
):
    objective = build_objective({"tower": {}})
    monkeypatch.setattr(OBJECTIVES.config("tower"), method, lambda *_: returned)
    message = rf"tower\.py: expected Term\.{method} to return one number, .* found {found}$"
    with pytest.raises(PartError, match=message):
        evaluate(objective, *example())


def test_a_scheduled_weight_is_used_and_reported_in_training_only(tower):
    logits, batch = example()
    nll, _ = evaluate(build_objective({"nll": {}}), logits, batch)
    schedule = {"start_steps": 2, "warmup_steps": 4}
    objective = build_objective({"nll": {}, "tower": {"weight": 8.0, "schedule": schedule}})
    for step, weight in ((0, 0.0), (1, 0.0), (2, 2.0), (3, 4.0), (9, 8.0)):
        loss, metrics = evaluate(objective, logits, batch, step)
        np.testing.assert_allclose(loss, nll + weight, rtol=1e-6)
        summary = objective.summary(add_pairs([metrics]))
        assert summary["weight/tower"] == weight
        np.testing.assert_allclose(summary["loss"], loss, rtol=1e-6)
    loss, metrics = evaluate(objective, logits, batch)
    np.testing.assert_allclose(loss, nll + 8.0, rtol=1e-6)
    assert "weight/tower" not in metrics


def test_terms_that_need_an_alignment_reject_models_without():
    objective = build_objective({"nll": {}, "coverage_loss": {}})
    aligning, blind = (
        build_model(typed(MODELS.config("encoder_decoder"), {"attention": {"name": name}}), 9, 9)
        for name in ("bahdanau", "none")
    )
    objective.check(aligning)
    with pytest.raises(ConfigError, match="config.objectives.coverage_loss: expected a model that"):
        objective.check(blind)


@pytest.mark.parametrize(
    ("objectives", "model", "message"),
    [
        (
            {"nll": {}, "final_coverage": {}},
            {"attention": {"name": "bahdanau"}},
            "config.objectives.final_coverage: expected "
            "config.model.attention.name='coverage_embedding' beside it, found a model without",
        ),
        (
            {"nll": {}, "global_fertility": {}},
            {},
            "config.objectives.global_fertility: expected config.model.predictors.fertility "
            "beside it, found a model without",
        ),
        (
            {"nll": {}, "coverage_loss": {}},
            {"predictors": {"fertility": {"hidden_dim": 4}}},
            "config.model.predictors.fertility: expected config.objectives.global_fertility "
            "beside it, found nll, coverage_loss",
        ),
        (
            {"nll": {}, "global_fertility": {}},
            {"predictors": {"fertility": {}}, "attention": {"name": "none"}},
            "config.objectives.global_fertility: expected a model that attends to source "
            "positions (config.model.attention), found a model without",
        ),
        ({"nll": {}}, {"attention": {"name": "coverage_embedding"}}, None),
        ({"nll": {}, "final_coverage": {}}, {"attention": {"name": "coverage_embedding"}}, None),
        (
            {"nll": {}, "global_fertility": {}},
            {"predictors": {"fertility": {"hidden_dim": 4}}},
            None,
        ),
    ],
)
def test_terms_and_parts_of_the_model_must_fit(objectives, model, message):
    model = build_model(typed(MODELS.config("encoder_decoder"), model), 9, 9)
    if message is None:
        return build_objective(objectives).check(model)
    with pytest.raises(ConfigError) as caught:
        build_objective(objectives).check(model)
    assert str(caught.value) == message


def test_losses_of_parts_add_up_to_that_of_the_whole(tower):
    logits, batch = example(rows=9)
    objective = build_objective(
        {"nll": {"label_smoothing": 0.1, "reduction": "per_sentence"}, "tower": {}}
    )
    whole, _ = evaluate(objective, logits, batch)
    counts = objective.counts(batch)
    parts = [
        evaluate(objective, logits[rows], {k: v[rows] for k, v in batch.items()}, counts=counts)[0]
        for rows in (slice(0, 1), slice(1, 5), slice(5, 9))
    ]
    np.testing.assert_allclose(sum(parts), whole, rtol=1e-6)


def test_summary_of_batches_is_that_of_the_whole(tower):
    logits, batch = example(rows=9)
    objective = build_objective({"nll": {"weight": 0.7, "label_smoothing": 0.2}, "tower": {}})
    loss, metrics = evaluate(objective, logits, batch)
    parts = [
        evaluate(objective, logits[rows], {k: v[rows] for k, v in batch.items()})[1]
        for rows in (slice(0, 1), slice(1, 5), slice(5, 9))
    ]
    summary = objective.summary(add_pairs(parts))
    np.testing.assert_allclose(summary["loss"], loss, rtol=1e-6)
    np.testing.assert_allclose(summary["perplexity"], np.exp(summary["nll"]), rtol=1e-12)
    whole = objective.summary(add_pairs([metrics]))
    for name in whole:
        np.testing.assert_allclose(summary[name], whole[name], rtol=1e-6)


def test_batch_of_filler_rows_has_no_loss_and_no_summary():
    logits, batch = example()
    batch["target_mask"] = np.zeros_like(batch["target_mask"])
    objective = build_objective({"nll": {"label_smoothing": 0.1}})
    loss, metrics = evaluate(objective, logits, batch)
    assert loss == 0.0
    assert objective.summary(add_pairs([metrics])) == {}
