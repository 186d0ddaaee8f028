"""Outputs as text: unknown words become the source words that they were written for."""

import numpy as np
import pytest

from attention_jax.data.text.subwords import SubwordVocabulary
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.decoding.output_text import OutputWriter, read_dictionary
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.errors import ConfigError, DataError
from attention_jax.evaluation.unknown import UNKNOWN
from attention_jax.search import SearchConfig
from attention_jax.types import SpecialIds

EOS, UNK = SpecialIds.EOS, SpecialIds.UNK
SOURCE = SymbolVocabulary.train("words", ["the house of , . a"])
TARGET = SymbolVocabulary.train("words", ["das Haus von\uffed."])
TEXT = "the house of Smith, a3.14"  # the house of Smith ￭, a3 ￭.￭ 14


def ids(*symbols):
    known = dict(zip(TARGET.tokens(range(TARGET.size)), range(TARGET.size), strict=True))
    return np.array([*(known.get(symbol, UNK) for symbol in symbols), EOS], np.int32)


def hypothesis(tokens, attended, columns=9):
    """Attends to `attended` most at each token; the last column is the source's EOS."""
    weights = np.full((len(tokens), columns), 0.01)
    weights[np.arange(len(attended)), attended] = 0.9
    return Hypothesis(tokens, -1.0, -1.0, weights)


def writer(source=SOURCE, target=TARGET, **settings):
    return OutputWriter(SearchConfig(**settings), source, target)


@pytest.fixture
def dictionary(tmp_path):
    path = tmp_path / "words.tsv"
    path.write_text("Smith\tSchmidt\nhouse\tGebäude\n.\t,\n", encoding="utf-8")
    return str(path)


def test_unknown_words_stay_as_they_are_unless_asked():
    found = hypothesis(ids("das", "?", "Haus"), [0, 3, 1])
    assert writer()(found, TEXT) == "das <unk> Haus"


def test_unknown_words_are_scored_as_one_token():
    found = [[hypothesis(ids("das", "?", "Haus", "?"), [0, 3, 1, 8])], []]
    assert writer().best(found, [TEXT, TEXT]) == [f"das {UNKNOWN} Haus {UNKNOWN}", ""]


def test_unknown_words_are_not_what_spells_them():
    target = SymbolVocabulary.train("words", ["das <unk>"])
    found = hypothesis(np.array([*target.encode("das <unk>"), UNK, EOS], np.int32), [0] * 5)
    assert writer(target=target).best([[found]], [TEXT]) == [f"das <unk> {UNKNOWN}"]
    assert writer(target=target)(found, TEXT) == "das <unk> <unk>"


def test_unknown_words_are_copied_from_the_source():
    found = hypothesis(ids("das", "?", "Haus", "?"), [0, 3, 1, 5])
    assert writer(replace_unknown=True)(found, TEXT) == "das Smith Haus a3"


def test_unknown_words_are_copied_from_where_they_were_read_if_that_step_aligns():
    found = hypothesis(ids("das", "?", "Haus", "?"), [8, 0, 3, 1, 5])
    write = OutputWriter(SearchConfig(replace_unknown=True), SOURCE, TARGET, alignment_shift=1)
    assert write(found, TEXT) == "das Smith Haus a3"


def test_copied_punctuation_keeps_its_joiners():
    found = hypothesis(ids("das", "?", "Haus", "?", "Haus"), [0, 4, 1, 6, 1])
    assert writer(replace_unknown=True)(found, TEXT) == "das, Haus.Haus"


def test_unknown_words_are_translated_by_the_dictionary(dictionary):
    write = writer(replace_unknown=True, unknown_dictionary=dictionary)
    found = hypothesis(ids("das", "?", "?", "?", "?"), [0, 3, 5, 6, 7])
    assert write(found, TEXT) == "das Schmidt a3,14"


def test_the_dictionary_of_a_text_in_lower_case_is_in_lower_case(tmp_path):
    path = tmp_path / "words.tsv"
    path.write_text("Smith\tSchmidt\n")
    search = SearchConfig(replace_unknown=True, unknown_dictionary=str(path))
    source = SymbolVocabulary.train("words", [TEXT.lower()])
    write = OutputWriter(search, source, TARGET, lowercase=True)
    assert write(hypothesis(ids("?"), [3]), TEXT.lower()) == "schmidt"


def test_known_words_are_left_alone(dictionary):
    write = writer(replace_unknown=True, unknown_dictionary=dictionary)
    assert write(hypothesis(ids("das", "Haus"), [1, 3]), TEXT) == "das Haus"


def test_the_end_of_the_source_is_no_word():
    found = hypothesis(ids("?"), [8])
    found.weights[0, 1] = 0.02
    assert writer(replace_unknown=True)(found, TEXT) == "house"
    found.weights[0, :8] = 0.0
    assert writer(replace_unknown=True)(found, TEXT) == "<unk>"


def test_a_source_without_words_has_nothing_to_copy():
    found = Hypothesis(ids("?"), -1.0, -1.0, np.ones((2, 1)))
    assert writer(replace_unknown=True)(found, "") == "<unk>"


def test_a_joint_vocabulary_of_characters():
    joint = SymbolVocabulary.train("characters", ["ab"])
    found = Hypothesis(np.array([4, UNK, 5, EOS]), -1.0, -1.0, np.eye(4))
    assert writer(joint, joint, replace_unknown=True)(found, "aéb") == "aéb"


def test_best_writes_one_line_for_each_source():
    found = hypothesis(ids("?"), [3])
    lines = writer(replace_unknown=True).best([[found, found], []], [TEXT, ""])
    assert lines == ["Smith", ""]


def test_subwords_have_no_unknown_words():
    texts = [f"a few words of text {number}" for number in range(20)]
    subwords = SubwordVocabulary.train(texts, 40)
    assert writer(subwords, subwords)(Hypothesis(
        np.array([*subwords.encode("a few"), EOS]), -1.0, -1.0, np.ones((3, 3))), "a") == "a few"
    with pytest.raises(ConfigError, match="^search.replace_unknown: expected a vocab.* 'bpe'"):
        writer(subwords, subwords, replace_unknown=True)


def test_a_missing_dictionary_is_named_at_once(tmp_path):
    with pytest.raises(DataError, match="none.tsv: expected a text file, found none"):
        writer(replace_unknown=True, unknown_dictionary=str(tmp_path / "none.tsv"))


def test_dictionary_takes_the_first_of_several_lines(tmp_path):
    path = tmp_path / "words.tsv"
    path.write_text("Haus\thouse\n\nHaus\thome\nneu York\tNew York\r\n", encoding="utf-8")
    assert read_dictionary(path) == {"Haus": "house", "neu York": "New York"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\tb\nHaus house\n", "words.tsv:2: expected SOURCE<TAB>TARGET, found 'Haus house'"),
        ("a\tb\tc\n", "words.tsv:1: expected SOURCE<TAB>TARGET"),
        ("a\t \n", "words.tsv:1: expected SOURCE<TAB>TARGET"),
        ("", "words.tsv: expected one sentence a line, found an empty file"),
    ],
)
def test_refuses_what_is_no_dictionary(tmp_path, text, words):
    path = tmp_path / "words.tsv"
    path.write_text(text)
    with pytest.raises(DataError) as error:
        read_dictionary(path)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_refuses_a_missing_dictionary(tmp_path):
    with pytest.raises(DataError, match="none.tsv: expected a text file, found none"):
        read_dictionary(tmp_path / "none.tsv")


def test_a_first_token_is_one_of_the_vocabulary():
    writer(first_token=TARGET.size - 1)
    with pytest.raises(ConfigError, match=rf"first_token: .* {TARGET.size}, found {TARGET.size}$"):
        writer(first_token=TARGET.size)
