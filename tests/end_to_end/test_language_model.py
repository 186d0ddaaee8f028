"""A decoder alone is trained and measured; its outputs are not scored, for it reads no source."""

import json

import pytest

from attention_jax.errors import ConfigError, UserError
from attention_jax.inference.evaluation_request import EvaluationRequest, evaluate_as_asked
from attention_jax.inference.other_runs import OtherRun
from attention_jax.inference.pictures import draw_translations
from attention_jax.inference.run import run_experiment
from attention_jax.inference.trained import load_run, task_of
from attention_jax.inference.translate import Translator
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
    asked = EvaluationRequest(split=["test"])
    run = load_run(tmp_path / "run")
    (printed,) = evaluate_as_asked(run, task_of(run), asked)
    assert "perplexity" in printed and "bleu" not in printed
    assert not (tmp_path / "run" / "predictions.test.txt").exists()
    with pytest.raises(UserError, match="--against: expected a model that reads a source"):
        evaluate_as_asked(run, task_of(run), EvaluationRequest(against=["elsewhere"]))
    with pytest.raises(UserError, match="--against: .* expected a model that reads a source"):
        OtherRun.load("--against", str(tmp_path / "run"))
    translator = Translator(run)
    found = translator.translate(["any"])
    assert len(list(translator.format(found))) == 1
    with pytest.raises(UserError, match="--alignments: expected a model that attends"):
        list(translator.format(found, alignments=True))
    with pytest.raises(UserError, match="--plot: expected lines with attention"):
        draw_translations(run, found, tmp_path / "plot.png")


def test_outputs_of_a_language_model_are_not_validated(tmp_path):
    config = transformer_lm.get_config("smoke")
    config.evaluation.num_validation_examples = 4
    with pytest.raises(ConfigError, match="num_validation_examples: expected 0 for a model that"):
        run_experiment(from_config_dict(config), tmp_path / "run")
