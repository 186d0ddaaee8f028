import dataclasses
import itertools
import subprocess
import sys

import numpy as np
import pytest

from attention_jax.data.buckets import padded_fraction
from attention_jax.data.builders.multi30k import Config as Multi30kConfig
from attention_jax.data.builders.parallel import Config as ParallelConfig
from attention_jax.data.config import SubwordsConfig
from attention_jax.data.loading import build_task
from attention_jax.data.pipeline import make_train_iterator
from attention_jax.errors import DataError
from attention_jax.runs.hashes import hash_files
from attention_jax.types import SpecialIds

LINES = [
    (f"The {a} {b} dog{'s' * (number % 2)}.", f"Der {b} {a} Hund, {number}!")
    for number, (a, b) in enumerate(
        itertools.product(["big", "small", "very old", "Red"], ["fast", "slow", "shy", "calm"])
    )
] * 4


@pytest.fixture
def parallel(tmp_path):
    """A config of a small corpus; its vocabularies are words."""
    path = tmp_path / "train.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in LINES))
    return ParallelConfig(train_table=str(path), subwords=SubwordsConfig(kind="words"))


def test_unknown_split_is_an_error(parallel, tmp_path):
    with pytest.raises(DataError, match="split: expected one of train, validation, test"):
        build_task(parallel, tmp_path / "vocab").split("dev")


def test_vocabularies_are_kept_and_loaded(parallel, tmp_path):
    first = build_task(parallel, tmp_path / "vocab")
    other = dataclasses.replace(parallel, subwords=SubwordsConfig(kind="characters"))
    loaded = build_task(other, tmp_path / "vocab")
    text = "The big dog."
    assert loaded.source_vocabulary.encode(text) == first.source_vocabulary.encode(text)


def test_vocabularies_of_another_run_are_taken_as_they_are(parallel, tmp_path):
    build_task(parallel, tmp_path / "vocab")
    other = dataclasses.replace(
        parallel, max_train_examples=3, vocabularies=str(tmp_path / "vocab")
    )
    build_task(other, tmp_path / "mine")
    assert hash_files(tmp_path / "mine") == hash_files(tmp_path / "vocab")
    for subwords, message in (
        (SubwordsConfig(kind="bpe"), "subwords.kind: expected 'words', .* found 'bpe'"),
        (SubwordsConfig("words", joint=True), "subwords.joint: expected False, .* found True"),
    ):
        with pytest.raises(DataError, match=message):
            build_task(dataclasses.replace(other, subwords=subwords), tmp_path / "none")
    missing = dataclasses.replace(other, vocabularies=str(tmp_path))
    with pytest.raises(DataError, match="expected the vocabularies of a run, found none"):
        build_task(missing, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_vocabularies_that_cannot_be_written_are_named(parallel, tmp_path):
    (tmp_path / "vocab").write_text("a file")
    with pytest.raises(DataError, match="vocab/source.* cannot be written: "):
        build_task(parallel, tmp_path / "vocab")


def test_vocabularies_see_the_training_side_only(tmp_path, parallel):
    for side, text in (("source", "Unheard-of zebras"), ("target", "Ungesehen ¿")):
        (tmp_path / f"test.{side}").write_text(text + "\n")
    config = dataclasses.replace(
        parallel,
        test_source=str(tmp_path / "test.source"),
        test_target=str(tmp_path / "test.target"),
        subwords=SubwordsConfig(kind="characters"),
    )
    task = build_task(config, tmp_path / "vocab")
    assert task.split("test").sources == ["Unheard-of zebras"]
    assert SpecialIds.UNK in task.split("test").source_ids[0]
    assert SpecialIds.UNK in task.split("test").target_ids[0]
    assert not any(SpecialIds.UNK in ids for ids in task.split("train").target_ids)


@pytest.mark.parametrize("kind", ["bpe", "words", "characters"])
@pytest.mark.parametrize("joint", [False, True])
def test_subwords_decide_the_vocabularies(parallel, tmp_path, kind, joint):
    config = dataclasses.replace(parallel, subwords=SubwordsConfig(kind, 200, joint))
    task = build_task(config, tmp_path / "vocab")
    assert (task.source_vocabulary is task.target_vocabulary) == joint
    assert task.source_vocabulary.kind == kind
    train = task.split("train")
    assert task.source_vocabulary.decode(train.source_ids[0]) == train.sources[0]
    assert task.target_vocabulary.decode(train.target_ids[0]) == train.targets[0]


def test_subwords_size_bounds_the_vocabulary(parallel, tmp_path):
    sizes = []
    for size in (12, 20):
        config = dataclasses.replace(parallel, subwords=SubwordsConfig("words", size))
        sizes.append(build_task(config, tmp_path / str(size)).target_vocabulary.size)
    assert sizes == [12, 20]


def test_lowercase_lowers_sources_targets_and_references(parallel, tmp_path):
    config = dataclasses.replace(parallel, lowercase=True)
    split = build_task(config, tmp_path / "vocab").split("test")
    for texts in (split.sources, split.targets, *split.references):
        assert texts == [text.lower() for text in texts]


@pytest.mark.parametrize("kind", ["bpe", "words", "characters"])
def test_no_source_is_in_two_splits_once_it_is_lowered(tmp_path, kind):
    forms = (str.lower, str.upper, str.title)
    path = tmp_path / "train.tsv"
    path.write_text(
        "".join(f"{forms[n % 3](f'some words {n // 3}')}\tZiel {n}\n" for n in range(600))
    )
    config = ParallelConfig(
        train_table=str(path), lowercase=True, subwords=SubwordsConfig(kind, 1000)
    )
    task = build_task(config, tmp_path / "vocab")
    tokens = [  # ids would be those of unknown ones
        {tuple(task.source_vocabulary.surfaces(source)) for source in split.sources}
        for split in task.splits.values()
    ]
    assert all(not first & second for first, second in itertools.combinations(tokens, 2))


def test_max_train_examples_takes_nested_samples(parallel, tmp_path):
    def sample(size):
        config = dataclasses.replace(parallel, max_train_examples=size)
        task = build_task(config, tmp_path / str(size))
        held_out = len(task.split("validation")) + len(task.split("test"))
        assert len(task.split("train")) == min(size or len(LINES), len(LINES) - held_out)
        return task.split("train").targets

    everything, ten, twenty = sample(0), sample(10), sample(20)
    assert (len(ten), len(twenty)) == (10, 20)
    assert set(ten) <= set(twenty) <= set(everything)
    assert ten != everything[:10]


def test_train_source_words_filter_training_only(parallel, tmp_path):
    config = dataclasses.replace(parallel, min_train_source_words=5)
    whole, filtered = build_task(parallel, tmp_path / "a"), build_task(config, tmp_path / "b")
    assert {len(source.split()) for source in whole.split("train").sources} == {4, 5}
    assert {len(source.split()) for source in filtered.split("train").sources} == {5}
    assert filtered.split("test").sources == whole.split("test").sources
    assert filtered.source_vocabulary.size == whole.source_vocabulary.size
    config = dataclasses.replace(parallel, max_train_source_words=4)
    short = build_task(config, tmp_path / "c").split("train")
    assert {len(source.split()) for source in short.sources} == {4}
    config = dataclasses.replace(parallel, max_train_source_words=1)
    with pytest.raises(DataError, match="expected training sources of 0 to 1 words, found none"):
        build_task(config, tmp_path / "d")


def test_held_out_sizes_are_settings(parallel, tmp_path):
    config = dataclasses.replace(parallel, validation_pairs=4, test_pairs=4)
    task = build_task(config, tmp_path / "vocab")
    assert len(task.split("validation")) == len(task.split("test")) == 4


def test_fingerprint_follows_the_texts(parallel, tmp_path):
    fingerprint = build_task(parallel, tmp_path / "a").fingerprint
    same = dataclasses.replace(parallel, batch_size=7, num_buckets=3)
    assert build_task(same, tmp_path / "a").fingerprint == fingerprint
    for change in ({"lowercase": True}, {"max_train_examples": 30}, {"min_train_source_words": 5}):
        other = build_task(dataclasses.replace(parallel, **change), tmp_path / str(change))
        assert other.fingerprint != fingerprint


def test_real_captions_keep_their_references(real_data, tmp_path):
    config = Multi30kConfig(source_language="de", target_language="en")
    task = build_task(config, tmp_path)
    test = task.split("test")
    assert len(test) == 1000
    assert test.references[0] == ["A man in an orange hat starring at something."]
    assert task.source_vocabulary.size == task.target_vocabulary.size == 8000
    assert all(
        task.target_vocabulary.decode(ids) == text
        for ids, text in zip(
            task.split("train").target_ids, task.split("train").targets, strict=True
        )
    )


def test_real_captions_are_batched_with_little_padding(real_data, tmp_path):
    config = Multi30kConfig(num_buckets=12)
    task = build_task(config, tmp_path)
    iterator = make_train_iterator(task, config, 0)
    assert len(iterator.buckets) == 12
    lengths = np.array([len(ids) for ids in task.split("train").target_ids])
    assert padded_fraction(iterator.buckets, lengths, "target") < 0.085


def test_no_tensorflow_is_imported(tmp_path):
    program = (
        "import sys\n"
        "from attention_jax.data.builders.smoke import Config as SmokeConfig\n"
        "from attention_jax.data.pipeline import make_train_iterator\n"
        "from attention_jax.data.loading import build_task\n"
        "assert 'tensorflow_datasets' not in sys.modules\n"
        f"task = build_task(SmokeConfig(), {str(tmp_path)!r})\n"
        "next(make_train_iterator(task, SmokeConfig(), 0))\n"
        "assert 'tensorflow_datasets' in sys.modules\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
