"""Source words that an aligner finds no counterpart for in the outputs."""

from collections.abc import Mapping, Sequence

from attention_jax.data.alignment.aligners import align
from attention_jax.data.tasks import Texts
from attention_jax.data.text.tokenization import JOINER, tokenize
from attention_jax.evaluation.over_under import dropped_words, function_words
from attention_jax.evaluation.symmetrization import symmetrize
from attention_jax.training.reporting.progress import Counter

METHOD, SYMMETRIZATION = "hmm", "grow-diag"
_ITERATIONS = 20  # lines that the aligner reports: two models, two directions, five each


def dropped_word_scores(
    train: Texts, sources: Sequence[str], outputs: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Computes how many content words of the sources the outputs leave untranslated.

    Aligners link the text that they are trained on, so all outputs are added to the training text.
    Words are linked by the HMM in both directions and grow-diag.

    Args:
      train: The training text.
      sources: What was translated.
      outputs: By a name of one's own, one text for each source; references may be among them, to
        see what the aligner finds where nothing should be missing.

    Returns:
      Percent, for each name.
    """
    train_words, source_words = (
        [_words(text) for text in texts] for texts in (train.sources, sources)
    )
    target_words = [_words(text) for texts in (train.targets, *outputs.values()) for text in texts]
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
    return {
        name: dropped_words(source_words, links[start : start + len(sources)], ignored)
        for name, start in zip(outputs, range(0, len(links), len(sources)), strict=True)
    }


def _words(text: str) -> list[str]:
    return [word.replace(JOINER, "") for word in tokenize(text)]
