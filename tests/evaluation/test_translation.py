"""Translation scores against sacrebleu called directly."""

import pytest
from sacrebleu.metrics import BLEU, CHRF

from attention_jax.evaluation.translation import reference_streams, translation_scores
from tests.evaluation.sentences import noisy, sentences


def test_translation_scores_equal_sacrebleu():
    references = sentences(50)
    hypotheses = noisy(references, 0.2)
    scores = translation_scores(hypotheses, [[reference] for reference in references])
    assert scores["bleu"] == BLEU().corpus_score(hypotheses, [references]).score
    assert scores["chrf"] == CHRF().corpus_score(hypotheses, [references]).score
    assert scores["length_ratio"] == pytest.approx(1, abs=0.02)
    assert "nrefs:1" in scores["bleu_signature"] and "tok:13a" in scores["bleu_signature"]
    assert scores["chrf_signature"].startswith("nrefs:1") and "nc:6" in scores["chrf_signature"]


def test_translation_scores_take_unequal_numbers_of_references():
    hypotheses = ["the cat sat on the mat", "a dog barks at night"]
    references = [["no match at all", "the cat sat on the mat"], ["a dog barks at night"]]
    scores = translation_scores(hypotheses, references)
    assert scores["bleu"] == pytest.approx(100) and scores["chrf"] == pytest.approx(100)
    assert "nrefs:var" in scores["bleu_signature"]
    assert reference_streams(references) == [
        ["no match at all", "a dog barks at night"],
        ["the cat sat on the mat", None],
    ]


def test_translation_scores_length_ratio():
    scores = translation_scores(["a b c"], [["a b c d e f"]])
    assert scores["length_ratio"] == pytest.approx(0.5)


def test_translation_scores_of_empty_outputs():
    scores = translation_scores(["", ""], [["a b"], ["c d"]])
    assert scores["bleu"] == scores["chrf"] == scores["length_ratio"] == 0


def test_translation_scores_respect_tokenizer_and_case():
    options = dict(tokenize="char", lowercase=True)
    scores = translation_scores(["ABC"], [["abc"]], **options)
    assert scores["bleu_signature"] != translation_scores(["ABC"], [["abc"]])["bleu_signature"]
    assert "case:lc" in scores["bleu_signature"] and "tok:char" in scores["bleu_signature"]
    assert scores["chrf"] == pytest.approx(100)


def test_translation_scores_refuse_unequal_lists():
    with pytest.raises(ValueError, match="as many references"):
        translation_scores(["a"], [["a"], ["b"]])
