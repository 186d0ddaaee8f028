"""What an evaluation writes of the attention of its outputs."""

import dataclasses

import numpy as np
import pytest

from attention_jax.analysis import evaluate
from attention_jax.analysis.evaluate import Evaluation
from attention_jax.analysis.evaluation_request import EvaluationRequest, evaluate_as_asked
from attention_jax.decoding.alignments import pharaoh_line
from tests.training.untrained import taught, untrained_run, write_text


@pytest.fixture(scope="module")
def run_and_task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return untrained_run(folder / "run", *write_text(folder))


@pytest.mark.parametrize(("step", "shift"), [("writes", 0), ("reads", 1)])
def test_alignments_are_of_the_step_that_was_taught(run_and_task, step, shift):
    run, task = run_and_task
    evaluation = Evaluation(taught(run, step), task)
    outputs, found = evaluation.decode("test"), []
    for best, *_ in outputs.found:  # an untrained model attends to the same at all steps
        weights = np.eye(*best.weights.shape) + 0.01
        found.append([dataclasses.replace(best, weights=weights)])
    evaluation.write(dataclasses.replace(outputs, found=found))
    vocabularies = run.source_vocabulary, run.target_vocabulary
    expected = {
        each: [
            pharaoh_line(best, ids, text, *vocabularies, each)
            for (best,), ids, text in zip(
                found, outputs.split.source_ids, outputs.split.sources, strict=True
            )
        ]
        for each in (0, 1)
    }
    assert expected[0] != expected[1]
    assert run.directory.alignments("test").read_text().splitlines() == expected[shift]


def test_what_is_wrong_with_outputs_is_said_whoever_asks(run_and_task, monkeypatch, capsys):
    run, task = run_and_task
    monkeypatch.setattr(evaluate, "output_statistics", lambda *given: {"outputs/empty": 1.0})
    evaluate_as_asked(run, task, EvaluationRequest(split=["test"]))
    said = "test: warning: 100% of the outputs are empty; docs/runs.md#empty-outputs\n"
    assert capsys.readouterr().err == said
    Evaluation(run, task).evaluate("test")
    assert capsys.readouterr().err == said


def test_attention_to_what_is_no_text_is_not_shown(run_and_task):
    """Such as to frames, of which a source's tokens name none."""
    run, task = run_and_task
    assert run.links_tokens and Evaluation(run, task).is_aligning

    class Hearing(type(run.model)):
        begins_from = "speech"

    run = dataclasses.replace(run, model=Hearing(**vars(run.model)))
    assert "alignment" in run.model.provides and not run.links_tokens
    assert not Evaluation(run, task).is_aligning
