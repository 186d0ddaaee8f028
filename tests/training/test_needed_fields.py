"""From word alignments to links between tokens."""

import dataclasses
import tempfile

import numpy as np
import pytest

from attention_jax.data.builders.parallel import Config as ParallelConfig
from attention_jax.data.config import AlignmentConfig
from attention_jax.data.fields.links import inherited
from attention_jax.data.loading import build_task
from attention_jax.data.pipeline import make_eval_batches, make_train_iterator
from attention_jax.errors import DataError
from attention_jax.objectives import build_objective
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.training.needed_fields import training_links, with_needed_fields

SOURCES = ["a small house .", "the house", "a book .", "the small book"]
TARGETS = ["ein kleines haus .", "das haus", "ein buch .", "das kleine buch"]
LINES = ["0-0 1-1 2-2 3-3", "0-0 1-1", "0-0 2-2", "0-0 1-1 2-2"]
RANK = '''
"""The number of spaces before each character of a source."""
import numpy as np
from attention_jax.data.field import Field

def ranks(examples):
    return [np.cumsum([sign == " " for sign in text]) for text in examples.sources]

FIELD = Field(name="rank_of_word", axes=("S",), values=ranks, padding=-1)
'''
GUIDED = build_objective({"nll": {}, "supervised_alignment": {}})


@pytest.fixture
def config(tmp_path, monkeypatch):
    """A data set of four training pairs, in characters on the source side."""
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(tmp_path / "cache"))
    files = {"train_source": SOURCES, "train_target": TARGETS}
    for split in ("validation", "test"):
        files |= {f"{split}_source": ["a house"], f"{split}_target": ["ein haus"]}
    for name, lines in files.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "links").write_text("".join(f"{line}\n" for line in LINES))
    fields = {name: str(tmp_path / name) for name in files}
    alignment = AlignmentConfig(method="file", file=str(tmp_path / "links"))
    config = ParallelConfig(**fields, alignment=alignment, batch_size=4)
    return dataclasses.replace(
        config, subwords=dataclasses.replace(config.subwords, kind="characters")
    )


def links_of(config, tmp_path, objective=GUIDED):
    with tempfile.TemporaryDirectory(dir=tmp_path) as run:
        task = build_task(config, tmp_path / "vocab")
        return task, training_links(task, config, objective, RunDirectory(run))


def test_a_link_of_words_links_all_their_tokens_and_the_ends(config, tmp_path):
    task, links = links_of(config, tmp_path)
    split = task.split("train")
    where = split.sources.index("the house")
    found = {tuple(map(int, pair)) for pair in links[where]}
    # "the house" and "das haus" in characters: a space belongs to no word.
    expected = {(t, s) for t in range(3) for s in range(3)}
    expected |= {(t, s) for t in range(4, 8) for s in range(4, 9)} | {(8, 9)}
    assert found == expected


def test_words_inherit_from_words_whatever_their_number_of_tokens(config, tmp_path):
    """Of `the house`, `das haus` the last word is unaligned; its last letter is beside EOS."""
    lines = [*LINES[:1], "0-0", *LINES[2:]]
    (tmp_path / "links").write_text("".join(f"{line}\n" for line in lines))
    by_word = build_objective({"nll": {}, "supervised_alignment": {"unaligned": "inherit_by_word"}})
    task, links = links_of(config, tmp_path, by_word)
    found = links[task.split("train").sources.index("the house")]
    letters = {(t, s) for t in (0, 1, 2, 4, 5, 6, 7) for s in range(3)}
    assert {tuple(map(int, pair)) for pair in found} == letters | {(8, 9)}


def test_the_right_one_of_two_neighbours_is_inherited_from():
    assert inherited([(4, 1), (5, 1), (7, 3)], 6) == [
        (4, 0), (5, 0), (4, 1), (5, 1), (7, 2), (7, 3), (7, 4), (7, 5),
    ]  # fmt: skip
    assert inherited([], 3) == []


def test_batches_hold_the_links_of_their_rows(config, tmp_path):
    task, links = links_of(config, tmp_path)
    taught = with_needed_fields(task, config, GUIDED, RunDirectory(tmp_path / "run"))
    batch = next(make_train_iterator(taught, config, seed=0))
    assert batch["links"].dtype == bool
    assert batch["links"].shape == (*batch["target"].shape, batch["source"].shape[1])
    for row, index in enumerate(batch["index"]):
        found = np.argwhere(batch["links"][row])
        np.testing.assert_array_equal(found, links[index] if index >= 0 else found[:0])
    assert "links" not in next(make_train_iterator(task, config, seed=0))
    assert "links" not in next(iter(make_eval_batches(taught.split("validation"), config)))
    assert taught.fingerprints == task.fingerprints


def test_links_follow_pairs_that_are_left_out(config, tmp_path):
    whole = links_of(config, tmp_path)
    shorter = dataclasses.replace(config, min_train_source_words=3)
    part = links_of(shorter, tmp_path)
    sources = part[0].split("train").sources
    assert len(sources) == 3
    for source, links in zip(sources, part[1], strict=True):
        same = whole[1][whole[0].split("train").sources.index(source)]
        np.testing.assert_array_equal(links, same)


@pytest.mark.parametrize("method", ["ibm1", "hmm"])
def test_own_aligners_find_the_words(config, tmp_path, method):
    config = dataclasses.replace(
        config,
        alignment=AlignmentConfig(method=method),
        subwords=dataclasses.replace(config.subwords, kind="words"),
    )
    task, links = links_of(config, tmp_path)
    found = dict(zip(task.split("train").sources, links, strict=True))
    pairs = {tuple(map(int, pair)) for pair in found["the house"]}
    assert {(0, 0), (1, 1), (2, 2)} <= pairs


@pytest.mark.parametrize("kind", ["words", "characters", "bpe"])
def test_text_may_have_the_signs_that_vocabularies_use(config, tmp_path, kind):
    """A joiner, the sign of a space, a space without width, and a mark beside its letter."""
    for name, lines in (("train_source", SOURCES), ("train_target", TARGETS)):
        text = "".join(f"{line} a￭b▁c ▁ ￭ x\u200bcafe\u0301\n" for line in lines)
        (tmp_path / name).write_text(text, encoding="utf-8")
    config = dataclasses.replace(
        config,
        alignment=AlignmentConfig(method="hmm"),
        subwords=dataclasses.replace(config.subwords, kind=kind, size=60),
    )
    task, links = links_of(config, tmp_path)
    split = task.split("train")
    for source, target, pairs in zip(split.source_ids, split.target_ids, links, strict=True):
        found = {tuple(map(int, pair)) for pair in pairs}
        assert (len(target) - 1, len(source) - 1) in found and len(found) > 8


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (LINES[:3], "links: expected 4 lines, one for each line of .*train_source, found 3"),
        ([*LINES[:3], "0-0 3-1"], "links:4: expected words of sentences of 3 and 3 words"),
        ([*LINES[:3], "0-0 x"], "links:4: expected links such as 0-1"),
        ([""] * 4, "links: expected links, found none in 4 lines"),
    ],
)
def test_a_file_that_does_not_fit_is_rejected(config, tmp_path, lines, message):
    (tmp_path / "links").write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(DataError, match=message):
        links_of(config, tmp_path)


def test_a_field_that_finds_its_values_is_there_in_every_split(
    config, tmp_path, extension, monkeypatch
):
    """A file of its own says what it is; here how many words are before each token."""
    extension("data/fields", "rank_of_word", RANK)
    objective = build_objective({"nll": {}})
    monkeypatch.setattr(type(objective.terms["nll"]), "fields", ("rank_of_word",), raising=False)
    task = build_task(config, tmp_path / "vocab")
    data = with_needed_fields(task, config, objective, RunDirectory(tmp_path / "run"))
    batch = next(make_train_iterator(data, config, seed=0))
    assert batch["rank_of_word"].shape == batch["source"].shape
    row = int(np.flatnonzero(batch["index"] == data.split("train").sources.index("the house"))[0])
    assert batch["rank_of_word"][row, :10].tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 1, -1]
    assert "rank_of_word" in next(iter(make_eval_batches(data.split("test"), config)))


def test_an_objective_without_need_of_links_looks_for_none(config, tmp_path):
    (tmp_path / "links").unlink()
    task = build_task(config, tmp_path / "vocab")
    directory = RunDirectory(tmp_path / "run")
    assert with_needed_fields(task, config, build_objective({"nll": {}}), directory) is task


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"method": "file"}, "file: expected a path, found ''"),
        ({"method": "hmm", "file": "a"}, "file: expected none with method 'hmm', found 'a'"),
        ({"method": "hmm", "base": 1}, "base: expected only with method 'file', found 1"),
        ({"symmetrization": "union"}, "symmetrization: expected an aligner .* found 'none'"),
    ],
)
def test_fields_without_effect_are_rejected(fields, message):
    with pytest.raises(ValueError, match=message):
        AlignmentConfig(**fields)
