"""Trained word aligners: what was learnt from one text links the words of another."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from attention_jax.data.alignment import agreement, hmm, ibm1, spelling
from attention_jax.data.alignment.aligners import (
    DIRECTIONS,
    MAX_WORDS,
    prefixed,
    report_unusable,
    turned,
    usable_pairs,
)
from attention_jax.data.alignment.bitext import (
    Bitext,
    Links,
    Sentence,
    links_from_states,
    make_bitext,
    vocabulary,
)
from attention_jax.data.alignment.ibm1 import Report
from attention_jax.errors import UserError

Sides = tuple[Sequence[Sentence], Sequence[Sentence]]
Parameters = tuple[np.ndarray, ...]  # t of every word pair, and of an HMM the weights of jumps


@dataclasses.dataclass(frozen=True, eq=False)
class DirectedAligner:
    """Word aligner of one direction, apart from the text that it was trained on.

    Attributes:
      source_words: The words from which others come, in lower case; NULL has the number behind.
      target_words: The words that come from them.
      sources: Of each pair of words that share a sentence pair, the number of its source word.
      targets: The same for its target word. Pairs are in the order of both numbers.
      probs: t(e|f) of each pair.
      unseen_probs: For each source word and NULL, t(e|f) of any other target word.
      jumps: Weights of jumps of an HMM; empty for Model 1.
    """

    source_words: Sequence[str]
    target_words: Sequence[str]
    sources: Int[np.ndarray, " pairs"]
    targets: Int[np.ndarray, " pairs"]
    probs: Float[np.ndarray, " pairs"]
    unseen_probs: Float[np.ndarray, " states"]
    jumps: Float[np.ndarray, " widths"]

    def parameters(self, bitext: Bitext, sides: Sides) -> Parameters:
        """Returns the parameters for the word pairs and the lengths of another text.

        Two words of the training text that never met have what the smoothing leaves to such pairs,
        and so has a word that only the target's training text lacks; from a source word that was
        never seen all words are equally probable.

        Args:
          bitext: The text, with NULL.
          sides: Its sentences.
        """
        table = self._table(
            _places(vocabulary(sides[0]), self.source_words, null=True)[bitext.source_of],
            _places(vocabulary(sides[1]), self.target_words)[bitext.target_of],
        )
        if not len(self.jumps):
            return (table,)
        longest = max((block.num_states - 1 for block in bitext.blocks), default=0)
        return table, hmm.widened(self.jumps, longest)

    def _table(
        self, sources: Int[np.ndarray, " wanted"], targets: Int[np.ndarray, " wanted"]
    ) -> Float[np.ndarray, " wanted"]:
        """Looks up t of pairs of words; a word that is not known has the number behind all."""
        columns = len(self.target_words) + 1  # the last is of words that are not known
        known = self.sources.astype(np.int64) * columns + self.targets
        wanted = sources * columns + targets
        place = np.searchsorted(known, wanted).clip(max=len(known) - 1)
        unseen = np.append(self.unseen_probs, 1 / len(self.target_words))
        return np.where(known[place] == wanted, self.probs[place], unseen[sources])


@dataclasses.dataclass(frozen=True, eq=False)
class TrainedAligner:
    """Word aligner that is trained: its method, and each direction that it has learnt."""

    method: str
    directions: Mapping[str, DirectedAligner]


@dataclasses.dataclass(frozen=True)
class _Model:
    """How a method learns the directions of a text, links it, and how probable it finds it.

    Attributes:
      train: Takes the bitexts of the directions by name, their sides, and who is told of the
        progress.
      states: The states of each block, of a bitext and its parameters.
      log_probs: log p(e|f) of the pairs of each block, likewise.
      is_joint: Whether it needs both directions to learn either.
    """

    train: Callable[..., dict[str, Parameters]]
    states: Callable[..., Iterator[np.ndarray]]
    log_probs: Callable[..., Iterator[np.ndarray]]
    is_joint: bool = False


def _ibm1(bitexts, sides, report):
    return {
        name: (ibm1.train(bitext, report=prefixed(report, name)),)
        for name, bitext in bitexts.items()
    }


def _hmm(bitexts, sides, report):
    tables = _ibm1(bitexts, sides, report)
    return {
        name: hmm.train(bitext, *tables[name], report=prefixed(report, name))
        for name, bitext in bitexts.items()
    }


def _agreement(bitexts, sides, report, estimates=agreement.ESTIMATES):
    reports = tuple(prefixed(report, name) for name in bitexts)
    learnt = agreement.train_from_model_1(tuple(bitexts.values()), reports, estimates)
    return dict(zip(bitexts, learnt, strict=True))


def _spelling(bitexts, sides, report):
    estimates = tuple(spelling.estimator(bitexts[name], sides[name]) for name in bitexts)
    return _agreement(bitexts, sides, report, estimates)


MODELS = {
    "ibm1": _Model(_ibm1, ibm1.best_states, ibm1.log_probs),
    "hmm": _Model(_hmm, hmm.best_states, hmm.log_probs),
    "agreement": _Model(_agreement, agreement.likeliest_states, hmm.log_probs, is_joint=True),
    "spelling": _Model(_spelling, agreement.likeliest_states, hmm.log_probs, is_joint=True),
}


def learn(
    sources: Sequence[Sentence],
    targets: Sequence[Sentence],
    method: str,
    directions: Sequence[str] = DIRECTIONS,
    report: Report = lambda line: None,
) -> TrainedAligner:
    """Trains a word aligner on a parallel corpus, to be applied to this or to other texts.

    Args:
      sources: Sentences as words.
      targets: The translation of each.
      method: One of `MODELS`.
      directions: The directions; agreement and spelling learn both in any case.
      report: Called with lines about the progress.

    Raises:
      UserError: If there is nothing to learn from, or the method keeps nothing.
    """
    if method not in MODELS:
        raise UserError(f"expected one of {', '.join(MODELS)} to be kept, found {method}")
    model = MODELS[method]
    sources, targets, usable = usable_pairs(sources, targets)
    if not any(usable):
        raise UserError(f"expected pairs of 1 to {MAX_WORDS} words on both sides, found none")
    sides = {
        name: (sources, targets) if name == "forward" else (targets, sources)
        for name in DIRECTIONS
        if model.is_joint or name in directions
    }
    bitexts = {name: make_bitext(*each) for name, each in sides.items()}
    learnt = model.train(bitexts, sides, report)
    return TrainedAligner(
        method, {name: _kept(bitexts[name], sides[name], *learnt[name]) for name in sides}
    )


def apply(
    aligner: TrainedAligner,
    sources: Sequence[Sentence],
    targets: Sequence[Sentence],
    directions: Sequence[str] = DIRECTIONS,
    report: Report = lambda line: None,
) -> list[list[Links]]:
    """Word alignment: links the words of a text with what was learnt, maybe from another one.

    Of the text that the aligner was trained on, and of any part of it, these are the links that
    training found. Nothing is learnt from the new text.

    Args:
      aligner: A trained aligner.
      sources: Sentences as words.
      targets: The translation of each.
      directions: Those whose links are wanted.
      report: Called with a line if some pairs have no links.

    Returns:
      For each direction the links of every pair, as (source, target) in both directions.

    Raises:
      UserError: If the aligner has not learnt a direction.
    """
    found, usable = [], []
    for direction in directions:
        bitext, parameters, usable = _read(aligner, sources, targets, direction)
        states = MODELS[aligner.method].states(bitext, *parameters)
        links = links_from_states(bitext, states)
        found.append(links if direction == "forward" else turned(links))
    report_unusable(usable, report)
    return found


def mean_log_probs(
    aligner: TrainedAligner,
    sources: Sequence[Sentence],
    targets: Sequence[Sentence],
    directions: Sequence[str] = DIRECTIONS,
) -> list[Float[np.ndarray, " pairs"]]:
    """Scores for filtering: log p(e|f) / T of every pair, how well its sides translate each other.

    Returns:
      For each direction natural logarithms, by word of the side that is generated: of targets in
      `forward`, of sources in `reverse`. Pairs that have no links have minus infinity.

    Raises:
      UserError: If the aligner has not learnt a direction.
    """
    found = []
    for direction in directions:
        bitext, parameters, _ = _read(aligner, sources, targets, direction)
        scores = np.full(bitext.num_pairs, -np.inf)
        log_probs = MODELS[aligner.method].log_probs(bitext, *parameters)
        for block, values in zip(bitext.blocks, log_probs, strict=True):
            scores[block.pairs] = values / block.target_length
        found.append(scores)
    return found


def _read(
    aligner: TrainedAligner,
    sources: Sequence[Sentence],
    targets: Sequence[Sentence],
    direction: str,
) -> tuple[Bitext, Parameters, list[bool]]:
    """Returns a text in one direction, with its parameters and which pairs can have links."""
    if direction not in aligner.directions:
        raise UserError(
            f"expected an aligner of the direction {direction}, found one of "
            f"{', '.join(aligner.directions)}"
        )
    sources, targets, usable = usable_pairs(sources, targets)
    sides = (sources, targets) if direction == "forward" else (targets, sources)
    bitext = make_bitext(*sides)
    return bitext, aligner.directions[direction].parameters(bitext, sides), usable


def _kept(
    bitext: Bitext, sides: Sides, table: ibm1.Table, jumps: hmm.Jumps = np.zeros(0)
) -> DirectedAligner:
    """Returns a direction with the names of its words, apart from its text."""
    words = [vocabulary(side) for side in sides]
    return DirectedAligner(
        *words, bitext.source_of, bitext.target_of, table, _unseen(bitext, table), jumps
    )


def _unseen(bitext: Bitext, table: ibm1.Table) -> Float[np.ndarray, " states"]:
    """Returns t(e|f) of target words that f shares no sentence pair with.

    t(.|f) sums to one over the whole vocabulary, and smoothing leaves the same to all of these. If
    there are none, as of NULL, which meets every word, a word that is new is as improbable as the
    least probable one.
    """
    sums = np.bincount(bitext.source_of, table)
    others = bitext.num_target_words - np.bincount(bitext.source_of)
    least = np.full(len(sums), np.inf)
    np.minimum.at(least, bitext.source_of, table)
    return np.where(others > 0, (1 - sums) / np.maximum(others, 1), least)


def _places(
    words: Sequence[str], known: Sequence[str], *, null: bool = False
) -> Int[np.ndarray, " numbers"]:
    """Returns the number that each word has among those known, and that of NULL if wanted."""
    numbers = {word: number for number, word in enumerate(known)}
    behind = len(known) + null  # NULL itself, where there is one, comes before the unknown
    places = [numbers.get(word, behind) for word in words]
    return np.array(places + [len(known)] * null, np.int64)
