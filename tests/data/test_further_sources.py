"""Further sources: texts beside the source of each example, from files to batches."""

import dataclasses
import gzip

import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.data.builders.blocks import BLOCK_EXAMPLES, ManySided, from_blocks, to_blocks
from attention_jax.data.builders.multi30k import Config as Multi30kConfig
from attention_jax.data.builders.multi30k import multi30k_dataset_builder as multi30k
from attention_jax.data.builders.parallel import Config as ParallelConfig
from attention_jax.data.builders.parallel import FurtherFiles
from attention_jax.data.builders.parallel import parallel_dataset_builder as builder
from attention_jax.data.builders.smoke import Config as SmokeConfig
from attention_jax.data.builders.smoke import half
from attention_jax.data.examples import Inputs
from attention_jax.data.loading import build_task
from attention_jax.data.pipeline import make_eval_batches, make_train_iterator
from attention_jax.data.task import find_task
from attention_jax.decoding.output_statistics import output_statistics
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.errors import ConfigError, DataError
from attention_jax.search import SearchConfig
from attention_jax.types import SpecialIds

WORDS = {"kind": "words", "size": 100}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A hundred aligned lines in English, German and French, some of these empty."""
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(tmp_path / "cache"))
    texts = {
        "en": [f"en{n % 10} number {n}" for n in range(100)],
        "de": [f"de{n % 10}" for n in range(100)],
        "fr": ["" if n % 10 == 3 else f"FR{n % 10} a b c d {n}" for n in range(100)],
    }
    for name, lines in texts.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    return tmp_path


def config_of(files, **fields):
    return ParallelConfig(
        train_source=str(files / "en"), train_target=str(files / "de"), subwords=typed_words(),
        further={"fr": FurtherFiles(train=str(files / "fr"))}, **fields,
    )  # fmt: skip


def typed_words():
    return dataclasses.replace(ParallelConfig.__dataclass_fields__["subwords"].default, **WORDS)


def test_texts_of_a_further_source_stay_with_their_pairs(files):
    data = build_task(config_of(files), files / "vocab")
    assert {name: len(split) for name, split in data.splits.items()} == {
        "train": 81, "validation": 10, "test": 9
    }  # fmt: skip
    vocabulary = data.source_vocabulary
    for split in data.splits.values():
        for source, target, text, ids in zip(
            split.sources, split.targets, split.extras["fr"], split.columns["fr"], strict=True
        ):
            number = source.split()[-1]
            assert source.startswith(f"en{target[2:]} ")
            assert text == "" if target == "de3" else text.endswith(f" {number}")
            assert ids.tolist() == [*vocabulary.encode(text), SpecialIds.EOS]
    # One vocabulary for all that is read; a word of the further source alone is in it.
    assert SpecialIds.UNK not in vocabulary.encode("FR1 a b number")


def test_batches_have_room_for_the_longest_source(files):
    data_config = config_of(files)
    data = build_task(data_config, files / "vocab")
    batch = next(make_train_iterator(data, data_config, seed=0))
    assert batch["fr"].shape == batch["source"].shape and batch["fr"].shape[1] >= 7
    assert (batch["fr_mask"].sum(-1).max(), batch["source_mask"].sum(-1).max()) == (7, 4)
    real = batch["index"] >= 0
    assert batch["fr_mask"].any(-1)[real].all()  # an empty text is its end
    assert not batch["fr"][~batch["fr_mask"]].any()
    short = dataclasses.replace(data_config, max_source_length=5)
    trained = make_train_iterator(data, short, seed=0)
    empty = sum(text == "" for text in data.split("train").extras["fr"])
    assert len(trained.lengths[0]) == empty  # the others are too long in French


def test_limits_of_outputs_are_by_the_source_from_which_a_search_begins(files):
    """However long another one is: in training, and where outputs that reach them are counted."""
    data_config = config_of(files)
    data = build_task(data_config, files / "vocab")
    iterator = make_train_iterator(data, data_config, seed=0)
    assert set(iterator.lengths[0]) == {4}  # three words and their end
    split = data.split("train").select(range(10))
    search = SearchConfig(max_length_factor=1.0, max_length_constant=0)
    found = [[Hypothesis(np.zeros(4, np.int32), 0.0, 0.0, np.zeros((4, 4)))]] * 10
    told = output_statistics(split, found, split.targets, search)
    assert told["outputs/at_limit"] == 1


def test_inputs_of_a_search_need_every_source(files):
    data_config = config_of(files)
    data, task = build_task(data_config, files / "vocab"), find_task(data_config)
    assert [field.name for field in task.input_fields] == ["source", "fr"]
    inputs = Inputs(["en1"], data.source_vocabulary, task.input_fields, {"fr": ["FR1 a"]})
    (batch,) = make_eval_batches(inputs, data_config)
    assert batch["fr"][0, :3].tolist() == inputs.columns["fr"][0].tolist()
    missing = Inputs(["en1"], data.source_vocabulary, task.input_fields)
    with pytest.raises(DataError, match="source 'fr': expected a text for each example, found no"):
        missing.columns  # noqa: B018
    assert find_task(ParallelConfig(train_table="t")).fields == task.fields[:2]


def test_further_texts_are_part_of_what_the_data_is(files):
    data = build_task(config_of(files), files / "vocab")
    lines = (files / "fr").read_text().splitlines()
    (files / "fr").write_text("\n".join(["changed", *lines[1:]]) + "\n")
    changed = build_task(config_of(files), files / "vocab")
    assert changed.fingerprint != data.fingerprint
    alone = dataclasses.replace(config_of(files), further={})
    assert build_task(alone, files / "vocab").splits["test"].sources == data.split("test").sources


def test_case_is_that_of_the_other_texts(files):
    data = build_task(config_of(files, lowercase=True), files / "vocab")
    assert all(text == text.lower() for text in data.split("train").extras["fr"])


def test_shuffled_sources_are_dealt_out_to_other_examples(files):
    plain = build_task(config_of(files), files / "vocab")
    mixed = build_task(config_of(files, shuffled_sources=("fr",)), files / "vocab")
    for name, split in mixed.splits.items():
        before = plain.split(name)
        assert split.sources == before.sources and split.targets == before.targets
        assert split.extras["fr"] != before.extras["fr"]
        assert sorted(split.extras["fr"]) == sorted(before.extras["fr"])


def test_files_of_unequal_numbers_of_lines_are_one_line(files):
    (files / "fr").write_text("one\ntwo\n")
    with pytest.raises(DataError) as raised:
        build_task(config_of(files), files / "vocab")
    assert str(raised.value) == (
        f"{files / 'fr'}: expected 100 lines as in {files / 'en'}, found 2"
    )


def test_a_further_line_may_be_empty_but_not_endless(files):
    corpus = builder.Corpus(str(files / "en"), str(files / "de"), (("fr", str(files / "fr")),))
    assert corpus.problem(("a", "b", "")) is None
    side, problem = corpus.problem(("a", "b", "x" * 20_000))
    assert corpus.location(3, side) == f"{files / 'fr'}:3"
    assert problem == "expected a fr line of at most 10000 characters, found 20000"


def test_tables_and_training_lines_have_further_sources_too(files):
    rows = zip(*((files / name).read_text().splitlines() for name in ("en", "de")), strict=True)
    (files / "table").write_text("".join(f"{en}\t{de}\n" for en, de in rows))
    config = ParallelConfig(
        train_table=str(files / "table"), subwords=typed_words(),
        further={"fr": FurtherFiles(train=str(files / "fr"))},
    )  # fmt: skip
    both = [build_task(each, files / "vocab") for each in (config, config_of(files))]
    assert both[0].split("train").extras == both[1].split("train").extras
    lines = config.training_lines()
    assert len(lines.pairs) == 100 and lines.pairs[3] == ("en3 number 3", "de3")


@pytest.mark.parametrize(
    ("further", "fields", "message"),
    [
        ({"target": {"train": "f"}}, {}, "names of further sources of letters.*found 'target'"),
        ({"a-b": {"train": "f"}}, {}, "names of further sources of letters.*found 'a-b'"),
        ({"fr": {}}, {}, "further.fr.train: expected a file, as its pairs have, found none"),
        ({"fr": {"train": "f", "test": "g"}}, {}, "further.fr.test: expected none, as pairs are"),
        ({}, {"shuffled_sources": ("fr",)}, "names of further sources .none., found 'fr'"),
    ],
)
def test_what_does_not_serve_is_refused(further, fields, message):
    values = {"train_table": "t", "further": further, **fields}
    with pytest.raises(ConfigError, match=message):
        typed(ParallelConfig, values, "config.data")


def test_multi30k_has_further_languages():
    config = Multi30kConfig(further_languages=("fr", "cs"))
    assert config.further_sources == ("fr", "cs")
    assert config.builder_config().name == "en_fr_cs-de"
    for language in ("de", "en", "it"):
        with pytest.raises(ValueError, match=f"some of fr, cs, each once, found '{language}'"):
            Multi30kConfig(further_languages=(language,))


def test_captions_in_three_languages_are_aligned(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(tmp_path / "cache"))
    for stem in multi30k._FILES.values():
        for code in ("en", "de", "fr"):
            lines = "".join(f"{code} {stem} {number}\n" for number in range(3))
            (tmp_path / f"{stem}.{code}.gz").write_bytes(gzip.compress(lines.encode()))
    monkeypatch.setattr(multi30k, "obtain_file", lambda name: tmp_path / name)
    examples = Multi30kConfig(further_languages=("fr",)).load()
    assert {name: len(split) for name, split in examples.items()} == dict.fromkeys(
        ("train", "validation", "test"), 3
    )
    assert examples["validation"][1] == ("en val 1", ("de val 1",), {"fr": "fr val 1"})


def test_records_keep_further_texts():
    examples = [
        ManySided(f"s{n}", (f"t{n}", "u"), {"fr": f"f{n} ü", "cs": ""})
        for n in range(BLOCK_EXAMPLES + 3)
    ]
    # As TFDS returns them: texts as bytes.
    records = [
        {key: [text.encode() for text in texts] for key, texts in record.items()}
        for _, record in to_blocks(examples)
    ]
    assert from_blocks(records) == examples


def test_halves_of_smoke_numbers_complete_each_other():
    splits = SmokeConfig(halves=True).load()
    source, (target,), further = splits["train"][0]
    assert len(source) == len(further["other"]) == len(target.split())
    assert all((one == "_") != (other == "_")
               for one, other in zip(source, further["other"], strict=True))  # fmt: skip
    assert (half("307", 0), half("307", 1)) == ("3_7", "_0_")
    assert np.mean([text.count("_") for text, *_ in splits["test"]]) > 1
