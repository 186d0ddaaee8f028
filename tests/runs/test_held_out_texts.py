"""A run keeps the text of the user's that was held out, and is evaluated with it."""

import dataclasses

import numpy as np
import pytest

from attention_jax.data.builders.inflections import Config as Inflections
from attention_jax.data.builders.parallel import Config as ParallelConfig
from attention_jax.data.config import SubwordsConfig
from attention_jax.data.field import TARGET, Field
from attention_jax.data.loading import build_task
from attention_jax.errors import RunDirectoryError
from attention_jax.runs.held_out_texts import held_out_data, keep_held_out
from attention_jax.runs.run_directory import RunDirectory
from tests.training.tiny import tiny_config
from tests.training.untrained import write_text


def parallel(folder):
    source, target = write_text(folder)
    return ParallelConfig(
        train_source=source, train_target=target, subwords=SubwordsConfig(kind="words")
    )


def inflections(folder):
    """Inflections whose targets have STEPs, which only an aligner with the training text tells."""
    rows = [f"{stem}\t{stem}ler\tN;PL\n" for stem in ("ev", "at", "kedi", "masa", "yol", "el")]
    (folder / "table.tsv").write_text("".join(rows * 4))
    return Inflections(train_table=str(folder / "table.tsv"), oracle_steps="hmm")


def kept(data, folder):
    config = dataclasses.replace(tiny_config(), data=data)
    directory = RunDirectory(folder / "run")
    task = build_task(data, directory.vocabularies)
    keep_held_out(directory, config, task)
    return directory, config, task


@pytest.mark.parametrize("data", [parallel, inflections])
def test_what_is_read_is_what_was_held_out(tmp_path, data):
    directory, config, task = kept(data(tmp_path), tmp_path)
    found = held_out_data(directory, config)
    assert {*found.splits} == {"validation", "test"}
    for name, split in found.splits.items():
        known = task.split(name)
        assert len(split) and split.fingerprint == known.fingerprint
        assert split.numbers == known.numbers and {*split.extras} == {*known.extras}
        for mine, its in zip(split.target_ids, known.target_ids, strict=True):
            np.testing.assert_array_equal(mine, its)
            assert mine.dtype == its.dtype
    assert (TARGET.name in known.extras) == (data is inflections)


def test_data_that_need_no_files_and_values_that_are_no_text_are_not_copied(tmp_path):
    directory, config, _ = kept(tiny_config().data, tmp_path)
    assert held_out_data(directory, config) is None
    data = parallel(tmp_path)
    config = dataclasses.replace(config, data=data)
    task = build_task(data, directory.vocabularies)
    sound = [np.zeros((3, 2), np.float32)] * len(task.split("test"))
    task = task.with_field("test", Field(name="frames", axes=("S", 2)), sound)
    keep_held_out(directory, config, task)
    assert {*held_out_data(directory, config).splits} == {"validation"}


def test_a_damaged_copy_is_one_line(tmp_path):
    directory, config, _ = kept(parallel(tmp_path), tmp_path)
    path = directory.texts / "test.jsonl"
    path.write_text(path.read_text().replace('"target"', '"goal"', 1))
    with pytest.raises(RunDirectoryError, match="test.jsonl:1: expected a value named 'target'"):
        held_out_data(directory, config)


@pytest.mark.parametrize(
    ("extras", "words"),
    [
        (["{}", '{"target": [5]}'], "test.jsonl:2: expected extras as in the first line, found"),
        (['{"target": [1099511627776]}'] * 2, "test.jsonl:1: expected ids of 32 bits, found other"),
        (['{"\udcff": []}'] * 2, "test.jsonl:1: expected JSON, found something else"),
    ],
)
def test_a_copy_of_a_stranger_is_looked_at(tmp_path, extras, words):
    directory, config, _ = kept(parallel(tmp_path), tmp_path)
    row = '{"source": "a", "target": "b", "references": ["b"], "number": 0, "extras": EXTRAS}\n'
    text = "".join(row.replace("EXTRAS", each) for each in extras)
    (directory.texts / "test.jsonl").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(RunDirectoryError, match=words):
        held_out_data(directory, config)
