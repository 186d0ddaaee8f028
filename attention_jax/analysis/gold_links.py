"""Gold alignments: compares forced attention with them, alone or with the opposite direction's."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from attention_jax.analysis.other_runs import OtherRun
from attention_jax.data.examples import Split
from attention_jax.data.lines import read_lines
from attention_jax.data.task import Statistics
from attention_jax.decoding.word_units import (
    SplitWords,
    WordAttention,
    forced_words,
    split_words,
)
from attention_jax.errors import UserError, quoted
from attention_jax.evaluation.aer import count_links, error_rate
from attention_jax.evaluation.attention_alignment import score_attention
from attention_jax.evaluation.pharaoh import (
    MarkedLinks,
    is_numbered,
    may_count_from_one,
    parse_gold,
)
from attention_jax.evaluation.symmetrization import METHODS
from attention_jax.evaluation.symmetrized_attention import score_both_directions, score_threshold
from attention_jax.evaluation.word_weights import WordWeights
from attention_jax.runs.load import TrainedRun
from attention_jax.spaced_words import spaced_words

# Rows of the tables for the screen, by the suffix that the names of their scores have.
_LINKS = {"": "forward", "_reverse": "reverse"}
_LINKS |= {f"_{method.replace('-', '_')}": method for method in METHODS}
_LINKS |= {"_product": "product of weights", "_geometric_mean": "geometric mean of weights"}
_SHIFTED = {
    "": "as it is",
    "_before": "row before",
    "_after": "row after",
    "_source_before": "column before",
    "_source_after": "column after",
}


@dataclasses.dataclass(frozen=True)
class GoldLinks:
    """Gold links of all or some pairs of a split.

    Attributes:
      links: The links by the number of their pair.
      source_words: The words to which links refer, for each source of the split; None if they are
        the split's texts, divided at spaces. They may differ from the texts in case and entities
        such as `&apos;`.
      target_words: The same for the targets.
    """

    links: Mapping[int, MarkedLinks]
    source_words: Sequence[Sequence[str]] | None = None
    target_words: Sequence[Sequence[str]] | None = None


@dataclasses.dataclass(frozen=True)
class GoldFiles:
    """Files of gold links, as the command line names them.

    Attributes:
      links: A file as `parse_gold` reads it; None for no comparison.
      base: The number of a sentence's first word in it.
      source: A file of the source words to which links refer, separated by spaces, or its lines;
        None if they are the split's own.
      target: The same for the targets.
      lines: Its lines, where they are given and in no file; `links` is what messages call them.
    """

    links: str | None = None
    base: str = "0"
    source: str | Sequence[str] | None = None
    target: str | Sequence[str] | None = None
    lines: Sequence[str] | None = None

    @classmethod
    def given(
        cls,
        links: str | Path | Sequence[str | Iterable[Sequence[int]]] | None,
        base: int = 0,
        source: str | Path | Sequence[str] | None = None,
        target: str | Path | Sequence[str] | None = None,
    ) -> Self:
        """Gold links from Python: a file, or the links of each pair as a line or as pairs.

        Args:
          links: The path of a file; or for each pair a line as of one, such as `0-0 1?1`, or its
            sure links `(source, target)`; None for no comparison.
          base: The number of a sentence's first word in them.
          source: The path of a file of source words to which they refer, or its lines.
          target: The same for the targets.

        Raises:
          UserError: If they are given otherwise.
        """
        if base not in (0, 1):
            raise UserError(f"--alignment_base: expected 0 or 1, found {base}")
        sides = (str(side) if isinstance(side, Path) else side for side in (source, target))
        if links is None or isinstance(links, str | Path):
            return cls(links and str(links), str(base), *sides)
        return cls("gold", str(base), *sides, [*map(_line, links, itertools.count())])

    def check(self) -> None:
        """Checks that flags about gold links come with a file of them.

        Raises:
          UserError: If they do not.
        """
        given = {"base": self.base != "0", "source": self.source, "target": self.target}
        for name, is_given in given.items():
            if is_given and not self.links:
                raise UserError(f"--alignment_{name}: expected --alignment beside it, found none")

    def check_files(self, splits: Sequence[str]) -> None:
        """Checks that the files can be read, before there are pairs that they could be of.

        Args:
          splits: Names of the splits that are evaluated.

        Raises:
          UserError: As `read`, but for what it compares with the split.
        """
        self.check()
        if self.links:
            self._require_one(splits)
            self._parsed(self._read_lines())
        for side in (self.source, self.target):
            if isinstance(side, str):
                read_lines(side)

    def read(
        self, splits: Sequence[Split], note: Callable[[str], None] = lambda line: None
    ) -> GoldLinks | None:
        """Reads the files, or returns None if there are none.

        Args:
          splits: The splits that are evaluated.
          note: Called with a line if words seem to be counted from 1 while `base` is 0.

        Raises:
          UserError: As `check`; or if there is more than one split, a file cannot be read, there
            are no links at all, or they do not fit the split: their number of lines, the numbers of
            their pairs, or the words of their pair.
        """
        self.check()
        if not self.links:
            return None
        self._require_one([split.name for split in splits])
        (split,) = splits
        lines, base = self._read_lines(), int(self.base)
        if not is_numbered(lines) and len(lines) != len(split):
            raise UserError(
                f"{self.links}: expected {len(split)} lines, one for each pair of {split.name}, "
                f"found {len(lines)}; links of some pairs are NUMBER<TAB>LINKS"
            )
        golds = self._parsed(lines)
        if max(golds) >= len(split):
            raise UserError(
                f"{self.links}: expected pairs of {split.name}, below {len(split)}, "
                f"found {max(golds)}"
            )
        given = {"source": self.source, "target": self.target}
        sides = [_words(side, name, len(split)) for name, side in given.items()]
        words = split_words(split, *sides, required=golds)
        lengths = [*zip(map(len, words.sources), map(len, words.targets), strict=True)]
        # Again, with the words' numbers: which pairs need words is known from the first reading.
        parse_gold(lines, self.links, base=base, lengths=lengths)
        if base == 0 and may_count_from_one(golds.values()):
            note(f"{self.links}: no link names word 0: counted from 1? --alignment_base=1")
        return GoldLinks(golds, *sides)

    def _read_lines(self) -> Sequence[str]:
        return read_lines(self.links) if self.lines is None else self.lines

    def _require_one(self, splits: Sequence[str]) -> None:
        if len(splits) != 1:
            found = ", ".join(splits)
            raise UserError(f"--alignment: expected one --split beside it, found {found}")

    def _parsed(self, lines: Sequence[str]) -> dict[int, MarkedLinks]:
        """Parses the links; UserError if they are malformed, or there are none at all."""
        golds = parse_gold(lines, self.links, base=int(self.base))
        if not any(gold.possible for gold in golds.values()):
            raise UserError(f"{self.links}: expected links, found none in {len(lines)} lines")
        return golds


def _line(links: str | Iterable[Sequence[int]], number: int) -> str:
    """Returns the links of a pair as a line of a file."""
    if isinstance(links, str):
        return links
    try:
        return " ".join(f"{int(source)}-{int(target)}" for source, target in links)
    except (TypeError, ValueError):
        raise UserError(
            f"gold[{number}]: expected links such as '0-0 1-2' or [(0, 0), (1, 2)], found "
            f"{quoted(links)}"
        ) from None


@dataclasses.dataclass(frozen=True, eq=False)
class GoldComparison:
    """Forced attention between the words of a split, all or some pairs of which have gold links.

    Attributes:
      links: Gold links by the number of their pair.
      words: The words of every pair.
      forward: Attention of the run for every pair.
      reverse: The same of a run of the opposite direction, or of a two-way aligner; or None.
      shift: The step whose attention links a word, counted from the one that writes it; `linking`
        of `forward` and `reverse` is shifted by it.
    """

    links: Mapping[int, MarkedLinks]
    words: SplitWords
    forward: Sequence[WordAttention]
    reverse: Sequence[WordAttention] | None = None
    shift: int = 0

    def scores(self, threshold: float | None = None) -> dict[str, float]:
        """Alignment error rate and other scores; see `score_attention`, `score_both_directions`.

        Match and probability mass, which try shifts themselves, are computed without this shift.

        Args:
          threshold: If given, all links of at least this weight are scored too.
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
            for each in dict.fromkeys((None, threshold)):  # once, if there is no threshold
                scores |= score_both_directions(forward, reverse, golds, each)
        return scores

    def statistics(self) -> Statistics:
        """Sufficient statistics: returns the counts of links of each pair, of which AER is made."""
        pairs = [(self.forward[number], self.links[number]) for number in sorted(self.links)]
        counts = [count_links([each.linking.words.links()], [links]) for each, links in pairs]
        rows = [(each.links, each.sure, each.sure_hits, each.possible_hits) for each in counts]
        return {"aer": (np.array(rows, float), error_rate)}

    def _with_links(self, attention: Sequence[WordAttention]) -> list[WordWeights]:
        return [attention[number].linking.words for number in sorted(self.links)]


def compare_with_gold(
    run: TrainedRun,
    split: Split,
    gold: GoldLinks,
    reverse: OtherRun | None = None,
    shift: int | None = None,
) -> GoldComparison:
    """Forced decoding: computes attention to the references of a split, to compare with gold links.

    Args:
      run: The run.
      split: Its split.
      gold: The gold links of all or some of its pairs.
      reverse: A run of the opposite direction.
      shift: A word is linked by the attention of so many steps after the one that writes it; with
        1 that is the step which reads the word, for the last word the one that writes EOS. None for
        the shift with which each run learnt to align.

    Raises:
      UserError: If a model has no attention to words, the words of the links are not those of the
        texts, or the other run is not of the opposite direction.
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
    if backward is None and "opposite_alignment" in run.model.provides:
        backward = [each.turned for each in forward]
    return GoldComparison(gold.links, words, forward, backward, steps)


def format_alignment(
    split: str, scores: Mapping[str, float], attributions: Mapping[str, str] = {}
) -> str:
    """Formats what `GoldComparison.scores` has computed for a split as lines for the screen.

    Args:
      split: Its name.
      scores: These scores, and those of attributions.
      attributions: What each attribution method is called.
    """
    further = {f"_{method}": label for method, label in attributions.items()}
    links = {f"{kind}{end}": name + (", by threshold" if kind else "")
             for kind in ("", "_threshold")
             for end, name in {**_LINKS, **further}.items()}  # fmt: skip
    return "\n".join([
        *_table(f"{split}, links against gold ones", links, scores,
                {"precision": "alignment_precision", "recall": "alignment_recall", "AER": "aer"}),
        *_table(f"{split}, attention against gold links", {**_SHIFTED, **further}, scores,
                {"match": "match", "mass": "probability_mass"}),
    ])  # fmt: skip


def _table(
    title: str, rows: Mapping[str, str], scores: Mapping[str, float], columns: Mapping[str, str]
) -> list[str]:
    """Returns a line for each row that was measured; names of scores end in the row's suffix."""
    lines = [f"{title}:".ljust(40) + "".join(f"{name:>10}" for name in columns)]
    for end, name in rows.items():
        values = [scores.get(f"{column}{end}") for column in columns.values()]
        if None not in values:
            lines.append(f"  {name:<38}" + "".join(f"{value:10.2f}" for value in values))
    return lines


def _check_aligning(run: TrainedRun, flag: str) -> None:
    if not run.links_tokens:
        raise UserError(f"{flag}: expected a model with attention to the source, found none")


def _words(given: str | Sequence[str] | None, side: str, count: int) -> list[list[str]] | None:
    """Returns the words of a file, or of its lines: one a sentence, separated by spaces."""
    if given is None:
        return None
    is_file = isinstance(given, str)
    lines, name = (read_lines(given), given) if is_file else (given, f"--alignment_{side}")
    if len(lines) != count:
        raise UserError(f"{name}: expected {count} lines, one for each pair, found {len(lines)}")
    return [spaced_words(line) for line in lines]
