import pytest

from attention_jax.data.builders.eraser_movies import DIGESTS, Config, obtain_file
from attention_jax.data.documents import sentences_of
from attention_jax.errors import DataError
from attention_jax.spaced_words import spaced_words


def test_real_files_make_the_published_splits(real_data):
    corpus = Config().load()
    assert {name: len(part) for name, part in corpus.items()} == {
        "train": 1_600, "validation": 200, "test": 199,
    }  # fmt: skip
    text, (label,), extras = corpus["train"][0]
    words = [word for sentence in sentences_of(text) for word in spaced_words(sentence)]
    assert label == "NEG" and sentences_of(text)[0].startswith("plot : two teen couples")
    assert " ".join(words[63:67]) == "mind - fuck movie" and (63, 67) in extras["evidence"]
    assert max(len(spaced_words(sentence)) for sentence in sentences_of(text)) <= 32
    for part in corpus.values():
        for text, (label,), extras in part:
            size = sum(len(spaced_words(sentence)) for sentence in sentences_of(text))
            assert label in ("NEG", "POS")
            assert all(0 <= start <= end <= size for start, end in extras["evidence"])
    spans = [span for *_, extras in corpus["test"] for span in extras["evidence"]]
    assert len(spans) == 2_067 and sum(start == end for start, end in spans) == 20


def test_files_that_are_not_there_are_one_line(tmp_path, monkeypatch):
    monkeypatch.delenv("ATTENTION_JAX_DATA", raising=False)
    with pytest.raises(DataError, match=r"directory with eraser_movies/docs.tar.gz, found none na"):
        obtain_file("docs.tar.gz")
    monkeypatch.setenv("ATTENTION_JAX_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"eraser_movies/docs.tar.gz, found no such file in it"):
        Config().load()


def test_other_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_JAX_DATA", str(tmp_path))
    (tmp_path / "eraser_movies").mkdir()
    (tmp_path / "eraser_movies" / "val.jsonl.gz").write_bytes(b"other")
    with pytest.raises(DataError, match=rf"expected sha256 {DIGESTS['val.jsonl.gz']}, found"):
        obtain_file("val.jsonl.gz")
