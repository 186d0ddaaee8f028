"""The commands of `launch.align`: each reads its files, then writes one or prints scores."""

import dataclasses
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import flags

from attention_jax.commands import cli
from attention_jax.errors import DataError, UserError
from attention_jax.evaluation import symmetrization
from attention_jax.evaluation.symmetrization import METHODS

_DIRECTIONS = ("forward", "reverse")
_DEFAULT = "grow-diag-final-and"

Links = frozenset[tuple[int, int]]


def define_train_flags() -> None:
    """Flags of `train`."""
    from attention_jax.data.alignment.aligners import METHODS as ALIGNERS

    flags.DEFINE_string("source", None, "Text file.")
    flags.DEFINE_string("target", None, "Its translation, line by line.")
    flags.DEFINE_enum("method", "hmm", list(ALIGNERS), "The aligner.")
    flags.DEFINE_enum("symmetrization", _DEFAULT, METHODS + _DIRECTIONS, "What is written.")
    flags.DEFINE_string("output", None, "Where links are written.")


def train() -> None:
    """Aligns a parallel corpus."""
    from attention_jax.data.alignment.aligners import align
    from attention_jax.data.lines import read_pairs

    output, method = _output(), _value("method")
    pairs = read_pairs(cli.require("source"), cli.require("target"))
    sources, targets = ([text.split() for text in side] for side in zip(*pairs, strict=True))
    chosen = _value("symmetrization")
    if chosen in _DIRECTIONS:
        (links,) = align(sources, targets, method, [chosen], _say)
    else:
        links = _symmetrized(*align(sources, targets, method, _DIRECTIONS, _say), chosen)
    _write(output, links)


def define_symmetrize_flags() -> None:
    """Flags of `symmetrize`."""
    flags.DEFINE_string("forward", None, "Links of one direction.")
    flags.DEFINE_string("reverse", None, "Links of the other.")
    flags.DEFINE_enum("method", _DEFAULT, METHODS, "The heuristic.")
    flags.DEFINE_bool("strict", False, "Whether both words of a neighbour must be free.")
    flags.DEFINE_bool("transposed", False, "Whether --reverse has its links as target-source.")
    flags.DEFINE_string("output", None, "Where links are written.")


def symmetrize() -> None:
    """Combines the alignments of both directions."""
    output = _output()
    forward = _read_links("forward")
    reverse = _read_links("reverse", transpose=_value("transposed"))
    if len(reverse) != len(forward):
        raise DataError(
            f"{cli.require('reverse')}: expected {len(forward)} lines as in "
            f"{cli.require('forward')}, found {len(reverse)}"
        )
    _note_other_bases({"forward": forward, "reverse": reverse})
    _write(output, _symmetrized(forward, reverse, _value("method"), strict=_value("strict")))


def define_score_flags() -> None:
    """Flags of `score`."""
    flags.DEFINE_string("gold", None, "Gold links.")
    flags.DEFINE_string("hypothesis", None, "Links to score.")
    for name, base in (("gold_base", 1), ("hypothesis_base", 0)):
        flags.DEFINE_integer(name, base, "The first word's number.", lower_bound=0, upper_bound=1)
    flags.DEFINE_bool("transposed", False, "Whether --hypothesis has its links as target-source.")
    flags.DEFINE_string("source", None, "The text, to check links against.")
    flags.DEFINE_string("target", None, "Its translation.")


def score() -> None:
    """Prints precision, recall and AER."""
    from attention_jax.data.lines import read_lines
    from attention_jax.evaluation.aer import count_links
    from attention_jax.evaluation.pharaoh import (
        is_numbered,
        marked_links,
        may_count_from_one,
        parse_gold,
    )

    gold, hypothesis = cli.require("gold"), cli.require("hypothesis")
    lengths = _lengths()
    lines = read_lines(gold)
    golds = parse_gold(lines, gold, base=_value("gold_base"), lengths=lengths)
    links = _read_links(
        "hypothesis", _value("hypothesis_base"), transpose=_value("transposed"), lengths=lengths
    )
    needed = max(golds) + 1
    if len(links) < needed or (len(links) > needed and not is_numbered(lines)):
        raise DataError(f"{hypothesis}: expected {needed} lines as in {gold}, found {len(links)}")
    for name, found in (("gold", golds.values()), ("hypothesis", map(marked_links, links))):
        if _value(f"{name}_base") == 0 and may_count_from_one(found):
            cli.note(f"{cli.value(name)}: no link names word 0: counted from 1? --{name}_base=1")
    counts = count_links([links[pair] for pair in golds], list(golds.values()))
    for name, value in (
        ("precision", f"{counts.precision:.1f}"),
        ("recall", f"{counts.recall:.1f}"),
        ("AER", f"{counts.aer:.1f}"),
        ("links", f"{counts.links}"),
    ):
        print(f"{name:10}{value:>6}")


@dataclasses.dataclass(frozen=True)
class Command:
    """A command of the program.

    Attributes:
      define_flags: Defines its flags.
      run: Runs it, once they are parsed.
    """

    define_flags: Callable[[], None]
    run: Callable[[], None]


COMMANDS = {
    "train": Command(define_train_flags, train),
    "symmetrize": Command(define_symmetrize_flags, symmetrize),
    "score": Command(define_score_flags, score),
}


def _value(name: str) -> Any:
    return flags.FLAGS[name].value


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _read_links(
    flag: str,
    base: int = 0,
    *,
    transpose: bool = False,
    lengths: Sequence[tuple[int, int]] | None = None,
) -> list[Links]:
    """Reads a file of links; `lengths` are (source, target) whether they are transposed or not."""
    from attention_jax.data.lines import read_lines
    from attention_jax.evaluation.pharaoh import parse_lines, transposed

    path = cli.require(flag)
    if transpose and lengths is not None:
        lengths = [(target, source) for source, target in lengths]
    marked = parse_lines(read_lines(path), path, base=base, lengths=lengths)
    return [(transposed(each) if transpose else each).possible for each in marked]


def _note_other_bases(directions: Mapping[str, Sequence[Links]]) -> None:
    """Says where the words of one direction seem to be counted from 1, those of the other not."""
    from attention_jax.evaluation.pharaoh import marked_links, may_count_from_one

    names = [name for name, found in directions.items() if any(found)]
    from_one = [n for n in names if may_count_from_one(map(marked_links, directions[n]))]
    if len(names) == 2 and len(from_one) == 1:
        (one,), (other,) = from_one, set(names) - set(from_one)
        cli.note(
            f"{cli.value(one)}: no link names word 0, as links of {cli.value(other)} do: "
            "are its words counted from 1?"
        )


def _lengths() -> list[tuple[int, int]] | None:
    """Returns the numbers of words of the sentences that links are checked against, if any."""
    from attention_jax.data.lines import read_pairs

    if not (_value("source") or _value("target")):
        return None
    pairs = read_pairs(cli.require("source"), cli.require("target"))
    return [(len(source.split()), len(target.split())) for source, target in pairs]


def _symmetrized(
    forward: Iterable[Collection], reverse: Iterable[Collection], method: str, strict: bool = False
) -> list[Links]:
    return [
        symmetrization.symmetrize(*directions, method, strict=strict)
        for directions in zip(forward, reverse, strict=True)
    ]


def _output() -> Path:
    """Returns the path to write to, once it is sure that something can be written there."""
    cli.require("output")
    path = cli.output_path("output")
    assert path is not None
    return path


def _write(path: Path, alignments: Iterable[Collection]) -> None:
    from attention_jax.evaluation.alignment import to_pharaoh
    from attention_jax.training.files import write_text

    try:
        write_text(path, "".join(f"{to_pharaoh(sorted(links))}\n" for links in alignments))
    except OSError as error:
        raise UserError(f"--output: {path} cannot be written ({error.strerror})") from None
