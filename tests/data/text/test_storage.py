import pytest

from attention_jax.data.text.storage import (
    has_vocabularies,
    load_vocabularies,
    save_vocabularies,
)
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.errors import DataError

SOURCE = SymbolVocabulary.train("characters", ["abc"])
TARGET = SymbolVocabulary.train("words", ["one two"])


def test_load_vocabularies_keeps_the_sides_apart(tmp_path):
    assert not has_vocabularies(tmp_path)
    save_vocabularies(tmp_path / "vocab", SOURCE, TARGET)
    assert has_vocabularies(tmp_path / "vocab")
    source, target = load_vocabularies(tmp_path / "vocab")
    assert source.encode("cab") == SOURCE.encode("cab")
    assert target.encode("two one") == TARGET.encode("two one")


def test_load_vocabularies_gives_a_joint_one_twice(tmp_path):
    save_vocabularies(tmp_path, SOURCE, SOURCE)
    source, target = load_vocabularies(tmp_path)
    assert source is target


def test_unfinished_vocabularies_do_not_count(tmp_path):
    SOURCE.save(tmp_path / "source")
    assert not has_vocabularies(tmp_path)


def test_load_vocabularies_rejects_missing_and_damaged_files(tmp_path):
    with pytest.raises(DataError, match="expected the vocabularies of a run, found none"):
        load_vocabularies(tmp_path)
    save_vocabularies(tmp_path, SOURCE, TARGET)
    (tmp_path / "target" / "vocabulary.json").unlink()
    with pytest.raises(DataError, match=r"target/vocabulary\.json: expected a saved vocabulary"):
        load_vocabularies(tmp_path)
    for damaged in ("{", "[1, 2]", "[]", "null", '{"source": 1, "target": 2}', "[" * 9000,
                    '{"source": null, "target": []}', '{"source": "/etc", "target": "target"}',
                    '{"source": "\\u0000", "target": "target"}'):  # fmt: skip
        (tmp_path / "vocabularies.json").write_text(damaged)
        with pytest.raises(DataError, match=r"vocabularies\.json: expected ") as caught:
            load_vocabularies(tmp_path)
        assert len(str(caught.value).splitlines()) == 1
