"""Statistics of outputs: counted by hand."""

import numpy as np

from attention_jax.data.examples import Split
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.decoding.output_statistics import output_statistics
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.search import SearchConfig

SEARCH = SearchConfig(max_length_factor=1.0, max_length_constant=2)


def split(targets):
    """Sources of two words and EOS."""
    vocabulary, sources = SymbolVocabulary.train("words", ["a b"]), ["a b"] * len(targets)
    return Split(
        name="test", sources=sources, targets=targets, references=[[each] for each in targets],
        numbers=[*range(len(targets))], source_vocabulary=vocabulary, target_vocabulary=vocabulary,
    )  # fmt: skip


def found(lengths):
    """For each source an output of that many tokens, or none."""
    made = lambda n: Hypothesis(np.zeros(n, int), 0.0, 0.0, np.zeros((n, 3)))  # noqa: E731
    return [[made(n)] if n else [] for n in lengths]


def test_empty_alike_and_cut_off():
    texts = ["", " ", "a b", "a b", "a b", "c", "d", "e", "f", "g"]
    lengths = [0, 1, 3, 3, 3, 5, 6, 2, 2, 7]  # the limit is 5: three are as long or longer
    told = output_statistics(split(list("aabcdefghi")), found(lengths), texts, SEARCH)
    assert told == {
        "outputs/empty": 0.2, "outputs/alike": 0.3, "references/alike": 0.2, "outputs/at_limit": 0.3
    }  # fmt: skip


def test_a_few_outputs_say_nothing():
    assert output_statistics(split(["x"] * 7), found([1] * 7), [""] * 7, SEARCH) == {}
