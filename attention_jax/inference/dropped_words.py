"""Source words that an aligner finds no counterpart for in the outputs."""

from collections.abc import Sequence

from attention_jax.data.alignment.aligners import align
from attention_jax.data.tasks import Split
from attention_jax.data.text.tokenization import JOINER, tokenize
from attention_jax.evaluation.over_under import dropped_words, function_words
from attention_jax.evaluation.symmetrization import symmetrize
from attention_jax.training.progress import Counter

METHOD, SYMMETRIZATION = "hmm", "grow-diag"
_ITERATIONS = 20  # lines that the aligner reports: two models, two directions, five each


def dropped_word_scores(train: Split, split: Split, outputs: Sequence[str]) -> dict[str, float]:
    """Computes how many content words of the sources the outputs leave untranslated.

    Aligners link the text that they are trained on, so outputs and references are added to the
    training text. Words are linked by the HMM in both directions and grow-diag.

    Args:
      train: The training text.
      split: The sources and references that were evaluated.
      outputs: One for each source.

    Returns:
      In percent `dropped_words` of the outputs, and `reference_dropped_words` of the first
      references, which is what the aligner finds where nothing should be missing.
    """
    texts = (
        [*train.sources, *split.sources, *split.sources],
        [*train.targets, *outputs, *split.targets],
    )
    sources, targets = ([_words(text) for text in side] for side in texts)
    done = 0
    counter = Counter(f"aligning {split.name}", _ITERATIONS)

    def report(line: str) -> None:
        nonlocal done
        done += 1
        counter.update(min(done, _ITERATIONS))

    directions = align(sources, targets, METHOD, report=report)
    counter.close()
    links = [
        symmetrize(forward, reverse, SYMMETRIZATION)
        for forward, reverse in zip(*(each[len(train) :] for each in directions), strict=True)
    ]
    ignored = function_words(sources[: len(train)])
    parts = {"dropped_words": slice(len(split)), "reference_dropped_words": slice(len(split), None)}
    return {
        name: dropped_words(sources[len(train) :][part], links[part], ignored)
        for name, part in parts.items()
    }


def _words(text: str) -> list[str]:
    return [word.replace(JOINER, "") for word in tokenize(text)]
