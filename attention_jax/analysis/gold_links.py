"""Forced attention compared with gold links, alone or with a run of the other direction."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from attention_jax.analysis.other_runs import OtherRun
from attention_jax.data.examples import Split
from attention_jax.data.lines import read_lines
from attention_jax.decoding.word_units import (
    SplitWords,
    WordAttention,
    forced_words,
    split_words,
)
from attention_jax.errors import UserError
from attention_jax.evaluation.attention_alignment import score_attention
from attention_jax.evaluation.pharaoh import (
    MarkedLinks,
    is_numbered,
    may_count_from_one,
    parse_gold,
)
from attention_jax.evaluation.symmetrized_attention import score_both_directions, score_threshold
from attention_jax.evaluation.word_weights import WordWeights
from attention_jax.runs.load import TrainedRun
from attention_jax.spaced_words import spaced_words


@dataclasses.dataclass(frozen=True)
class GoldLinks:
    """Gold links of some pairs of a split.

    Attributes:
      links: By the number of the pair.
      source_words: The words that the links count, for each source of the split; None where they
        are its texts, split at spaces. Case and entities such as `&apos;` may differ.
      target_words: Likewise for the targets.
    """

    links: Mapping[int, MarkedLinks]
    source_words: Sequence[Sequence[str]] | None = None
    target_words: Sequence[Sequence[str]] | None = None


@dataclasses.dataclass(frozen=True)
class GoldFiles:
    """Where gold links come from: the paths of the command line.

    Attributes:
      links: A file as `parse_gold` reads it; None for no comparison.
      base: The number of a sentence's first word in it.
      source: A file of the words that the links count, split at spaces, or None.
      target: Likewise for the targets.
    """

    links: str | None = None
    base: str = "0"
    source: str | None = None
    target: str | None = None

    def check(self) -> None:
        """Makes sure that nothing is said of links that are not given.

        Raises:
          UserError: If it is.
        """
        given = {"base": self.base != "0", "source": self.source, "target": self.target}
        for name, is_given in given.items():
            if is_given and not self.links:
                raise UserError(f"--alignment_{name}: expected --alignment beside it, found none")

    def read(
        self, splits: Sequence[Split], note: Callable[[str], None] = lambda line: None
    ) -> GoldLinks | None:
        """Reads what is there.

        Args:
          splits: What is evaluated.
          note: Called with a line where the words seem to be counted from 1 and `base` is 0.

        Raises:
          UserError: As `check`; or if there is not one split, or a file cannot be read or does not
            fit it: links for all pairs or, with their numbers, for some, within the words of their
            pair, and at least one of them.
        """
        self.check()
        if not self.links:
            return None
        if len(splits) != 1:
            names = ", ".join(split.name for split in splits)
            raise UserError(f"--alignment: expected one --split beside it, found {names}")
        (split,) = splits
        lines, base = read_lines(self.links), int(self.base)
        if not is_numbered(lines) and len(lines) != len(split):
            raise UserError(
                f"{self.links}: expected {len(split)} lines, one for each pair of {split.name}, "
                f"found {len(lines)}; links of some pairs are NUMBER<TAB>LINKS"
            )
        golds = parse_gold(lines, self.links, base=base)
        if not any(gold.possible for gold in golds.values()):
            raise UserError(f"{self.links}: expected links, found none in {len(lines)} lines")
        if max(golds) >= len(split):
            raise UserError(
                f"{self.links}: expected pairs of {split.name}, below {len(split)}, "
                f"found {max(golds)}"
            )
        sides = [_words(path, len(split)) for path in (self.source, self.target)]
        words = split_words(split, *sides, required=golds)
        lengths = [*zip(map(len, words.sources), map(len, words.targets), strict=True)]
        parse_gold(lines, self.links, base=base, lengths=lengths)
        if base == 0 and may_count_from_one(golds.values()):
            note(f"{self.links}: no link names word 0: counted from 1? --alignment_base=1")
        return GoldLinks(golds, *sides)


@dataclasses.dataclass(frozen=True, eq=False)
class GoldComparison:
    """Forced attention between the words of a split, of which some pairs have gold links.

    Attributes:
      links: Gold links by the number of their pair.
      words: The words of every pair.
      forward: Attention of the run for every pair.
      reverse: Likewise of a run of the opposite direction, or None.
      shift: The step after the one that writes a word whose attention links it, in both directions;
        `forward` and `reverse` then have it as `shifted`.
    """

    links: Mapping[int, MarkedLinks]
    words: SplitWords
    forward: Sequence[WordAttention]
    reverse: Sequence[WordAttention] | None = None
    shift: int = 0

    def scores(self, threshold: float | None = None) -> dict[str, float]:
        """Returns what is compared; see `score_attention` and `score_both_directions`.

        Match and probability mass, which have shifts of their own, are of the attention as it is.

        Args:
          threshold: Also scores the links that have at least this weight.
        """
        golds = [self.links[number] for number in sorted(self.links)]
        forward = self._with_links(self.forward)
        scores = score_attention(forward, golds)
        if self.shift:
            as_it_is = [self.forward[number].weights for number in sorted(self.links)]
            scores |= {
                name: value
                for name, value in score_attention(as_it_is, golds).items()
                if name.startswith(("match", "probability_mass"))
            }
            scores["alignment_shift"] = self.shift
        if threshold is not None:
            scores |= score_threshold(forward, golds, threshold)
            scores["alignment_threshold"] = threshold
        if self.reverse is not None:
            reverse = self._with_links(self.reverse)
            for each in dict.fromkeys((None, threshold)):
                scores |= score_both_directions(forward, reverse, golds, each)
        return scores

    def _with_links(self, attention: Sequence[WordAttention]) -> list[WordWeights]:
        return [attention[number].linking.words for number in sorted(self.links)]


def compare_with_gold(
    run: TrainedRun,
    split: Split,
    gold: GoldLinks,
    reverse: OtherRun | None = None,
    shift: int | None = None,
) -> GoldComparison:
    """Writes the references of a split with a run, to compare its attention with gold links.

    Args:
      run: The run.
      split: Its split.
      gold: The links of some of its pairs.
      reverse: A run of the opposite direction.
      shift: Links are read from the attention of so many steps after the one that writes a word;
        with 1 the step that is fed with it, and that of EOS for the last word. None for the one
        that each run was taught to align at.

    Raises:
      UserError: If a model has no attention to words, words are not those of the text, or the
        other run is not of the opposite direction.
    """
    _check_aligning(run, "--alignment")
    words = split_words(split, gold.source_words, gold.target_words, required=gold.links)
    backward = None
    if reverse is not None:
        _check_aligning(reverse.run, "--reverse")
        opposite = reverse.opposite_split(split)
        steps = reverse.run.alignment_shift if shift is None else shift
        backward = forced_words(reverse.run, opposite, words.swapped(), steps)
    steps = run.alignment_shift if shift is None else shift
    forward = forced_words(run, split, words, steps)
    return GoldComparison(gold.links, words, forward, backward, steps)


def _check_aligning(run: TrainedRun, flag: str) -> None:
    if not run.links_tokens:
        raise UserError(f"{flag}: expected a model with attention to the source, found none")


def _words(path: str | None, count: int) -> list[list[str]] | None:
    if path is None:
        return None
    lines = read_lines(path)
    if len(lines) != count:
        raise UserError(f"{path}: expected {count} lines, one for each pair, found {len(lines)}")
    return [spaced_words(line) for line in lines]
