"""Word alignment by a trained model: links and probabilities of pairs of texts, block by block."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from attention_jax.data.examples import Split
from attention_jax.data.text.extended_vocabulary import extended
from attention_jax.data.text.words import word_pieces
from attention_jax.decoding.alignments import word_weights
from attention_jax.decoding.scoring import ScoredPair, Scorer, given_pairs
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.evaluation.alignment import Links
from attention_jax.evaluation.attention_alignment import shifted
from attention_jax.evaluation.word_weights import WordWeights
from attention_jax.runs.load import TrainedRun


class LinkedPair(NamedTuple):
    """A pair of texts as a model aligns it.

    Attributes:
      weights: Those that link its words.
      mean_log_prob: log p(target | source) by token, EOS included; natural logarithm.
      opposite: Of a two-way aligner, the weights of the opposite direction, a row for each source
        word.
    """

    weights: WordWeights
    mean_log_prob: float
    opposite: WordWeights | None = None

    @property
    def links(self) -> Links:
        """(source, target) of its words, each target word with the one it attends to most."""
        return self.weights.links()

    @property
    def turned(self) -> "LinkedPair":
        """The pair as a two-way aligner aligns it in the opposite direction.

        Raises:
          ValueError: If it was aligned in one direction alone.
        """
        if self.opposite is None:
            raise ValueError("expected a pair of a two-way aligner, found one of one direction")
        return LinkedPair(self.opposite, self.mean_log_prob, self.weights)


def linked_pairs(
    run: TrainedRun,
    sources: Sequence[str],
    targets: Sequence[str],
    further: Mapping[str, Sequence[str]] = {},  # noqa: B006  (never changed)
) -> Iterator[LinkedPair]:
    """Word alignment: yields the links of each pair, from attention to a target that is given.

    Args:
      run: A trained run, of a model that attends to tokens of its source.
      sources: Source texts.
      targets: Their translations.
      further: Texts of each further source that the run reads, by its name.

    Raises:
      DataError: If a text cannot be one of the run's task, or one of a source is missing.
    """
    split = given_pairs(run, sources, targets, further)
    for block, found in Scorer(run, with_attention=True).in_blocks(split):
        for index, pair in enumerate(found):
            weights = weights_of_pair(run, block, index, pair)
            opposite = _opposite_of_pair(run, block, index, pair)
            yield LinkedPair(weights, pair.log_prob / len(pair.tokens), opposite)


def weights_of_pair(run: TrainedRun, split: Split, index: int, pair: ScoredPair) -> WordWeights:
    """Word alignment: the weights that link the words of a scored pair of a split.

    Args:
      run: The run that scored it.
      split: The pairs that were scored.
      index: The number of the pair among them.
      pair: Its scores and attention.
    """
    words = split.own_words[index]  # what ids beyond the vocabulary stand for
    output = Hypothesis(pair.tokens, pair.log_prob, pair.score, pair.weights, words)
    source = split.source_ids[index], split.sources[index]
    vocabularies = run.source_vocabulary, run.target_vocabulary
    return word_weights(output, *source, *vocabularies, run.alignment_shift)


def _opposite_of_pair(
    run: TrainedRun, split: Split, index: int, pair: ScoredPair
) -> WordWeights | None:
    """Returns the weights of a two-way aligner in the opposite direction; None of any other."""
    if pair.opposite is None:
        return None
    written = extended(run.target_vocabulary, split.own_words[index])
    source = split.source_ids[index], split.sources[index]
    weights = shifted(pair.opposite, run.alignment_shift, "source")
    return WordWeights.of_tokens(
        weights, word_pieces(written, pair.tokens), word_pieces(run.source_vocabulary, *source)
    )
