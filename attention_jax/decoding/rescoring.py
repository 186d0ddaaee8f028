"""Rescoring: the probabilities of lines of text as lines of text, and n-best lists ranked anew."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from attention_jax.data.examples import Split
from attention_jax.data.lines import read_lines, read_pairs
from attention_jax.decoding.attention_aligner import weights_of_pair
from attention_jax.decoding.scoring import ScoredPair, Scorer, check_numbers, given_pairs
from attention_jax.decoding.translate import SEPARATOR
from attention_jax.errors import DataError
from attention_jax.evaluation.alignment import to_pharaoh
from attention_jax.runs.load import TrainedRun


class Listed(NamedTuple):
    """N-best list: one line of a file of them.

    Attributes:
      place: File and line, for messages.
      number: The number of its source, from 0.
      output: The text of the output.
    """

    place: str
    number: int
    output: str


def scored_lines(
    run: TrainedRun,
    source: str | Path | None,
    target: str | Path,
    further: Mapping[str, Sequence[str]] = {},
    *,
    tokens: bool = False,
    alignments: bool = False,
) -> Iterator[str]:
    """Scores files of sources and outputs: yields `LOG_PROBABILITY SCORE TOKENS` for each pair.

    Args:
      run: A trained run.
      source: The sources, one a line; None for a language model, which reads none.
      target: The outputs, one for each source.
      further: The lines of each further source that the model reads, by its name.
      tokens: Whether ` ||| ` and the log-probability of each token follow.
      alignments: Whether ` ||| ` and the word alignment follow.

    Raises:
      DataError: If a file cannot be read, or they have different numbers of lines.
    """
    if source is None:
        targets = read_lines(target)
        pairs = [("", text) for text in targets]
    else:
        pairs = read_pairs(source, target)
    sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))
    split = given_pairs(run, sources, targets, further)
    for block, found in Scorer(run, with_attention=alignments).in_blocks(split):
        for index, pair in enumerate(found):
            total = f"{pair.log_prob:.4f} {pair.score:.4f} {len(pair.tokens)}"
            further = _further(run, block, index, pair, tokens)
            yield SEPARATOR.join([total, *further])


def ranked_lists(
    run: TrainedRun,
    source: str | Path | None,
    nbest: str | Path,
    further: Mapping[str, Sequence[str]] = {},
    *,
    tokens: bool = False,
    alignments: bool = False,
) -> Iterator[str]:
    """Ranks n-best lists: yields `NUMBER ||| OUTPUT ||| LOG_PROBABILITY SCORE`, best first.

    Args:
      run: A trained run.
      source: The sources, one a line; None for a language model.
      nbest: Lines of `NUMBER ||| OUTPUT ||| ...`, as Moses and `launch.translate` write them.
      further: The lines of each further source, one for each source.
      tokens: As for `scored_lines`.
      alignments: As there.

    Raises:
      DataError: If a file cannot be read, or a line is of no source.
    """
    listed = read_nbest(nbest)
    sources: Sequence[str] = [""] * len(listed)
    if source is not None:
        lines = read_lines(source)
        sources = _sources_of(listed, lines)
        check_numbers(len(lines), further)
        further = {name: _sources_of(listed, texts) for name, texts in further.items()}
    split = given_pairs(run, sources, [each.output for each in listed], further)
    found = Scorer(run, with_attention=alignments)(split)
    for index in sorted(range(len(listed)), key=lambda n: (listed[n].number, -found[n].score)):
        pair, (_, number, output) = found[index], listed[index]
        fields = [str(number), output, f"{pair.log_prob:.4f} {pair.score:.4f}"]
        yield SEPARATOR.join([*fields, *_further(run, split, index, pair, tokens)])


def read_nbest(path: str | Path) -> list[Listed]:
    """Reads n-best lists, `NUMBER ||| OUTPUT ||| ...`; what follows the output is not read.

    Raises:
      DataError: If the file cannot be read, or a line is of another form.
    """
    found = []
    for count, line in enumerate(read_lines(path), start=1):
        number, separator, rest = line.partition(SEPARATOR)
        if not separator or not number.strip().isdecimal():
            raise DataError(f"{path}:{count}: expected LINE ||| OUTPUT ||| ..., found {line!r:.80}")
        found.append(Listed(f"{path}:{count}", int(number), rest.split(SEPARATOR)[0]))
    return found


def _sources_of(listed: Sequence[Listed], sources: Sequence[str]) -> list[str]:
    for place, number, _ in listed:
        if number >= len(sources):
            raise DataError(
                f"{place}: expected a line of the {len(sources)} sources, counted from 0, found "
                f"{number}"
            )
    return [sources[each.number] for each in listed]


def _further(
    run: TrainedRun, split: Split, index: int, pair: ScoredPair, tokens: bool
) -> Iterator[str]:
    if tokens:
        yield " ".join(f"{value:.4f}" for value in pair.log_probs)
    if pair.weights is not None:
        yield to_pharaoh(weights_of_pair(run, split, index, pair).links())
