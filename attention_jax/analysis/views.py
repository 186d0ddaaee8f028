"""Views of the attention viewer: a run's outputs, its heads, references written by force."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from attention_jax.analysis.head_names import cross_head_names
from attention_jax.data.examples import Split
from attention_jax.data.text.words import pieces_in_words, special_places, word_pieces
from attention_jax.decoding.forced_decoding import forced_attention, has_heads
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.decoding.word_units import (
    Matrix,
    SplitWords,
    WordAttention,
    tokens_of_words,
)
from attention_jax.evaluation.aer import count_links
from attention_jax.evaluation.alignment import Links
from attention_jax.evaluation.attention_alignment import shifted
from attention_jax.evaluation.attention_statistics import normalized_entropy
from attention_jax.evaluation.fertility import coverage_deviation, covering_weights, fertility
from attention_jax.evaluation.pharaoh import MarkedLinks
from attention_jax.evaluation.word_weights import between_words
from attention_jax.plotting.viewer import ViewedAttention
from attention_jax.runs.load import TrainedRun
from attention_jax.types import Params

Views = dict[str, list[ViewedAttention]]


@dataclasses.dataclass(frozen=True, eq=False)
class DecodedRun:
    """A run with its outputs for a split.

    Attributes:
      name: What its views are called.
      run: The run.
      split: Its split, with its vocabularies.
      found: The outputs for each source, best first.
      texts: The best of each as text.
    """

    name: str
    run: TrainedRun
    split: Split
    found: Sequence[Sequence[Hypothesis]]
    texts: Sequence[str]


@dataclasses.dataclass(frozen=True, eq=False)
class ForcedView:
    """References as a view, whichever direction they were written in.

    Attributes:
      name: What it is called.
      matrices: Weights of every pair between words, `T S`.
      links: The links that are made of them.
      is_forward: Whether rows are distributions over source words.
    """

    name: str
    matrices: Sequence[Matrix]
    links: Sequence[Links]
    is_forward: bool = True

    @classmethod
    def forward(
        cls, name: str, attention: Sequence[WordAttention], params: Params
    ) -> "list[ForcedView]":
        """Makes a view of the attention of a run, and one of each head where there are several.

        Each word's row is of the step that links it.
        """
        heads = len(attention[0].heads) if attention else 0
        named = {name: [each.linking.words for each in attention]}
        for number, head in enumerate(cross_head_names(params, heads) if heads else ()):
            named[f"{name}, {head}"] = [each.linking.heads[number] for each in attention]
        return [
            cls(view, [each.weights for each in words], [each.links() for each in words])
            for view, words in named.items()
        ]

    @classmethod
    def reverse(cls, name: str, attention: Sequence[WordAttention]) -> "ForcedView":
        """Turns the attention of a run of the opposite direction into a view."""
        links = [
            sorted((source, target) for target, source in each.linking.words.links())
            for each in attention
        ]
        turned = [each.linking.weights.T for each in attention]
        return cls(name, turned, links, is_forward=False)

    def aer(self, index: int, golds: Mapping[int, MarkedLinks]) -> dict[str, float]:
        """Returns the alignment error rate of a pair's reference, if it has gold links."""
        if index not in golds:
            return {}
        return {"reference AER": count_links([self.links[index]], [golds[index]]).aer}

    def attentions(
        self, chosen: Sequence[int], golds: Mapping[int, MarkedLinks]
    ) -> list[ViewedAttention]:
        """Returns what is seen of each of these pairs."""
        views = []
        for index in chosen:
            weights = self.matrices[index]
            scores = _scores(weights, weights) if self.is_forward else {}
            views.append(ViewedAttention(weights, scores={**scores, **self.aer(index, golds)}))
        return views


def references_name(name: str) -> str:
    """Returns what the view of a run's references is called."""
    return f"{name}, references"


def output_tokens(one: DecodedRun, chosen: Sequence[int]) -> Views:
    """Shows outputs token by token, and each head where there are several."""
    best = [one.found[index][0] for index in chosen]
    named = {one.name: [each.weights for each in best]}
    if has_heads(one.run, one.split):
        written = one.split.select(chosen).with_target_ids([each.tokens for each in best])
        heads = [forced.heads for forced in forced_attention(one.run, written)]
        for number, head in enumerate(cross_head_names(one.run.params, len(heads[0]))):
            named[f"{one.name}, {head}"] = [each[number] for each in heads]
    return {
        name: [
            _by_token(one, index, dataclasses.replace(hypothesis, weights=weights))
            for index, hypothesis, weights in zip(chosen, best, matrices, strict=True)
        ]
        for name, matrices in named.items()
    }


def _by_token(one: DecodedRun, index: int, hypothesis: Hypothesis) -> ViewedAttention:
    target = one.run.target_vocabulary.tokens(hypothesis.tokens)
    scores = _scores(hypothesis.weights, _covering(one, index, hypothesis))
    return ViewedAttention(hypothesis.weights, target, one.texts[index], scores)


def output_words(
    one: DecodedRun, words: SplitWords, index: int, more: Mapping[str, float]
) -> ViewedAttention:
    """Shows an output between words and without EOS.

    Args:
      one: The run.
      words: Those of the sources are used.
      index: The pair.
      more: Scores of the pair beside its own.
    """
    best, split = one.found[index][0], one.split
    source = tokens_of_words(split.source_vocabulary, split.sources[index], words.sources[index])
    vocabulary = split.target_vocabulary
    ids = best.tokens[:-1]
    target, members = pieces_in_words(vocabulary, vocabulary.tokens(ids), special_places(ids))
    attention = shifted(np.asarray(best.weights, np.float64), one.run.alignment_shift)
    weights = between_words(attention, source, members)
    scores = {**_scores(weights, _covering(one, index, best)), **more}
    return ViewedAttention(weights, target, one.texts[index], scores)


def _covering(one: DecodedRun, index: int, hypothesis: Hypothesis) -> Matrix:
    split = one.split
    return covering_weights(
        hypothesis.weights,
        word_pieces(split.source_vocabulary, split.source_ids[index], split.sources[index]),
        word_pieces(split.target_vocabulary, hypothesis.tokens),
    )


def _scores(weights: Matrix, covering: Matrix) -> dict[str, float]:
    deviation = coverage_deviation(fertility(covering))
    return {"entropy": _entropy(weights), "coverage deviation": deviation}


def _entropy(weights: Matrix) -> float:
    return float(normalized_entropy(weights).mean()) if len(weights) else 0.0
