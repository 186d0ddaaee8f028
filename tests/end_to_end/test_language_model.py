"""A decoder alone is trained and measured; its outputs are not scored, for it reads no source."""

import json

import pytest

from attention_jax.analysis.evaluation_request import EvaluationRequest, evaluate_as_asked
from attention_jax.analysis.other_runs import OtherRun
from attention_jax.decoding.translate import Translator
from attention_jax.errors import ConfigError, DataError, UserError
from attention_jax.experiment import run_experiment
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.load import load_run, task_of
from configs import transformer_lm


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The directory of a language model of spelled numbers."""
    config = transformer_lm.get_config("smoke")
    config.data.eval_batch_size = 512
    config.training.update({"num_steps": 120, "evaluate_every_steps": 120})
    path = tmp_path_factory.mktemp("runs") / "run"
    run_experiment(from_config_dict(config), path)
    return path


def test_language_model_learns_what_numbers_look_like(trained, tmp_path):
    results = json.loads((trained / "results.json").read_text())
    assert set(results) == {"validation", "test"}
    assert results["test"]["perplexity"] < 12  # of 14 symbols
    assert "bleu" not in results["test"]
    asked = EvaluationRequest(split=["test"])
    run = load_run(trained)
    (printed,) = evaluate_as_asked(run, task_of(run), asked)
    assert "perplexity" in printed and "bleu" not in printed
    assert not (trained / "predictions.test.txt").exists()
    with pytest.raises(UserError, match="--against: expected a model that reads a source"):
        evaluate_as_asked(run, task_of(run), EvaluationRequest(against=["elsewhere"]))
    with pytest.raises(UserError, match="--against: .* expected a model that reads a source"):
        OtherRun.load("--against", str(trained))
    translator = Translator(run)
    found = translator.translate([""])
    assert len(list(translator.format(found))) == 1
    with pytest.raises(UserError, match="--alignments: expected a model that attends"):
        list(translator.format(found, alignments=True))
    searched = load_run(trained, {"method": "greedy"})
    with pytest.raises(UserError, match="--search: expected no override for a model that reads no"):
        evaluate_as_asked(searched, task_of(run), asked)
    assert "search" not in json.loads((trained / "run.json").read_text())["evaluations"]["test"]


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_texts_go_on_from_their_beginnings(trained, method):
    """Even if a beginning repeats what an output may not."""
    search = {"method": method, "no_repeat_ngram_size": 1}
    translator = Translator(load_run(trained, search))
    begins = ["six five", "", "two", "nine zero eight nine"]
    texts = list(translator.format(translator.translate(begins)))
    for text, begin in zip(texts, begins, strict=True):
        words = begin.split()
        assert text.split()[: len(words)] == words
    assert any(len(text) > len(begin) for text, begin in zip(texts, begins, strict=True))


def test_what_no_text_can_begin_with_is_one_line(trained):
    short = {"max_length_factor": 0.5, "max_length_constant": 1}
    for search, line, message in (
        ({}, "six million", "expected words of the vocabulary, found 'million'"),
        (short, "six five six five", "expected at most 3 tokens with its end, by search.max_len"),
    ):
        with pytest.raises(DataError, match=f"input line 2: {message}"):
            Translator(load_run(trained, search)).translate(["six", line])


def test_outputs_of_a_language_model_are_not_validated(tmp_path):
    config = transformer_lm.get_config("smoke")
    config.evaluation.num_validation_examples = 4
    with pytest.raises(ConfigError, match="num_validation_examples: expected 0 for a model that"):
        run_experiment(from_config_dict(config), tmp_path / "run")
