"""Translation lexicons: estimated, read from a file, or both; cut to size, kept, and collated."""

import dataclasses

import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.data.alignment.translation_probabilities import translation_pairs
from attention_jax.data.builders.parallel import Config as ParallelConfig
from attention_jax.data.config import LexiconConfig, SubwordsConfig
from attention_jax.data.examples import Inputs, Texts
from attention_jax.data.fields.lexicon import FIELD
from attention_jax.data.lexicon import load_resources, make_lexicon
from attention_jax.data.loading import build_task
from attention_jax.data.text.storage import load_vocabularies
from attention_jax.errors import ConfigError, DataError
from attention_jax.runs.hashes import hash_files
from attention_jax.types import SpecialIds

PAIRS = [("the house", "das Haus"), ("the book", "das Buch"), ("a book", "ein Buch")] * 8
NAMES = ["lexicon", "lexicon_probs"]


@pytest.fixture
def corpus(tmp_path):
    """A config of a small corpus of words, without a lexicon yet."""
    for split in ("train", "validation", "test"):
        lines = "".join(f"{source}\t{target}\n" for source, target in PAIRS)
        (tmp_path / f"{split}.tsv").write_text(lines)
    tables = {f"{split}_table": str(tmp_path / f"{split}.tsv") for split in ("train", "test")}
    return ParallelConfig(
        **tables, validation_table=str(tmp_path / "validation.tsv"),
        subwords=SubwordsConfig(kind="words"),
    )  # fmt: skip


def translations(config, directory):
    """Returns the lexicon as {source: {target: probability}}."""
    task = build_task(config, directory)
    lexicon = kept_in(directory)["lexicon"]
    words = task.source_vocabulary.tokens(range(task.source_vocabulary.size))
    found = {}
    for word, ids, probs in zip(words, lexicon.ids, lexicon.probs, strict=True):
        targets = task.target_vocabulary.tokens(ids)
        found[word] = {t: p for t, p in zip(targets, probs.tolist(), strict=True) if p > 0}
    return {word: row for word, row in found.items() if row}


def kept_in(directory):
    return load_resources(directory, *load_vocabularies(directory))


def with_lexicon(config, **fields):
    return dataclasses.replace(config, lexicon=LexiconConfig(**fields))


def test_translation_pairs_are_those_of_em_in_numpy():
    sentences = [tuple(text.split() for text in pair) for pair in PAIRS[:3]]
    found = translation_pairs(*zip(*sentences, strict=True), "ibm1")
    table = {(e, f): 1 / 4 for sources, targets in sentences for f in ["NULL", *sources]
             for e in targets}  # fmt: skip

    def counts():
        expected = dict.fromkeys(table, 0.0)
        for sources, targets in sentences:
            for e in targets:
                total = sum(table[e, f] for f in ["NULL", *sources])
                for f in ["NULL", *sources]:
                    expected[e, f] += table[e, f] / total
        return expected

    def divided(expected, smoothing):
        totals = {f: sum(n for (_, g), n in expected.items() if g == f) for _, f in expected}
        return {(e, f): (n + smoothing) / (totals[f] + 4 * smoothing)
                for (e, f), n in expected.items()}  # fmt: skip

    for _ in range(5):  # smoothed while it is trained, and not when it is told
        table = divided(counts(), 0.01)
    table = divided(counts(), 0.0)
    for source, target, probability in zip(*found[:3], strict=True):
        pair = found.target_words[target], found.source_words[source]
        words = [(e.lower(), f.lower()) for e, f in table]
        expected = dict(zip(words, table.values(), strict=True))
        np.testing.assert_allclose(probability, expected[pair], rtol=1e-6)
    assert "null" not in found.source_words


@pytest.mark.parametrize("method", ["ibm1", "hmm"])
def test_a_lexicon_is_estimated(corpus, tmp_path, method):
    found = translations(with_lexicon(corpus, method=method), tmp_path / "vocab")
    best = {word: max(row, key=row.get) for word, row in found.items()}
    assert best == {"the": "das", "house": "Haus", "book": "Buch", "a": "ein", "</s>": "</s>"}
    assert found["</s>"] == {"</s>": 1.0}
    for word, row in found.items():
        np.testing.assert_allclose(sum(row.values()), 1.0, rtol=1e-5, err_msg=word)
    cut = translations(with_lexicon(corpus, method=method, size=1), tmp_path / "cut")
    assert {word: max(row, key=row.get) for word, row in cut.items()} == best
    assert all(len(row) == 1 for row in cut.values()) and cut["the"]["das"] == found["the"]["das"]


def test_a_file_is_read_and_fills_what_the_text_lacks(corpus, tmp_path):
    path = tmp_path / "lexicon.txt"
    path.write_text("house Buch .5\nhouse Haus .25\nmouse Maus 1\n\nbook\tBuch  1\n")
    config = with_lexicon(corpus, file=str(path))
    found = translations(config, tmp_path / "file")
    house = {"Buch": 0.5, "Haus": 0.25}
    assert found == {"house": house, "book": {"Buch": 1.0}, "</s>": {"</s>": 1.0}}
    pair = load_vocabularies(tmp_path / "file")
    both = with_lexicon(corpus, file=str(path), method="ibm1")
    text = Texts(["a book"], ["ein Buch"], [["ein Buch"]], [0])
    lexicon = make_lexicon(text, *pair, both)
    rows = dict(zip(("the", "a", "house", "book"), pair[0].ids_of(["the", "a", "house", "book"]),
                    strict=True))  # fmt: skip
    assert set(lexicon.ids[rows["book"]][:2]) == set(pair[1].ids_of(["ein", "Buch"]))
    assert lexicon.ids[rows["house"], 0] == pair[1].ids_of(["Buch"])[0]
    assert not lexicon.probs[rows["the"]].any() and lexicon.probs[rows["a"], 1] > 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("house Haus\n", ":1: expected 'source target probability', .* found 'house Haus'"),
        ("house Haus much\n", ":1: expected 'source target probability', .* found"),
        ("a ein 1\nhouse Haus 1.5\n", ":2: expected 'source target probability', the last above 0"),
        ("house Haus nan\n", ":1: expected 'source target probability'"),
        ("house Haus .8\nhouse Buch .3\n", ":2: expected .* of 'house' .* found 1.1"),
        ("mouse Maus 1\n", "lexicon.txt: expected words of both vocabularies, found none"),
        ("", "lexicon.txt: expected one sentence a line, found an empty file"),
    ],
)
def test_a_bad_file_is_one_line(corpus, tmp_path, content, words):
    path = tmp_path / "lexicon.txt"
    path.write_text(content)
    with pytest.raises(DataError, match=words) as error:
        build_task(with_lexicon(corpus, file=str(path)), tmp_path / "vocab")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "vocab" / "vocabularies.json").exists()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"size": 0, "method": "ibm1"}, r"lexicon\.size: expected at least 1, found 0"),
        ({"size": 5}, r"lexicon\.size: expected only with a method or a file, found 5"),
        ({"method": "ibm"}, r"lexicon\.method: .*did you mean 'ibm1'"),
    ],
)
def test_mistakes_of_the_config_are_named(fields, words):
    with pytest.raises(ConfigError, match=words):
        typed(ParallelConfig, {"train_table": "a", "lexicon": fields}, "data")


def test_rows_are_collated_for_texts_with_outputs_and_without(corpus, tmp_path):
    config = with_lexicon(corpus, method="ibm1", size=3)
    task = build_task(config, tmp_path / "vocab").with_fields(NAMES)
    split, lexicon = task.split("train"), kept_in(tmp_path / "vocab")["lexicon"]
    assert FIELD in split.fields and split.lengths("S").max() == 3
    batch = FIELD.collate(split.columns["lexicon"], np.array([1, -1]), {"S": 5})
    assert batch["lexicon"].shape == batch["lexicon_probs"].shape == (2, 5, 3)
    ids = split.source_ids[1]
    np.testing.assert_array_equal(batch["lexicon"][0, : len(ids)], lexicon.ids[ids])
    np.testing.assert_array_equal(batch["lexicon_probs"][0, : len(ids)], lexicon.probs[ids])
    assert not batch["lexicon_probs"][0, len(ids) :].any() and not batch["lexicon_probs"][1].any()
    resources = kept_in(tmp_path / "vocab")
    inputs = Inputs(["the unheard-of"], task.source_vocabulary, (FIELD,), resources=resources)
    assert inputs.input_names == NAMES
    ids, probs = inputs.columns["lexicon"][0]
    assert probs[-1, 0] == 1.0 and ids[-1, 0] == SpecialIds.EOS and not probs[1].any()
    with pytest.raises(DataError, match="config.data.lexicon: expected a lexicon"):
        Inputs(["the"], task.source_vocabulary, (FIELD,)).columns  # noqa: B018


def test_a_lexicon_is_kept_and_its_change_is_one_of_the_vocabularies(corpus, tmp_path):
    config = with_lexicon(corpus, method="ibm1")
    build_task(config, tmp_path / "vocab")
    before = hash_files(tmp_path / "vocab")
    build_task(with_lexicon(corpus, method="hmm"), tmp_path / "vocab")  # made once
    assert hash_files(tmp_path / "vocab") == before
    (tmp_path / "vocab" / "lexicon.npz").write_bytes(b"damaged")
    assert hash_files(tmp_path / "vocab") != before
    with pytest.raises(DataError, match="lexicon.npz: expected the lexicon of a run, found no"):
        build_task(config, tmp_path / "vocab")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda ids, probs: (ids[:-1], probs[:-1]), "one of other source words"),
        (lambda ids, probs: (ids, probs[:, :-1]), "one of other source words"),
        (lambda ids, probs: (ids + 1000, probs), "one of other target words"),
        (lambda ids, probs: (ids - 1000, probs), "one of other target words"),
        (lambda ids, probs: (ids, probs * 3), "probabilities below 0 or above 1"),
        (lambda ids, probs: (ids, probs * np.nan), "numbers that are not finite as 'probs'"),
        (lambda ids, probs: (ids, probs.astype(int)), "int64 in place of numbers as 'probs'"),
        (lambda ids, probs: (ids.ravel(), probs), "1 axes in place of 2 as 'ids'"),
    ],
)
def test_a_lexicon_of_a_stranger_is_looked_at(corpus, tmp_path, change, words):
    vocab = tmp_path / "vocab"
    build_task(with_lexicon(corpus, method="ibm1"), vocab)
    lexicon = kept_in(vocab)["lexicon"]
    ids, probs = change(lexicon.ids, lexicon.probs)
    np.savez(vocab / "lexicon.npz", ids=ids, probs=probs)
    with pytest.raises(DataError, match=words):
        kept_in(vocab)


def test_a_lexicon_knows_how_frequent_target_tokens_are(corpus, tmp_path):
    """And one of an earlier version, which does not, has them in the order of their ids."""
    vocab = tmp_path / "vocab"
    task = build_task(with_lexicon(corpus, method="ibm1"), vocab)
    lexicon = kept_in(vocab)["lexicon"]
    words = task.target_vocabulary.tokens(lexicon.by_frequency)
    assert lexicon.by_frequency[: SpecialIds.COUNT].tolist() == [*range(SpecialIds.COUNT)]
    assert sorted(words[SpecialIds.COUNT :][:2]) == ["Buch", "das"]
    np.savez(vocab / "lexicon.npz", ids=lexicon.ids, probs=lexicon.probs)
    assert kept_in(vocab)["lexicon"].by_frequency.tolist() == sorted(lexicon.by_frequency)
    for other in (lexicon.by_frequency[::-1], lexicon.by_frequency[1:], lexicon.by_frequency + 1):
        np.savez(vocab / "lexicon.npz", **{**vars(lexicon), "by_frequency": other})
        with pytest.raises(DataError, match="found an order of other target words"):
            kept_in(vocab)
