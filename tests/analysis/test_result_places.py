"""Results of another search and of another text have folders of their own."""

import dataclasses

import pytest

from attention_jax.analysis.evaluate import Evaluation
from attention_jax.analysis.given_texts import GivenTexts
from attention_jax.analysis.result_places import placed
from attention_jax.data.builders.inflections import Config as Inflections
from attention_jax.errors import DataError, UserError
from attention_jax.runs.config import to_plain
from attention_jax.runs.run_inputs import record_inputs
from tests.training.untrained import untrained_run, write_text


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """A run as if it had been trained, and its data."""
    folder = tmp_path_factory.mktemp("placed")
    run, task = untrained_run(folder / "run", *write_text(folder))
    run.directory.write_config(to_plain(run.config))
    record_inputs(run.directory, task)
    return run, task


def searched(run, **fields):
    search = dataclasses.replace(run.config.search, **fields)
    return dataclasses.replace(run, config=dataclasses.replace(run.config, search=search))


def place(run, *arguments):
    directory = placed(run, *arguments).directory
    return str(directory.outputs.relative_to(directory.path))


def test_the_search_of_the_config_has_the_run_itself(known):
    run, task = known
    assert placed(run, [task.split("test")]) is run


def test_another_search_is_named_by_what_differs(known):
    run, task = known
    splits = [task.split("test")]
    found = place(searched(run, beam_size=10, method="beam"), splits)
    assert found == "evaluations/method=beam,beam_size=10"
    unknown = [{"replace_unknown": True, "unknown_dictionary": path} for path in ("a/b", "a_b")]
    both = [place(searched(run, **fields), splits) for fields in unknown]
    start = "evaluations/replace_unknown=True,unknown_dictionary=a_b"
    assert both[0].startswith(f"{start}_") and both[1] == start
    more = placed(searched(run, beam_size=10), splits, "news")
    assert more.directory.outputs.name == "news,beam_size=10"


def test_another_test_text_is_named_too(known):
    run, task = known
    split = task.split("test").select(range(3))
    assert place(run, [split]) == f"evaluations/test_{split.fingerprint[:8]}"
    with pytest.raises(UserError, match="--name: expected another than 'news'"):
        for name in ("test", "train"):
            one = dataclasses.replace(task.split(name).select([len(name)]), name="news")
            its = placed(run, [one], "news")
            its.directory.record_evaluation("news", {"text": one.fingerprint})


def test_given_texts_are_evaluated_as_splits_are(known):
    run, task = known
    split = task.split("test")
    texts = GivenTexts("paper", split.sources, split.targets)
    data = texts.data(run)
    assert data.split("paper").references == split.references
    its = placed(run, [data.split("paper")], "paper")
    found = Evaluation(its, data).evaluate("paper")
    expected = Evaluation(searched_elsewhere(run), task).evaluate("test")
    assert found["bleu"] == expected["bleu"] and found["nll"] == pytest.approx(expected["nll"])
    assert texts.swapped().targets == split.sources


def searched_elsewhere(run):
    return dataclasses.replace(run, directory=run.directory.evaluation("expected"))


def test_targets_that_texts_do_not_tell_are_refused(known):
    run, _ = known
    data = Inflections(train_table="table.tsv", oracle_steps="hmm")
    config = dataclasses.replace(run.config, data=data)
    with pytest.raises(DataError, match="--target: expected a run whose targets are texts"):
        GivenTexts("news", ["a"], ["b"]).data(dataclasses.replace(run, config=config))
