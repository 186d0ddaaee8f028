"""The symmetric config in small: two models learn to agree."""

import pytest

from attention_jax.training.config import from_config_dict
from attention_jax.training.run import run_experiment
from attention_jax.training.run_directory import read_json
from launch import cli

STEPS = 120


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The results of a run without the bonus and of one with it."""
    found = []
    for weight in (0.0, 4.0):
        config = cli.load_config("configs/cohn2016_symmetric.py:smoke")
        config.training.num_steps = STEPS
        config.objectives.bilingual_symmetry.update(weight=weight, schedule={"start_steps": 40})
        config.evaluation = {"splits": ("test",), "num_heat_maps": 0}
        config.search = {"method": "greedy"}
        workdir = tmp_path_factory.mktemp("symmetric") / "run"
        run_experiment(from_config_dict(config), workdir)
        found.append(read_json(workdir / "results.json")["test"])
    return found


def test_bonus_brings_both_attentions_together(results):
    apart, together = (-metrics["loss/bilingual_symmetry"] for metrics in results)
    print(apart, together)
    assert apart < 0.98 and together > 0.99


def test_both_directions_are_learnt_with_and_without_it(results):
    for metrics in results:
        assert metrics["accuracy"] > 0.98 and metrics["reverse/accuracy"] > 0.98
        assert metrics["bleu"] > 95.0
