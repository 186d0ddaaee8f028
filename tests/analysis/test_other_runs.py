"""Other runs are found where the command line says, and read the texts that they can read."""

import dataclasses
import json

import pytest

from attention_jax.analysis import other_runs
from attention_jax.analysis.evaluation_request import (
    EvaluationRequest,
    evaluate_as_asked,
    further_sources,
)
from attention_jax.analysis.given_texts import GivenTexts
from attention_jax.analysis.other_runs import OtherRun
from attention_jax.errors import DataError, UserError
from tests.training.two_sources import two_sources_run


def test_a_run_may_have_the_name_of_a_step(tmp_path, monkeypatch):
    loaded = []

    def load(path, step, moved):
        loaded.append((path, step))
        raise DataError("enough")

    monkeypatch.setattr(other_runs, "load_run", load)
    run = tmp_path / "run@5"
    for place in (run, f"{run}@7", tmp_path / "other@6"):
        run.mkdir(exist_ok=True)
        with pytest.raises(UserError, match="--against: enough"):
            OtherRun.load("--against", str(place))
    assert loaded == [(str(run), None), (str(run), 7), (str(tmp_path / "other"), 6)]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A run that reads two sources, and one with the same data that reads the first alone."""
    folder = tmp_path_factory.mktemp("runs")
    runs = [
        two_sources_run(folder / name, transformer=False, alone=alone)[0]
        for name, alone in (("both", False), ("first", True))
    ]
    return dict(zip(("both", "first"), runs, strict=True))


@pytest.mark.parametrize("shown", ["both", "first"])
def test_each_run_reads_those_of_the_given_sources_that_are_its_own(two, monkeypatch, shown):
    places = {str(run.directory.path): run for run in two.values()}
    monkeypatch.setattr(other_runs, "load_run", lambda path, step, moved: places[path])
    run, [other] = two[shown], [one for name, one in two.items() if name != shown]
    texts = GivenTexts("mine", ["the cat.", "a tree."], ["die Katze.", "eine Baum."],
                       {"second": ["mot1 mot2", "mot3"]})  # fmt: skip
    request = EvaluationRequest(texts=texts, against=[str(other.directory.path)])
    evaluate_as_asked(run, request.data_of(run), request)
    [found] = json.loads((run.directory.path / "evaluations/mine/comparison.mine.json").read_text())
    assert found["sentences"] == 2 and found["against"] == str(other.directory.path)
    assert further_sources(request.against, None) == {*other.further_sources}


def test_a_source_that_another_run_reads_may_be_given(two, tmp_path):
    lines = {"source": "the cat.", "target": "die Katze.", "second": "mot1"}
    paths = {name: tmp_path / name for name in lines}
    for name, path in paths.items():
        path.write_text(f"{lines[name]}\n")
    given = [str(paths["source"]), f"second={paths['second']}"]
    first = two["first"]
    texts = GivenTexts.read(first, given, str(paths["target"]), None, {"second"})
    assert texts.further == {"second": ["mot1"]} and not texts.read_by(first).further
    turned = texts.swapped().read_by(two["both"])
    assert turned.sources == ["die Katze."] and turned.further == texts.further
    with pytest.raises(UserError, match="--source: expected one file, found .*, second="):
        GivenTexts.read(first, given, str(paths["target"]))
    with pytest.raises(DataError, match="further sources: expected second, found none"):
        dataclasses.replace(texts, further={}).read_by(two["both"]).data(two["both"])


def test_runs_that_lowercase_their_sources_are_compared(two):
    """By their references, to the letter; sources are of the same lines."""
    run = two["first"]
    texts = GivenTexts("mine", ["The cat."], ["die Katze."])
    task = texts.data(run)
    split = dataclasses.replace(task.split("mine"), sources=["the cat."])
    other = OtherRun("--against", "x", run, dataclasses.replace(task, splits={"mine": split}))
    assert other.same_split(task.split("mine")) is split
    split = dataclasses.replace(split, references=[["die katze."]])
    other = OtherRun("--against", "x", run, dataclasses.replace(task, splits={"mine": split}))
    with pytest.raises(UserError, match="--against: expected the references 'die Katze.'"):
        other.same_split(task.split("mine"))
