"""Over- and under-translation as seen in words: repeated n-grams, excess, missing, dropped words.

Counts are pooled over all sentences before they are divided, and shares are in percent.
"""

import collections
from collections.abc import Collection, Hashable, Iterable, Sequence

import numpy as np
from sacrebleu.metrics import BLEU

from attention_jax.evaluation.error_rates import check_parallel
from attention_jax.evaluation.pharaoh import Link
from attention_jax.evaluation.unknown import scorable

Words = Sequence[Hashable]

ORDERS = (1, 2, 3, 4)
# Without a tagger, the most frequent words stand in for those without content of their own.
FUNCTION_WORDS = 100


def count_repeated(words: Words, order: int) -> tuple[int, int]:
    """Repeated n-grams: counts those that have occurred before in the sentence.

    Returns:
      (repeated, all) n-grams of the order n; the repeated ones are all minus distinct ones.
    """
    ngrams = [tuple(words[start : start + order]) for start in range(len(words) - order + 1)]
    return len(ngrams) - len(set(ngrams)), len(ngrams)


def repeated_ngrams(sentences: Iterable[Words], order: int) -> float:
    """Repeated n-grams: computes the share that has occurred before in the same sentence.

    rate = 100 (1 - sum_i distinct_i / sum_i total_i)

    Returns:
      Percent of the n-grams of the order n; 0 where no sentence has n words.

    Source:
      The share of distinct n-grams of Li et al. (2016), turned around and taken within sentences.
    """
    return _share(count_repeated(words, order) for words in sentences)


def count_excess_and_missing(
    hypothesis: Words, references: Sequence[Words]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Excess and missing words: counts what only the output has, and what only the reference has.

    Word order is ignored. Of several references, the one with the smallest sum of both counts is
    used; among equals, the first.

    Returns:
      (excess, words of the output) and (missing, words of the reference).
    """
    written = collections.Counter(hypothesis)  # subtracting counters drops what would be negative
    excess, missing, length = min(
        (
            ((written - wanted).total(), (wanted - written).total(), wanted.total())
            for wanted in map(collections.Counter, references)
        ),
        key=lambda counts: counts[0] + counts[1],
    )
    return (excess, len(hypothesis)), (missing, length)


def excess_and_missing(
    hypotheses: Sequence[Words], references: Sequence[Sequence[Words]]
) -> tuple[float, float]:
    """Excess and missing words: computes their shares of the outputs and of the references.

    excess  = 100 sum_w max(count_hyp(w) - count_ref(w), 0) / |hyp|
    missing = 100 sum_w max(count_ref(w) - count_hyp(w), 0) / |ref|

    For several references of an output see `count_excess_and_missing`.

    Returns:
      (excess, missing) in percent.

    Raises:
      ValueError: If the lists are empty or of unequal length, or an example has no reference.
    """
    check_parallel(hypotheses, references)
    excess, missing = zip(*map(count_excess_and_missing, hypotheses, references), strict=True)
    return _share(excess), _share(missing)


def _share(counts: Iterable[tuple[int, int]]) -> float:
    """Pools (part, whole) counts over sentences and returns the percentage; 0 where whole is 0."""
    # The leading (0, 0) makes the sum of no sentences two zeros.
    part, whole = np.sum([(0, 0), *counts], axis=0)
    return 100 * float(part) / float(whole) if whole else 0.0


def over_under_scores(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, tokenize: str = "13a"
) -> dict[str, float]:
    """Over- and under-translation: computes repetitions, excess and missing words of outputs.

    Args:
      hypotheses: One detokenised translation for each source; for unknown words see `unknown`.
      references: The references of each.
      tokenize: sacrebleu's tokenizer.

    Returns:
      In percent, of words as BLEU counts them (case kept): `repeated_1gram` to
      `repeated_4gram`, `excess_words` and `missing_words`. All text repeats words, so compare the
      rates of several systems, or with `reference_repeated_1gram` to `_4gram`, those of the first
      references.

    Raises:
      ValueError: As `excess_and_missing`.
    """
    check_parallel(hypotheses, references)
    words = tokenized(scorable(hypotheses, references), tokenize)
    wanted = [tokenized(variants, tokenize) for variants in references]
    scores = {}
    for prefix, sentences in (("", words), ("reference_", [each[0] for each in wanted])):
        for order in ORDERS:
            scores[f"{prefix}repeated_{order}gram"] = repeated_ngrams(sentences, order)
    scores["excess_words"], scores["missing_words"] = excess_and_missing(words, wanted)
    return scores


def function_words(sentences: Iterable[Sequence[str]], number: int = FUNCTION_WORDS) -> set[str]:
    """Function words: returns the most frequent in lower case; among equals, those met first."""
    counts = collections.Counter(word.lower() for words in sentences for word in words)
    return {word for word, _ in counts.most_common(number)}


def count_dropped(
    words: Sequence[str], links: Collection[Link], ignored: Collection[str] = frozenset()
) -> tuple[int, int]:
    """Dropped words: counts the content words of a source that have no link to the output.

    Args:
      words: The source as words.
      links: (source, target) links between its words and those of its output.
      ignored: Words in lower case that are not counted, such as `function_words`. Words without a
        letter or digit are never counted.

    Returns:
      (words without a link, content words).

    Source:
      Tu et al. (2016), on under-translation; an aligner stands in for their annotators.
    """
    linked = {source for source, _ in links}  # however many links a word has
    is_linked = [
        place in linked
        for place, word in enumerate(words)
        if word.lower() not in ignored and any(map(str.isalnum, word))
    ]
    return is_linked.count(False), len(is_linked)


def dropped_words(
    sources: Sequence[Sequence[str]],
    links: Sequence[Collection[Link]],
    ignored: Collection[str] = frozenset(),
) -> float:
    """Dropped words: computes the share of the sources' content words that have no link.

    For the arguments see `count_dropped`.

    Returns:
      Percent; 0 where no word counts.

    Raises:
      ValueError: If the numbers of sources and of sets of links differ.
    """
    pairs = zip(sources, links, strict=True)
    return _share(count_dropped(words, its_links, ignored) for words, its_links in pairs)


def tokenized(texts: Iterable[str], tokenize: str = "13a") -> list[list[str]]:
    """Tokenization: splits texts into words as BLEU counts them with sacrebleu, case kept."""
    split = BLEU(tokenize=tokenize).tokenizer
    return [split(text).split() for text in texts]
