"""Spelling of words against cases worked out by hand and against sets of bigrams."""

import pytest

from attention_jax.data.alignment import word_forms
from attention_jax.data.alignment.bitext import make_bitext, vocabulary


def by_pair(bitext, words, values):
    """Returns {(f, e): value}; f is None for NULL."""
    pairs = zip(bitext.source_of, bitext.target_of, values, strict=True)
    return {([*words[0], None][f], words[1][e]): float(value) for f, e, value in pairs}


def bigrams(word):
    letters = ["start", *word, "end"]
    return {*zip(letters, letters[1:], strict=False)}


@pytest.fixture
def compared():
    def compare(sources, targets):
        bitext, words = make_bitext(sources, targets), (vocabulary(sources), vocabulary(targets))
        return by_pair(bitext, words, word_forms.similarities(bitext, *words))

    return compare


def test_similarities_golden(compared):
    found = compared([["ab", ".", "1999"]], [["AB", "abc", ".", "19"]])
    assert found["ab", "ab"] == found[".", "."] == 1
    assert found["ab", "abc"] == pytest.approx(4 / 7)  # ^a and ab, of 3 and 4
    assert found["1999", "19"] == pytest.approx(6 / 7)  # all but 99
    assert found["ab", "."] == found[None, "ab"] == 0


def test_similarities_equal_sets_of_bigrams(compared, numpy_rng, monkeypatch):
    monkeypatch.setattr(word_forms, "_CHUNK", 7)  # the last chunk is a part of one
    words = ["".join(numpy_rng.choice([*"abö😀"], numpy_rng.integers(1, 6))) for _ in range(40)]
    found = compared([words[:9], words[9:20]], [words[20:31], words[31:]])
    for (source, target), value in found.items():
        one, other = bigrams(source or ""), bigrams(target)
        expected = 2 * len(one & other) / (len(one) + len(other)) if source else 0
        assert value == pytest.approx(expected)


def test_stem_pairs_golden():
    sources, targets = [["gehen", "geht"], ["gehend"]], [["walk", "walks"], ["Walker"]]
    bitext, words = make_bitext(sources, targets), (vocabulary(sources), vocabulary(targets))
    stems = word_forms.stem_pairs(bitext, *words, letters=4)
    # gehe and walk, geht and walk, NULL and walk.
    assert stems.num_target_words == 1
    assert stems.source_of.tolist() == [0, 1, 2] and stems.target_of.tolist() == [0, 0, 0]
    found = by_pair(bitext, words, stems.cells)
    assert found["gehen", "walks"] == found["gehend", "walker"] == 0
    assert found["geht", "walk"] == 1 and found[None, "walker"] == 2


def test_a_text_without_words_has_no_pairs():
    bitext = make_bitext([[]], [[]])
    assert len(word_forms.similarities(bitext, [], [])) == 0
    assert len(word_forms.stem_pairs(bitext, [], [], letters=4).cells) == 0
