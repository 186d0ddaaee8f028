import pytest

from attention_jax.data.builders.inflections import Config
from attention_jax.data.decoded import DecodedSplit
from attention_jax.data.loading import build_task
from attention_jax.data.tasks import inflect
from attention_jax.errors import DataError
from attention_jax.runs.results import format_results
from attention_jax.runs.run_directory import RunDirectory, read_json

CONFIG = Config(train_table="x")


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inflections")
    rows = [f"{stem}\t{stem}{end}\t{tags}\n" for stem in ("ev", "el", "göz")
            for end, tags in (("ler", "N;PL"), ("e", "N;DAT"), ("", "N;SG"))]
    (folder / "train.tsv").write_text("".join(rows))
    table = str(folder / "train.tsv")
    config = Config(train_table=table, validation_table=table, test_table=table, tags="apart")
    return build_task(config, folder / "vocab")


def outputs(split):
    return [text if text != "gözler" else "gözlar" for text in split.targets]


def test_scores_are_of_forms_and_details_of_tags(task):
    split = task.split("test")
    scores = inflect.scores(split, outputs(split), CONFIG)
    assert scores == {"exact_match": pytest.approx(800 / 9), "edit_distance": pytest.approx(1 / 9)}
    details = inflect.tag_scores(DecodedSplit(split, CONFIG, outputs(split)))
    assert details["exact_match_tag_N"] == pytest.approx(800 / 9)
    assert details["exact_match_tag_PL"] == pytest.approx(200 / 3)
    assert details["exact_match_tag_PL_words"] == 3 and details["exact_match_tag_SG"] == 100.0
    for name, (rows, score) in inflect.statistics(split, outputs(split), CONFIG).items():
        assert score(rows.sum(axis=0)) == pytest.approx(scores[name])
    assert {metric.name for metric in inflect.TASK.metrics} == set(scores)


def test_a_table_by_tag_is_shown_below_the_results(task, tmp_path):
    split, directory = task.split("test"), RunDirectory(tmp_path)
    scores = inflect.scores(split, outputs(split), CONFIG)
    scores |= inflect.tag_scores(DecodedSplit(split, CONFIG, outputs(split)))
    directory.add_results("test", scores)
    assert read_json(directory.results)["test"]["exact_match_tag_DAT_words"] == 3
    first, *lines, _ = format_results(
        directory, inflect.TASK.shown, None, inflect.TASK.table
    ).splitlines()
    assert first == "test        exact_match 88.89  edit_distance 0.11"
    assert [line.split() for line in lines] == [
        ["tag", "words", "exact_match"], ["N", "9", "88.89"], ["DAT", "3", "100.00"],
        ["PL", "3", "66.67"], ["SG", "3", "100.00"],
    ]  # fmt: skip
    assert inflect.table({"exact_match": 1.0}) == []  # of a validation


def test_a_source_of_the_user_needs_tags(task):
    prepare = inflect.TASK.prepare
    assert prepare(" ev\tN;PL\n", CONFIG) == "ev\tN;PL"
    assert prepare("\n", CONFIG) == "" and prepare("evler\n", CONFIG, is_source=False) == "evler"
    with pytest.raises(DataError, match="source: expected 2 columns .*, found 1"):
        prepare("ev\n", CONFIG)


def test_tags_that_are_apart_are_a_field(task):
    split = task.with_fields(["tags", "tags_mask"]).split("train")
    vocabulary = split.source_vocabulary
    assert vocabulary.tokens(split.columns["tags"][0]) == [";N", ";PL"]
    assert vocabulary.decode(split.source_ids[0]) == "ev"
