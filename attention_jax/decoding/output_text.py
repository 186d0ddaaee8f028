"""Detokenization of outputs, with replacement of unknown words (UNK) by aligned source words."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from attention_jax.data.lines import read_lines
from attention_jax.data.text.vocabulary import SUBWORDS
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.errors import ConfigError, DataError
from attention_jax.evaluation.alignment import drop_ends, links_from_weights
from attention_jax.evaluation.attention_alignment import linking_weights
from attention_jax.evaluation.unknown import UNKNOWN
from attention_jax.search import SearchConfig
from attention_jax.types import SpecialIds


class OutputWriter:
    """Unknown word replacement: writes outputs as text.

    With `replace_unknown`, an unknown word is replaced by the source token with the most attention
    in the step that links it (EOS excepted): by its translation, if the dictionary has one, else by
    the token itself. It stays unknown if all attention was on EOS.

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
          config: Its `replace_unknown` and `unknown_dictionary` are used.
          source_vocabulary: Vocabulary of the sources.
          target_vocabulary: Vocabulary of the outputs.
          alignment_shift: The step whose attention links a token, counted from the one that writes
            it.
          lowercase: Whether texts are in lower case; the dictionary is then lowercased as well.

        Raises:
          ConfigError: If unknown words are to be replaced in a vocabulary that has none, or outputs
            to begin with a token that it lacks.
          DataError: If the dictionary cannot be read.
        """
        kinds = {vocabulary.kind for vocabulary in (source_vocabulary, target_vocabulary)}
        if config.replace_unknown and SUBWORDS in kinds:
            raise ConfigError(
                "search.replace_unknown: expected a vocabulary with unknown words, such as those "
                f"of data.subwords.kind 'words', found {SUBWORDS!r}, which can write every word"
            )
        if config.first_token >= target_vocabulary.size:
            raise ConfigError(
                "search.first_token: expected an id below the size of the target vocabulary, "
                f"{target_vocabulary.size}, found {config.first_token}"
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
          source: The text of its source.
          unknown: The text for words that stay unknown; None for `<unk>`.
        """
        ids, vocabulary = hypothesis.tokens, hypothesis.vocabulary(self._target)
        places = np.flatnonzero(np.asarray(ids) == SpecialIds.UNK)
        if not len(places):
            return vocabulary.decode(ids)
        written: Sequence[str | None] = [None] * len(places)
        if self._replaces:
            written = self._replacements(hypothesis, source, places)
        return vocabulary.decode(ids, unknown=[symbol or unknown for symbol in written])

    def best(
        self, found: Sequence[Sequence[Hypothesis]], sources: Sequence[str]
    ) -> list[str]:
        """Returns the text of the best output for every source, empty where there is none.

        Words that stay unknown are written as `evaluation.unknown.UNKNOWN`, for scoring.
        """
        return [
            self(hypotheses[0], source, UNKNOWN) if hypotheses else ""
            for hypotheses, source in zip(found, sources, strict=True)
        ]

    def _replacements(
        self, hypothesis: Hypothesis, source: str, places: Int[np.ndarray, " N"]
    ) -> list[str | None]:
        """Returns the replacement of each unknown word of the output, None to leave it."""
        weights = drop_ends(linking_weights(hypothesis.weights, self._shift))
        attended = {target: position for position, target in links_from_weights(weights)}
        symbols, surfaces = self._source.split(source), self._source.surfaces(source)
        replacements: list[str | None] = []
        for target in places:
            position = attended.get(int(target))
            if position is None:
                replacements.append(None)
                continue
            word = surfaces[position]
            # Replaced inside of the symbol, so that punctuation keeps its joiners.
            written = symbols[position].replace(word, self._translations.get(word, word))
            replacements.append(written)
        return replacements


def read_dictionary(path: str | Path, lowercase: bool = False) -> dict[str, str]:
    """Bilingual dictionary: reads translations of words from lines of `source<TAB>target`.

    Empty lines are skipped. If a word has several lines, the first one is used.

    Args:
      path: UTF-8 text; a name ending in `.gz` is decompressed.
      lowercase: Whether words of both languages are put in lower case.

    Raises:
      DataError: Naming file and line, if it cannot be read or a line is not two such columns.
    """
    translations: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) != 2 or not all(columns):
            raise DataError(f"{path}:{number}: expected SOURCE<TAB>TARGET, found {line!r:.80}")
        if lowercase:
            columns = [column.lower() for column in columns]
        translations.setdefault(*columns)
    return translations
