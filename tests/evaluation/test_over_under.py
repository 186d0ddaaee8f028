"""Over- and under-translation in words, against counts made one word at a time."""

import random

import pytest

from attention_jax.evaluation.over_under import (
    dropped_words,
    excess_and_missing,
    function_words,
    over_under_scores,
    repeated_ngrams,
)
from tests.evaluation.sentences import noisy, sentences


def slowly_excess(hypothesis, reference):
    left = list(reference)
    for word in hypothesis:
        if word in left:
            left.remove(word)
        else:
            yield word


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_repeated_ngrams_counts_those_met_before(order):
    texts = [text.split() for text in sentences(30)]
    seen_before = total = 0
    for words in texts:
        seen = []
        for start in range(len(words) - order + 1):
            ngram = words[start : start + order]
            seen_before, total = seen_before + (ngram in seen), total + 1
            seen.append(ngram)
    assert repeated_ngrams(texts, order) == pytest.approx(100 * seen_before / total)


def test_repeated_ngrams_forgets_at_the_end_of_a_sentence():
    assert repeated_ngrams([["a", "b"], ["a", "b"]], 1) == 0
    assert repeated_ngrams([["a"], []], 2) == 0


def test_excess_and_missing_are_pooled():
    references = [text.split() for text in sentences(40)]
    hypotheses = [text.split() for text in noisy(sentences(40), 0.4)]
    pairs = list(zip(hypotheses, references, strict=True))
    excess = sum(len(list(slowly_excess(h, r))) for h, r in pairs)
    missing = sum(len(list(slowly_excess(r, h))) for h, r in pairs)
    expected = (
        100 * excess / sum(map(len, hypotheses)),
        100 * missing / sum(map(len, references)),
    )
    found = excess_and_missing(hypotheses, [[reference] for reference in references])
    assert found == pytest.approx(expected)


def test_excess_and_missing_take_the_nearest_reference():
    references = [["x y z".split(), "a b c".split(), "a b".split()]]
    assert excess_and_missing(["a b".split()], references) == (0, 0)
    assert excess_and_missing([[]], [["a b".split(), "a".split()]]) == (0, 100)


def test_order_does_not_count():
    words = sentences(1)[0].split()
    turned = random.Random(0).sample(words, len(words))
    assert excess_and_missing([turned], [[words]]) == (0, 0)


def test_scores_are_of_words_as_bleu_counts_them():
    scores = over_under_scores(["A dog, a dog."], [["A dog runs."]])
    # A dog , a dog .    against    A dog runs .
    assert scores["excess_words"] == pytest.approx(100 * 3 / 6)
    assert scores["missing_words"] == pytest.approx(100 * 1 / 4)
    assert scores["repeated_1gram"] == pytest.approx(100 * 1 / 6)
    assert scores["reference_repeated_1gram"] == scores["repeated_2gram"] == 0
    assert len([name for name in scores if name.startswith("repeated_")]) == 4


def test_bad_lists_are_refused():
    with pytest.raises(ValueError, match="as many references"):
        over_under_scores(["a"], [])
    with pytest.raises(ValueError, match=r"references\[0\]"):
        excess_and_missing([["a"]], [[]])


def test_dropped_words_are_those_without_links():
    sources = [["The", "dog", "sleeps", "."], ["Dogs", "run"]]
    links = [{(0, 0), (1, 1)}, {(1, 0)}]
    # `sleeps` and `Dogs` of five words: the full stop has no letter.
    assert dropped_words(sources, links) == pytest.approx(100 * 2 / 5)
    assert dropped_words(sources, links, {"the", "dogs"}) == pytest.approx(100 * 1 / 3)
    assert dropped_words([["."]], [set()]) == 0
    with pytest.raises(ValueError):
        dropped_words(sources, links[:1])


def test_function_words_are_the_most_frequent():
    assert function_words(["The dog".split(), "the cat".split(), "a the cat".split()], 2) == {
        "the",
        "cat",
    }
