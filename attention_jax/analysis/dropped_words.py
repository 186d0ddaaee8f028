"""Under-translation: counts source words for which an aligner finds no counterpart in outputs."""

from collections.abc import Mapping, Sequence

import numpy as np

from attention_jax.data.alignment.aligners import MAX_WORDS, align
from attention_jax.data.examples import Texts
from attention_jax.data.text.words import words_of_text
from attention_jax.evaluation.over_under import count_dropped, function_words
from attention_jax.evaluation.symmetrization import symmetrize
from attention_jax.evaluation.unknown import scorable
from attention_jax.runs.progress import Counter

METHOD, SYMMETRIZATION = "hmm", "grow-diag"
_ITERATIONS = 20  # lines that the aligner reports: two models, two directions, five each


def dropped_word_scores(
    train: Texts, sources: Sequence[str], outputs: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Dropped words: computes the percentage of content words that outputs leave untranslated.

    For the arguments see `dropped_word_counts`; the result has the names of `outputs`.
    """
    counts = dropped_word_counts(train, sources, outputs)
    sums = {name: np.sum(rows, axis=0).tolist() for name, rows in counts.items()}
    return {name: 100 * part / max(whole, 1) for name, (part, whole) in sums.items()}


def dropped_word_counts(
    train: Texts, sources: Sequence[str], outputs: Mapping[str, Sequence[str]]
) -> dict[str, list[tuple[int, int]]]:
    """Dropped words: counts the content words of each source that an output leaves untranslated.

    An aligner links the text that it is trained on, so all outputs are added to the training text.
    It is the HMM aligner in both directions, symmetrised by grow-diag.

    Args:
      train: The training text.
      sources: The sources that were translated.
      outputs: By any names, one text for each source. References may be among them: they show how
        many words the aligner misses where nothing should be missing.

    Returns:
      For each name and source, (words without a link, content words); zeros for pairs that are too
      long for the aligner (`MAX_WORDS`).
    """
    train_words, source_words = (
        [words_of_text(text) for text in texts] for texts in (train.sources, sources)
    )
    written = (scorable(texts, [train.targets]) for texts in outputs.values())
    target_words = [words_of_text(text) for texts in (train.targets, *written) for text in texts]
    done = 0
    counter = Counter("aligning outputs", _ITERATIONS)

    def report(line: str) -> None:
        nonlocal done
        done += 1
        counter.update(min(done, _ITERATIONS))

    directions = align(
        train_words + source_words * len(outputs), target_words, METHOD, report=report
    )
    counter.close()
    links = [
        symmetrize(forward, reverse, SYMMETRIZATION)
        for forward, reverse in zip(*(each[len(train) :] for each in directions), strict=True)
    ]
    ignored = function_words(train_words)
    counts = [
        # The aligner has skipped such a pair: all of its words would seem to be dropped.
        (0, 0) if max(len(words), len(written)) > MAX_WORDS
        else count_dropped(words, its_links, ignored)
        for words, written, its_links in zip(
            source_words * len(outputs), target_words[len(train) :], links, strict=True
        )
    ]  # fmt: skip
    # The outputs of all names were aligned in one list, one after the other.
    starts = range(0, len(counts), len(sources))
    return {
        name: counts[start : start + len(sources)]
        for name, start in zip(outputs, starts, strict=True)
    }
