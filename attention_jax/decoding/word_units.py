"""Word-level attention: finds words among the tokens of texts, and attention between words."""

import dataclasses
import html
from collections.abc import Collection, Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.data.examples import Split
from attention_jax.data.text.characters import SPACE
from attention_jax.data.text.spans import overlaps
from attention_jax.data.text.vocabulary import Vocabulary
from attention_jax.data.text.words import pieces_in_words
from attention_jax.decoding.forced_decoding import ForcedAttention, forced_attention
from attention_jax.errors import UserError
from attention_jax.evaluation.attention_alignment import linking_weights, shifted
from attention_jax.evaluation.word_weights import WordWeights
from attention_jax.runs.load import TrainedRun, shift_of_heads
from attention_jax.spaced_words import spaced_words

Words = Sequence[str]
Matrix = Float[np.ndarray, "_T _S"]


@dataclasses.dataclass(frozen=True)
class SplitWords:
    """The words of every source and every target of a split."""

    sources: Sequence[Words]
    targets: Sequence[Words]

    def swapped(self) -> "SplitWords":
        """Swaps the sides, for the opposite direction."""
        return SplitWords(self.targets, self.sources)


@dataclasses.dataclass(frozen=True, eq=False)
class WordAttention:
    """Forced attention between the words of a pair.

    Attributes:
      words: Weights with a row for each target word and a column for each source word.
      heads: The same of each head; empty where the mechanism has only one.
      shifted: The same of the step after each token, or before it; None without a shift.
      opposite: Of a two-way aligner, weights with a row for each source word and a column for each
        target word; else None.
    """

    words: WordWeights
    heads: Sequence[WordWeights]
    shifted: "WordAttention | None" = None
    opposite: WordWeights | None = None

    @property
    def weights(self) -> Matrix:
        """Attention between words, as `between_words` makes it."""
        return self.words.weights

    @property
    def linking(self) -> "WordAttention":
        """The attention that links words: the shifted one if there is a shift."""
        return self if self.shifted is None else self.shifted

    @property
    def turned(self) -> "WordAttention | None":
        """That of a two-way aligner in the opposite direction; None of any other."""
        if self.opposite is None:
            return None
        shifted = None if self.shifted is None else self.shifted.turned
        return WordAttention(self.opposite, (), shifted)


def split_words(
    split: Split,
    sources: Sequence[Words] | None = None,
    targets: Sequence[Words] | None = None,
    *,
    required: Collection[int] = (),
) -> SplitWords:
    """Word segmentation: divides the pairs of a split into words.

    Args:
      split: Sources and targets.
      sources: The words of each source, if given. By default, texts of required pairs are divided
        at spaces, and others as their vocabulary does.
      targets: The same for the targets.
      required: Numbers of the pairs whose given words must spell their texts. In other pairs, words
        that do not are replaced by those of the vocabulary.

    Raises:
      UserError: If the words of a required pair do not spell its texts.
    """
    sides = (
        (split.source_vocabulary, split.sources, sources),
        (split.target_vocabulary, split.targets, targets),
    )
    return SplitWords(*(_side_words(*side, required) for side in sides))


def tokens_of_words(vocabulary: Vocabulary, text: str, words: Words) -> list[list[int]]:
    """Subword-to-word map: finds the tokens of each word of a text.

    Words may differ from the text in case, and in entities such as `&apos;`.

    Raises:
      ValueError: If the words do not spell the text.
    """
    surfaces = [token.casefold() for token in vocabulary.surfaces(text)]
    try:  # as they are first: a text that itself contains entities has them in its tokens too
        return overlaps([word.casefold() for word in words], surfaces)
    except ValueError:
        # As Moses' tokenizer escapes: entities, and hyphens between its words as `@-@`.
        plain = [html.unescape(word.replace("@-@", "-")).casefold() for word in words]
        return overlaps(plain, surfaces)


def forced_words(
    run: TrainedRun, split: Split, words: SplitWords, shift: int = 0
) -> list[WordAttention]:
    """Forced decoding: computes attention to the targets of a split, between words.

    Args:
      run: A trained model with attention.
      split: Its sources and targets.
      words: The words of `split_words`, in this direction.
      shift: If not 0, also merges the attention of the step after each token (1) or before it (-1).

    Source:
      Chen et al. (2020), "Accurate word alignment induction from neural machine translation", for
      the step after, in which the decoder reads the token.
    """
    return in_words(forced_attention(run, split), split, words, shift, shift_of_heads(run, shift))


def in_words(
    forced: Sequence[ForcedAttention],
    split: Split,
    words: SplitWords,
    shift: int = 0,
    heads_shift: int = 0,
) -> list[WordAttention]:
    """Subword-to-word attention: merges what was forced between the tokens of a split's pairs.

    Args:
      forced: Of each pair.
      split: The pairs.
      words: The words of `split_words`, in this direction.
      shift: As `forced_words` has it.
      heads_shift: That of the heads.
    """
    found = []
    for index, between in enumerate(forced):
        tokens = (
            tokens_of_words(split.source_vocabulary, split.sources[index], words.sources[index]),
            tokens_of_words(split.target_vocabulary, split.targets[index], words.targets[index]),
        )
        between = _of_text(between, split, index)
        merged = _merged(between, *tokens)
        if shift:
            # Tokens are shifted, not words: the last word's last token gets the row of EOS.
            heads = between.heads
            if heads is not None:
                heads = np.stack([linking_weights(head, heads_shift) for head in heads])
            opposite = between.opposite
            if opposite is not None:
                opposite = shifted(opposite, shift, "source")
            weights = linking_weights(between.weights, shift)
            other = ForcedAttention(weights, heads, opposite=opposite)
            merged = dataclasses.replace(merged, shifted=_merged(other, *tokens))
        found.append(merged)
    return found


def _of_text(forced: ForcedAttention, split: Split, index: int) -> ForcedAttention:
    """Returns the rows of symbols that a text has, which STEPs are none of."""
    vocabulary = split.target_vocabulary
    silent = getattr(vocabulary, "silent_ids", ())
    # Where all texts begin with a silent symbol, it has its place among their parts.
    if silent and len(vocabulary.surfaces(split.targets[index])) + 1 == len(forced.weights):
        return forced
    # A STEP is a token of the target, with a row of its own, but no part of its text.
    rows = [place for place, each in enumerate(split.target_ids[index]) if each not in silent]
    if len(rows) == len(forced.weights):
        return forced
    heads = None if forced.heads is None else forced.heads[:, rows]  # H T S, rows of T
    opposite = None if forced.opposite is None else forced.opposite[:, rows]
    return ForcedAttention(forced.weights[rows], heads, opposite=opposite)


def _side_words(
    vocabulary: Vocabulary,
    texts: Sequence[str],
    given: Sequence[Words] | None,
    required: Collection[int],
) -> list[Words]:
    """Returns the words of every text of one side; see `split_words`."""
    found: list[Words] = []
    for index, text in enumerate(texts):
        own, _ = pieces_in_words(vocabulary, _pieces(vocabulary, text))
        if given is None and index not in required:
            found.append(own)
            continue
        words = spaced_words(text) if given is None else given[index]
        try:
            tokens_of_words(vocabulary, text, words)
        except ValueError as error:
            if index in required:
                raise UserError(f"--alignment: words of pair {index}: {error}") from None
            words = own
        found.append(words)
    return found


def _pieces(vocabulary: Vocabulary, text: str) -> list[str]:
    """Returns the parts of a text that its tokens stand for, word-initial ones marked by `SPACE`.

    Unlike tokens, parts are never unknown.
    """
    pieces = vocabulary.tokens(vocabulary.encode(text))
    surfaces = vocabulary.surfaces(text)
    return [
        (SPACE if piece.startswith(SPACE) and surface[:1] == " " else "") + surface.strip()
        for piece, surface in zip(pieces, surfaces, strict=True)
    ]


def _merged(forced: ForcedAttention, *tokens: list[list[int]]) -> WordAttention:
    """Merges attention between tokens, and that of every head, into attention between words."""
    heads, opposite = () if forced.heads is None else forced.heads, forced.opposite
    return WordAttention(
        WordWeights.of_tokens(forced.weights, *tokens),
        [WordWeights.of_tokens(head, *tokens) for head in heads],
        opposite=None if opposite is None else WordWeights.of_tokens(opposite, *tokens[::-1]),
    )
