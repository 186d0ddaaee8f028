"""A decoder alone is trained and measured; its outputs are not scored, for it reads no source."""

import json

import pytest

from attention_jax.errors import ConfigError
from attention_jax.inference.run import run_experiment
from attention_jax.training.config import from_config_dict
from configs import transformer_lm


def test_language_model_learns_what_numbers_look_like(tmp_path, capsys):
    config = transformer_lm.get_config("smoke")
    config.training.update({"num_steps": 120, "evaluate_every_steps": 120})
    run_experiment(from_config_dict(config), tmp_path / "run")
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert set(results) == {"validation", "test"}
    assert results["test"]["perplexity"] < 12  # of 14 symbols
    assert "bleu" not in results["test"] and "perplexity" in capsys.readouterr().out
    assert not (tmp_path / "run" / "predictions.test.txt").exists()


def test_outputs_of_a_language_model_are_not_validated(tmp_path):
    config = transformer_lm.get_config("smoke")
    config.evaluation.num_validation_examples = 4
    with pytest.raises(ConfigError, match="num_validation_examples: expected 0 for a model that"):
        run_experiment(from_config_dict(config), tmp_path / "run")
