"""Word alignment commands of `launch.align`: symmetrize links, score them, and the others."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from absl import flags

from attention_jax.commands import align_training, cli
from attention_jax.commands.align_links import (
    DEFAULT,
    check_files,
    symmetrized,
    write_links,
)
from attention_jax.errors import DataError
from attention_jax.evaluation.symmetrization import METHODS, ORDERS
from attention_jax.spaced_words import spaced_words

Links = frozenset[tuple[int, int]]


@dataclasses.dataclass(frozen=True)
class LinkFile:
    """A file of links.

    Attributes:
      path: Its path.
      links: The links by the number of their pair.
      is_numbered: Whether its lines begin with that number.
    """

    path: str
    links: Mapping[int, Links]
    is_numbered: bool


def define_symmetrize_flags() -> None:
    """Flags of `symmetrize`."""
    flags.DEFINE_string("forward", None, "Links of one direction.")
    flags.DEFINE_string("reverse", None, "Links of the other.")
    flags.DEFINE_enum("method", DEFAULT, METHODS, "The heuristic.")
    flags.DEFINE_enum("order", ORDERS[0], ORDERS, "In which links are looked at.")
    flags.DEFINE_bool("strict", False, "Whether both words of a neighbour must be free.")
    flags.DEFINE_bool("transposed", False, "Whether --reverse has its links as target-source.")
    flags.DEFINE_string("output", None, "Where links are written.")


def symmetrize() -> None:
    """Symmetrization: combines the alignments of both directions and writes the result."""
    [output] = check_files(["forward", "reverse"], ["output"])
    forward = _read_links("forward")
    reverse = _read_links("reverse", transpose=cli.value("transposed"))
    _check_same_pairs(forward, reverse)
    directions = {"forward": forward.links.values(), "reverse": reverse.links.values()}
    _note_other_bases(directions)
    pairs = ((forward.links[pair], reverse.links[pair]) for pair in forward.links)
    options = {name: cli.value(name) for name in ("method", "strict", "order")}
    joined = symmetrized(pairs, **options)
    numbers = forward.links if forward.is_numbered else None
    write_links(output, joined, numbers)


def define_score_flags() -> None:
    """Flags of `score`."""
    flags.DEFINE_string("gold", None, "Gold links.")
    flags.DEFINE_string("hypothesis", None, "Links to score.")
    for name in ("gold_base", "hypothesis_base"):
        flags.DEFINE_integer(name, 0, "The first word's number.", lower_bound=0, upper_bound=1)
    flags.DEFINE_bool("transposed", False, "Whether --hypothesis has its links as target-source.")
    flags.DEFINE_string("source", None, "The text, to check links against.")
    flags.DEFINE_string("target", None, "Its translation.")


def score() -> None:
    """Alignment error rate (AER): prints it with precision and recall."""
    from attention_jax.data.lines import read_lines
    from attention_jax.evaluation.aer import count_links
    from attention_jax.evaluation.pharaoh import (
        is_numbered,
        marked_links,
        may_count_from_one,
        parse_gold,
    )

    gold, lengths = cli.require("gold"), _lengths()
    lines = read_lines(gold)
    # The text, if it is given, is what links are checked against; scores do not depend on it.
    golds = parse_gold(lines, gold, base=cli.value("gold_base"), lengths=lengths)
    base, transpose = cli.value("hypothesis_base"), cli.value("transposed")
    hypothesis = _read_links("hypothesis", base, transpose=transpose, lengths=lengths)
    if not any(links.possible for links in golds.values()):
        raise DataError(f"{gold}: expected links, found none in {len(lines)} lines")
    _check_scored_pairs(golds, is_numbered(lines), hypothesis)
    links = hypothesis.links
    marked = map(marked_links, links.values())
    for name, found in (("gold", golds.values()), ("hypothesis", marked)):
        if cli.value(f"{name}_base") == 0 and may_count_from_one(found):
            cli.note(f"{cli.value(name)}: no link names word 0: counted from 1? --{name}_base=1")
    counts = count_links([links[pair] for pair in golds], list(golds.values()))
    if not counts.sure:
        cli.note(f"{gold}: no sure links, so that recall is of nothing and AER 100 - precision")
    if not counts.links:
        cli.note(f"{hypothesis.path}: no links for the pairs of {gold}")
    for name, value in (
        ("precision", f"{counts.precision:.1f}"),
        ("recall", f"{counts.recall:.1f}"),
        ("AER", f"{counts.aer:.1f}"),
        ("links", f"{counts.links}"),
    ):
        print(f"{name:10}{value:>6}")


@dataclasses.dataclass(frozen=True)
class Command:
    """A command of the program: the function that defines its flags, and the one that runs it."""

    define_flags: Callable[[], None]
    run: Callable[[], None]


COMMANDS = {
    "train": Command(align_training.define_train_flags, align_training.train),
    "apply": Command(align_training.define_apply_flags, align_training.apply),
    "symmetrize": Command(define_symmetrize_flags, symmetrize),
    "score": Command(define_score_flags, score),
}


def _read_links(
    flag: str,
    base: int = 0,
    *,
    transpose: bool = False,
    lengths: Sequence[tuple[int, int]] | None = None,
) -> LinkFile:
    """Reads a file of links; `lengths` are (source, target) even if the links are transposed."""
    from attention_jax.data.lines import read_lines
    from attention_jax.evaluation.pharaoh import is_numbered, parse_gold, transposed

    path = cli.require(flag)
    if transpose and lengths is not None:
        lengths = [(target, source) for source, target in lengths]
    lines = read_lines(path)
    marked = parse_gold(lines, path, base=base, lengths=lengths)
    links = {
        pair: (transposed(each) if transpose else each).possible for pair, each in marked.items()
    }
    return LinkFile(path, links, is_numbered(lines))


def _check_same_pairs(forward: LinkFile, reverse: LinkFile) -> None:
    """Raises `DataError` unless both directions have the same pairs."""
    if not (forward.is_numbered or reverse.is_numbered):
        if len(reverse.links) != len(forward.links):
            raise DataError(
                f"{reverse.path}: expected {len(forward.links)} lines as in {forward.path}, "
                f"found {len(reverse.links)}"
            )
        return
    for one, other in ((forward, reverse), (reverse, forward)):
        _check_has(other, one.links, one.path)


def _check_scored_pairs(golds: Mapping[int, Any], is_numbered: bool, hypothesis: LinkFile) -> None:
    """Raises `DataError` unless a hypothesis has every pair of the gold file.

    If the gold file has a line for each pair of the text, the hypothesis may have no others.
    """
    gold, found = cli.require("gold"), len(hypothesis.links)
    if hypothesis.is_numbered:
        _check_has(hypothesis, golds, gold)
    needed = max(golds) + 1
    if hypothesis.is_numbered and not is_numbered:
        largest = max(hypothesis.links)
        if largest >= needed:
            raise DataError(
                f"{hypothesis.path}: expected pairs below {needed}, as {gold} has lines, "
                f"found {largest}"
            )
    elif not hypothesis.is_numbered and (found < needed or (found > needed and not is_numbered)):
        raise DataError(f"{hypothesis.path}: expected {needed} lines as in {gold}, found {found}")


def _check_has(file: LinkFile, pairs: Iterable[int], where: str) -> None:
    missing = next((pair for pair in pairs if pair not in file.links), None)
    if missing is not None:
        raise DataError(f"{file.path}: expected links of pair {missing} as in {where}, found none")


def _note_other_bases(directions: Mapping[str, Collection[Links]]) -> None:
    """Prints a notice if only one of the directions seems to count words from 1."""
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
    """Returns how many words the sentences of each pair have, if their text is given."""
    from attention_jax.data.lines import read_pairs

    if not (cli.value("source") or cli.value("target")):
        return None
    pairs = read_pairs(cli.require("source"), cli.require("target"))
    return [(len(spaced_words(source)), len(spaced_words(target))) for source, target in pairs]
