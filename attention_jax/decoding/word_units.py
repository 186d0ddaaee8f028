"""Word-level attention: where the words of texts and of outputs are among their tokens."""

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
from attention_jax.evaluation.attention_alignment import shifted
from attention_jax.evaluation.word_weights import WordWeights
from attention_jax.runs.load import TrainedRun
from attention_jax.spaced_words import spaced_words

Words = Sequence[str]
Matrix = Float[np.ndarray, "_T _S"]


@dataclasses.dataclass(frozen=True)
class SplitWords:
    """The words of both sides of every pair of a split.

    Attributes:
      sources: Of each source.
      targets: Of each target.
    """

    sources: Sequence[Words]
    targets: Sequence[Words]

    def swapped(self) -> "SplitWords":
        """Returns the words for the opposite direction."""
        return SplitWords(self.targets, self.sources)


@dataclasses.dataclass(frozen=True, eq=False)
class WordAttention:
    """Forced attention between the words of a pair.

    Attributes:
      words: A row for each target word, a column for each source word.
      heads: The same of each head; empty where the mechanism has one.
      shifted: The same of the step after each token or before it; None where none is asked for.
    """

    words: WordWeights
    heads: Sequence[WordWeights]
    shifted: "WordAttention | None" = None

    @property
    def weights(self) -> Matrix:
        """As `between_words` makes them."""
        return self.words.weights

    @property
    def linking(self) -> "WordAttention":
        """The attention that links the words: that of the steps that are asked for."""
        return self if self.shifted is None else self.shifted


def split_words(
    split: Split,
    sources: Sequence[Words] | None = None,
    targets: Sequence[Words] | None = None,
    *,
    required: Collection[int] = (),
) -> SplitWords:
    """Cuts the pairs of a split into words.

    Args:
      split: Sources and targets.
      sources: The words to be used for each source; None for what spaces separate in the pairs
        that are required, and the words of the vocabulary in others.
      targets: Likewise for the targets.
      required: Pairs whose words must be those of their texts; in others words that are not give
        way to those of the vocabulary.

    Raises:
      UserError: If the words of a required pair are not those of its texts.
    """
    sides = (
        (split.source_vocabulary, split.sources, sources),
        (split.target_vocabulary, split.targets, targets),
    )
    return SplitWords(*(_side_words(*side, required) for side in sides))


def tokens_of_words(vocabulary: Vocabulary, text: str, words: Words) -> list[list[int]]:
    """Finds the tokens of each word; case and entities such as `&apos;` may differ from the text.

    Raises:
      ValueError: If the words are not those of the text.
    """
    surfaces = [token.casefold() for token in vocabulary.surfaces(text)]
    try:  # a text that is written with entities has them in its tokens too
        return overlaps([word.casefold() for word in words], surfaces)
    except ValueError:
        plain = [html.unescape(word.replace("@-@", "-")).casefold() for word in words]
        return overlaps(plain, surfaces)


def forced_words(
    run: TrainedRun, split: Split, words: SplitWords, shift: int = 0
) -> list[WordAttention]:
    """Returns the attention with which the targets of a split are written, between words.

    Args:
      run: A trained model with attention.
      split: Its sources and targets.
      words: Those of `split_words`, of this direction.
      shift: Also asks for the attention of the step after each token (1) or before it (-1).

    Source:
      Chen et al. (2020), "Accurate word alignment induction from neural machine translation", for
      the step after, whose decoder is fed with the token.
    """
    found = []
    for index, forced in enumerate(forced_attention(run, split)):
        tokens = (
            tokens_of_words(split.source_vocabulary, split.sources[index], words.sources[index]),
            tokens_of_words(split.target_vocabulary, split.targets[index], words.targets[index]),
        )
        merged = _merged(forced, *tokens)
        if shift:
            # Of tokens, EOS among them: the row of its step is that of the last word's last token.
            heads = forced.heads
            if heads is not None:
                heads = np.stack([shifted(head, shift) for head in heads])
            other = ForcedAttention(shifted(forced.weights, shift), heads)
            merged = dataclasses.replace(merged, shifted=_merged(other, *tokens))
        found.append(merged)
    return found


def _side_words(
    vocabulary: Vocabulary,
    texts: Sequence[str],
    given: Sequence[Words] | None,
    required: Collection[int],
) -> list[Words]:
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
    """Returns the parts of a text, each with the sign of a beginning word where it begins one."""
    pieces = vocabulary.tokens(vocabulary.encode(text))
    surfaces = vocabulary.surfaces(text)
    return [
        (SPACE if piece.startswith(SPACE) and surface[:1] == " " else "") + surface.strip()
        for piece, surface in zip(pieces, surfaces, strict=True)
    ]


def _merged(forced: ForcedAttention, *tokens: list[list[int]]) -> WordAttention:
    heads = () if forced.heads is None else forced.heads
    return WordAttention(
        WordWeights.of_tokens(forced.weights, *tokens),
        [WordWeights.of_tokens(head, *tokens) for head in heads],
    )
