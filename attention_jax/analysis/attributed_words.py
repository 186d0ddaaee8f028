"""Attribution between words: a run's attributions against gold links, beside its attention."""

import dataclasses
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attention_jax.analysis.attribution import (
    ATTRIBUTIONS,
    Attribution,
    attribute,
)
from attention_jax.analysis.gold_links import GoldComparison
from attention_jax.data.examples import Split
from attention_jax.decoding.forced_decoding import ForcedAttention
from attention_jax.decoding.word_units import SplitWords, in_words
from attention_jax.evaluation.attention_alignment import score_attention
from attention_jax.evaluation.pharaoh import MarkedLinks
from attention_jax.evaluation.symmetrized_attention import score_threshold
from attention_jax.evaluation.word_weights import WordWeights
from attention_jax.files import replacing
from attention_jax.runs.load import TrainedRun, shift_of_heads
from attention_jax.runs.run_directory import writing

_SCORES = ("aer", "alignment_precision", "alignment_recall", "saer", "match", "probability_mass")


@dataclasses.dataclass(frozen=True, eq=False)
class AttributedWords:
    """Attributions of the pairs of a split that have gold links, by the names of their methods.

    Attributes:
      golds: The gold links by the number of their pair, in order.
      tokens: Of each method, between tokens, in this order.
      words: The same between words, as weights that make links.
    """

    golds: Mapping[int, MarkedLinks]
    tokens: Mapping[str, Sequence[Attribution]]
    words: Mapping[str, Sequence[WordWeights]]

    @property
    def labels(self) -> dict[str, str]:
        """What each method is called in tables and views."""
        return {name: ATTRIBUTIONS.find(name).METHOD.label for name in self.words}

    def scores(self, threshold: float | None = None) -> dict[str, float]:
        """Alignment error rate of each method: scores as those of attention, `aer_METHOD`, ...

        Args:
          threshold: If given, all links of at least this weight are scored too,
            `aer_threshold_METHOD`, ...
        """
        golds, scores = [*self.golds.values()], {}
        for name, words in self.words.items():
            found = score_attention(words, golds)
            found = {key: found[key] for key in _SCORES if key in found}
            if threshold is not None:
                found |= score_threshold(words, golds, threshold)
            scores |= {f"{key}_{name}": value for key, value in found.items()}
        return scores


def attribute_words(
    run: TrainedRun, split: Split, gold: GoldComparison, methods: Sequence[str]
) -> AttributedWords:
    """Attribution: computes what source words count for the references of pairs with gold links.

    Links are made as those of attention: of what is positive between tokens, merged to words.

    Args:
      run: A run that `check_attributable` accepts.
      split: Its split.
      gold: The comparison of its attention with gold links, whose words and shift are taken.
      methods: Names of the methods.
    """
    numbers = sorted(gold.links)
    pairs = split.select(numbers)
    words = SplitWords(*([side[n] for n in numbers]
                         for side in (gold.words.sources, gold.words.targets)))  # fmt: skip
    tokens = {name: attribute(run, pairs, name) for name in methods}
    merged = {}
    for name, found in tokens.items():
        # An attribution of a word's prediction is of the step that writes the word, always.
        is_of_attention = ATTRIBUTIONS.find(name).METHOD.is_of_attention
        shift = shift_of_heads(run, gold.shift) if is_of_attention else 0
        forced = [ForcedAttention(one.weights, None) for one in found]
        merged[name] = [each.linking.words for each in in_words(forced, pairs, words, shift)]
    return AttributedWords({n: gold.links[n] for n in numbers}, tokens, merged)


def write_attributions(run: TrainedRun, split: Split, found: AttributedWords) -> None:
    """Writes `attributions.SPLIT.npz`: the signed values of every method, between tokens.

    Of the n-th pair with gold links, from 0, there are `n/line` (its number in the split, from 0),
    `n/source_tokens`, `n/tokens`, and `n/METHOD`, `T S`.
    """
    if not run.directory.writes:
        return
    arrays: dict[str, Any] = {}
    for n, number in enumerate(found.golds):
        of_pair = {name: attributed[n] for name, attributed in found.tokens.items()}
        one = next(iter(of_pair.values()))
        arrays |= {
            f"{n}/line": np.int64(number),
            f"{n}/source_tokens": np.array(one.source_tokens, np.str_),
            f"{n}/tokens": np.array(one.tokens, np.str_),
            **{f"{n}/{name}": each.values for name, each in of_pair.items()},
        }
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    with writing(path := run.directory.attributions(split.name)), replacing(path) as temporary:
        temporary.write_bytes(content.getvalue())
