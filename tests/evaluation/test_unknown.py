"""An unknown word is one token that no reference has, to every scorer and every tokenizer."""

import numpy as np
import pytest

from attention_jax.data.text.vocabulary import SPECIAL_TOKENS
from attention_jax.evaluation.bleu import bleu_statistics
from attention_jax.evaluation.by_length import bleu_by_length
from attention_jax.evaluation.chrf import chrf_statistics
from attention_jax.evaluation.error_rates import pronunciation_scores
from attention_jax.evaluation.over_under import over_under_scores, tokenized
from attention_jax.evaluation.translation import translation_scores
from attention_jax.evaluation.unknown import MARK, UNKNOWN, readable, scorable
from attention_jax.types import SpecialIds

OUTPUTS = ["a <unk> dog runs over the <unk>, <unk> <unk> here.", "l'<unk>: two (<unk>)"]
REFERENCES = [["a big dog runs over the old, wet grass here."], ["l'eau: two (three)"]]
# As a person would write them, who knows a word that no reference has.
WRITTEN = [output.replace("<unk>", "zzz") for output in OUTPUTS]


def test_the_mark_is_what_vocabularies_write():
    assert MARK == SPECIAL_TOKENS[SpecialIds.UNK]
    assert readable(scorable(OUTPUTS, REFERENCES)) == OUTPUTS


@pytest.mark.parametrize("tokenize", ["13a", "intl"])
@pytest.mark.parametrize("outputs", [OUTPUTS, scorable(OUTPUTS, REFERENCES)])
def test_an_unknown_word_is_one_word(outputs, tokenize):
    found, expected = (
        translation_scores(each, REFERENCES, tokenize=tokenize) for each in (outputs, WRITTEN)
    )
    assert found["length_ratio"] == expected["length_ratio"] == 1
    assert found["bleu"] == expected["bleu"]
    found, expected = (
        bleu_statistics(each, REFERENCES, tokenize=tokenize) for each in (outputs, WRITTEN)
    )
    np.testing.assert_array_equal(found, expected)
    found, expected = (
        over_under_scores(each, REFERENCES, tokenize=tokenize) for each in (outputs, WRITTEN)
    )
    assert found == expected
    found, expected = (
        bleu_by_length(OUTPUTS, each, REFERENCES, resamples=2) for each in (outputs, WRITTEN)
    )
    assert found == expected


def test_an_unknown_word_is_one_character_to_chrf():
    written = [output.replace("<unk>", "q") for output in OUTPUTS]
    for outputs in (OUTPUTS, scorable(OUTPUTS, REFERENCES)):
        np.testing.assert_array_equal(
            chrf_statistics(outputs, REFERENCES), chrf_statistics(written, REFERENCES)
        )
        found, expected = (translation_scores(each, REFERENCES) for each in (outputs, written))
        assert found["chrf"] == expected["chrf"]


@pytest.mark.parametrize("tokenize", ["zh", "char"])
def test_unknown_characters_of_chinese_are_one_token_each(tokenize):
    (tokens,) = tokenized([f"我{UNKNOWN}{UNKNOWN}书"], tokenize)
    assert tokens == ["我", UNKNOWN, UNKNOWN, "书"]
    scores = translation_scores(["我<unk><unk>书"], [["我喜欢书"]], tokenize=tokenize)
    assert scores["length_ratio"] == 1


def test_references_that_spell_the_mark_are_met_by_text_alone():
    references = [["a <unk> b"]]
    assert translation_scores(["a <unk> b"], references)["bleu"] > 99
    assert translation_scores([f"a {UNKNOWN} b"], references)["bleu"] < 99
    assert chrf_statistics([f"a {UNKNOWN} b"], references)[0, 2] == 2


def test_an_unknown_phoneme_is_one_error():
    scores = pronunciation_scores([f"K {UNKNOWN} T"], [["K AE1 T", "K <unk> <unk> T"]])
    assert scores["per"] == pytest.approx(100 / 3)
