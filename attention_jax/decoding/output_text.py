"""Detokenization of outputs, with unknown words replaced by what they were written for."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from attention_jax.data.text.dictionary import read_dictionary
from attention_jax.data.text.vocabulary import SUBWORDS
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.errors import ConfigError
from attention_jax.evaluation.alignment import drop_ends, links_from_weights
from attention_jax.evaluation.attention_alignment import shifted
from attention_jax.evaluation.unknown import UNKNOWN
from attention_jax.search import SearchConfig
from attention_jax.types import SpecialIds


class OutputWriter:
    """Writes outputs as text.

    With `replace_unknown`, an unknown word is written as the source token that was attended to
    most when it was chosen, or when it was read if that is the step that was taught to align, the
    source's EOS left aside: as its translation, if the dictionary has
    one, else as it is. It stays unknown where all attention lay on EOS.

    Source:
      Luong, Pham and Manning 2015, Effective Approaches to Attention-based Neural Machine
      Translation, and Jean et al. 2015, On Using Very Large Target Vocabulary for Neural Machine
      Translation, on the replacement of unknown words.
    """

    def __init__(
        self,
        config: SearchConfig,
        source_vocabulary: Any,
        target_vocabulary: Any,
        alignment_shift: int = 0,
        lowercase: bool = False,
    ):
        """Reads the dictionary, if there is one.

        Args:
          config: Its `replace_unknown` and `unknown_dictionary` count.
          source_vocabulary: Of the sources.
          target_vocabulary: Of the outputs.
          alignment_shift: The step after the one that writes a token whose attention links it.
          lowercase: Whether the texts are in lower case, so that the dictionary has to be, too.

        Raises:
          ConfigError: If unknown words are to be replaced and the vocabulary has none.
          DataError: If the dictionary cannot be read.
        """
        kinds = {vocabulary.kind for vocabulary in (source_vocabulary, target_vocabulary)}
        if config.replace_unknown and SUBWORDS in kinds:
            raise ConfigError(
                "search.replace_unknown: expected a vocabulary with unknown words, such as those "
                f"of data.subwords.kind 'words', found {SUBWORDS!r}, which can write every word"
            )
        path = config.unknown_dictionary
        self._translations = read_dictionary(path, lowercase) if path else {}
        self._replaces = config.replace_unknown
        self._source, self._target = source_vocabulary, target_vocabulary
        self._shift = alignment_shift

    def __call__(self, hypothesis: Hypothesis, source: str, unknown: str | None = None) -> str:
        """Returns the text of an output.

        Args:
          hypothesis: The output with its attention.
          source: The text that it was searched for.
          unknown: How words are written that stay unknown; None for `<unk>`.
        """
        ids = hypothesis.tokens
        places = np.flatnonzero(np.asarray(ids) == SpecialIds.UNK)
        if not len(places):
            return self._target.decode(ids)
        written: Sequence[str | None] = [None] * len(places)
        if self._replaces:
            written = self._replacements(hypothesis, source, places)
        return self._target.decode(ids, unknown=[symbol or unknown for symbol in written])

    def best(
        self, found: Sequence[Sequence[Hypothesis]], sources: Sequence[str]
    ) -> list[str]:
        """Returns the best output of every source as it is scored, empty where there is none.

        Words that stay unknown are written as `evaluation.unknown.UNKNOWN`.
        """
        return [
            self(hypotheses[0], source, UNKNOWN) if hypotheses else ""
            for hypotheses, source in zip(found, sources, strict=True)
        ]

    def _replacements(
        self, hypothesis: Hypothesis, source: str, places: Int[np.ndarray, " N"]
    ) -> list[str | None]:
        """Returns what to write for each unknown word of the output, None to leave it."""
        weights = drop_ends(shifted(np.asarray(hypothesis.weights), self._shift))
        attended = {target: position for position, target in links_from_weights(weights)}
        symbols, surfaces = self._source.split(source), self._source.surfaces(source)
        replacements: list[str | None] = []
        for target in places:
            position = attended.get(int(target))
            if position is None:
                replacements.append(None)
                continue
            word = surfaces[position]
            # Within the symbol, so that punctuation keeps its joiners.
            written = symbols[position].replace(word, self._translations.get(word, word))
            replacements.append(written)
        return replacements
