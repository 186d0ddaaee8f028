"""Views of the attention viewer: a run's outputs, its heads, and forced decoding of references."""

import dataclasses
from collections.abc import Mapping, Sequence

from attention_jax.analysis.head_names import cross_head_names
from attention_jax.data.examples import Split
from attention_jax.data.text.words import pieces_in_words, special_places, word_pieces
from attention_jax.decoding.forced_decoding import forced_attention, has_heads
from attention_jax.decoding.origins import origins
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.decoding.word_units import (
    Matrix,
    SplitWords,
    WordAttention,
    tokens_of_words,
)
from attention_jax.evaluation.aer import count_links
from attention_jax.evaluation.alignment import Links
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
      name: The name of its views.
      run: The run.
      split: The split as this run has it, in its own vocabularies.
      found: The hypotheses for each source, best first.
      texts: The best hypothesis for each source, as text.
    """

    name: str
    run: TrainedRun
    split: Split
    found: Sequence[Sequence[Hypothesis]]
    texts: Sequence[str]


@dataclasses.dataclass(frozen=True, eq=False)
class ForcedView:
    """A view of forced decoding of the references, in either direction.

    Attributes:
      name: The name of the view.
      matrices: Weights of every pair between words, `T S`, or of some by their numbers.
      links: The alignment that each matrix makes.
      is_forward: Whether rows are distributions over source words.
    """

    name: str
    matrices: Sequence[Matrix] | Mapping[int, Matrix]
    links: Sequence[Links] | Mapping[int, Links]
    is_forward: bool = True

    @classmethod
    def forward(
        cls, name: str, attention: Sequence[WordAttention], params: Params
    ) -> "list[ForcedView]":
        """Makes a view of a run's attention, and one of each head if there are several.

        A word's row is the attention of the step that links it; see `EvaluationRequest`.
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
        """Makes a view of the opposite direction's attention, transposed to `T S`."""
        links = [
            sorted((source, target) for target, source in each.linking.words.links())
            for each in attention
        ]
        turned = [each.linking.weights.T for each in attention]  # S T -> T S
        return cls(name, turned, links, is_forward=False)

    def aer(self, index: int, golds: Mapping[int, MarkedLinks]) -> dict[str, float]:
        """Returns a pair's alignment error rate, or nothing if it has no gold links."""
        if index not in golds:
            return {}
        return {"reference AER": count_links([self.links[index]], [golds[index]]).aer}

    def attentions(
        self, chosen: Sequence[int], golds: Mapping[int, MarkedLinks]
    ) -> list[ViewedAttention]:
        """Returns the attention and the scores of the chosen pairs."""
        views = []
        for index in chosen:
            weights = self.matrices[index]
            # Columns of the reverse direction are distributions: entropy over rows means nothing.
            scores = _scores(weights, weights) if self.is_forward else {}
            views.append(ViewedAttention(weights, scores={**scores, **self.aer(index, golds)}))
        return views


def references_name(name: str) -> str:
    """Returns the name of the view of a run's references."""
    return f"{name}, references"


def output_tokens(one: DecodedRun, chosen: Sequence[int]) -> Views:
    """Attention between tokens: views of a run's outputs, and of each head if there are several.

    A token's row is the attention of the step that links it.
    """
    run, best = one.run, [one.found[index][0] for index in chosen]
    named = {one.name: [run.linking_weights(each.weights) for each in best]}
    if has_heads(run, one.split):
        # A search keeps one matrix an output; forced decoding of the outputs gives every head's.
        written = one.split.select(chosen).with_target_ids([each.tokens for each in best])
        heads = [run.linking_heads(forced.heads) for forced in forced_attention(run, written)]
        for number, head in enumerate(cross_head_names(run.params, len(heads[0]))):
            named[f"{one.name}, {head}"] = [each[number] for each in heads]
    if run.tells_origins:
        written = one.split.select(chosen).with_target_ids([each.tokens for each in best])
        # What is missing of a row was generated.
        named[f"{one.name}, copied"] = [each.copied for each in origins(run, written)]
    return {
        name: [
            _by_token(one, index, hypothesis, weights)
            for index, hypothesis, weights in zip(chosen, best, matrices, strict=True)
        ]
        for name, matrices in named.items()
    }


def _by_token(
    one: DecodedRun, index: int, hypothesis: Hypothesis, weights: Matrix
) -> ViewedAttention:
    """Returns a view of one output between tokens."""
    target = hypothesis.vocabulary(one.run.target_vocabulary).tokens(hypothesis.tokens)
    scores = _scores(weights, _covering(one, index, hypothesis, weights))
    return ViewedAttention(weights, target, one.texts[index], scores)


def output_words(
    one: DecodedRun, words: SplitWords, index: int, more: Mapping[str, float]
) -> ViewedAttention:
    """Attention between words: a view of a run's output, without EOS.

    Args:
      one: The run.
      words: The words of the split, of which those of the sources are used.
      index: The number of the pair.
      more: Further scores of the pair.
    """
    best, split = one.found[index][0], one.split
    source = tokens_of_words(split.source_vocabulary, split.sources[index], words.sources[index])
    vocabulary = best.vocabulary(split.target_vocabulary)
    ids = best.tokens[:-1]  # without EOS
    target, members = pieces_in_words(vocabulary, vocabulary.tokens(ids), special_places(ids))
    attention = one.run.linking_weights(best.weights)
    weights = between_words(attention, source, members)
    scores = {**_scores(weights, _covering(one, index, best, attention)), **more}
    return ViewedAttention(weights, target, one.texts[index], scores)


def _covering(one: DecodedRun, index: int, hypothesis: Hypothesis, weights: Matrix) -> Matrix:
    """Returns how much each word of an output covers each source word, by its tokens' weights."""
    split = one.split
    return covering_weights(
        weights,
        word_pieces(split.source_vocabulary, split.source_ids[index], split.sources[index]),
        word_pieces(hypothesis.vocabulary(split.target_vocabulary), hypothesis.tokens),
    )


def _scores(weights: Matrix, covering: Matrix) -> dict[str, float]:
    deviation = coverage_deviation(fertility(covering))
    return {**entropy_score(weights), "coverage deviation": deviation}


def entropy_score(weights: Matrix) -> dict[str, float]:
    """Attention entropy: returns the mean over the rows that have weight; 0 where none has."""
    rows = normalized_entropy(weights)[weights.any(axis=1)]
    return {"entropy": float(rows.mean()) if len(rows) else 0.0}
