"""Links and texts of `launch.align`: read, combined, and written in one piece."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from attention_jax.commands import cli
from attention_jax.errors import UserError
from attention_jax.evaluation import symmetrization
from attention_jax.paths import expanded
from attention_jax.spaced_words import spaced_words

DIRECTIONS = ("forward", "reverse")
DEFAULT = "grow-diag-final-and"
GEOMETRIC_MEAN = "geometric-mean"  # of the weights of two runs
_FEWEST_WORDS = 1.5  # of a mean line, below which most lines are one word, as where no spaces are

Words = Sequence[Sequence[str]]


def read_sides(source: str) -> tuple[Words, Words]:
    """Reads the file of the sources and --target as words between spaces and tabs."""
    from attention_jax.data.lines import read_pairs

    pairs = read_pairs(source, cli.require("target"))
    sources, targets = ([spaced_words(text) for text in side] for side in zip(*pairs, strict=True))
    for place, side in ((source, sources), (cli.require("target"), targets)):
        mean = sum(map(len, side)) / max(sum(map(bool, side)), 1)
        if mean < _FEWEST_WORDS:
            cli.note(
                f"notice: {place}: a mean line has {mean:.1f} words, for only spaces divide them; "
                "a script without spaces has to be divided before"
            )
    return sources, targets


def directions_of(symmetrization_method: str) -> Sequence[str]:
    """Returns the directions that have to be aligned for what is to be written."""
    one = symmetrization_method in DIRECTIONS
    return [symmetrization_method] if one else DIRECTIONS


def combined(found: Sequence[Sequence[Collection]], method: str, order: str) -> list[Collection]:
    """Returns the links of one direction, or of both symmetrised.

    Args:
      found: The links of every pair in each of `directions_of(method)`.
      method: A direction or a way of symmetrising.
      order: In which links are looked at when growing.
    """
    if method in DIRECTIONS:
        return list(found[0])
    return symmetrized(zip(*found, strict=True), method, order=order)


def symmetrized(
    pairs: Iterable[tuple[Collection, Collection]], method: str, **options: Any
) -> list[Collection]:
    """Symmetrization: combines both directions of every pair."""
    return [symmetrization.symmetrize(*directions, method, **options) for directions in pairs]


def check_files(read: Sequence[str], written: Sequence[str]) -> list[Path | None]:
    """Checks the files of a command before anything is read or computed.

    Args:
      read: The flags of files that it reads.
      written: Those of files that it writes, of which it needs one.

    Returns:
      The path of each file that is written, None where none was asked for.

    Raises:
      UserError: If none is, one cannot be written, or it is one of the others.
    """
    if not any(map(cli.value, written)):
        cli.require(written[0])
    paths = {path: name for name in read for path in _files(cli.value(name))}
    found = [cli.output_path(name) for name in written]
    for name, path in zip(written, found, strict=True):
        if path is None:
            continue
        same = paths.setdefault(path.resolve(), name)
        if same != name:
            raise UserError(f"--{name}: expected another file than --{same}, found {path} twice")
    return found


def _files(given: str | Sequence[str] | None) -> list[Path]:
    """Returns the files that a flag names, those of further sources (NAME=FILE) among them."""
    several = [given] if isinstance(given, str) else given or []
    return [expanded(each.partition("=")[2] or each).resolve() for each in several]


def write_links(
    path: Path, alignments: Iterable[Collection], numbers: Iterable[int] | None = None
) -> None:
    """Writes a line of links for each pair, after its number if there are numbers."""
    from attention_jax.evaluation.alignment import to_pharaoh

    lines = [to_pharaoh(sorted(links)) for links in alignments]
    if numbers is not None:
        lines = [f"{number}\t{line}" for number, line in zip(numbers, lines, strict=True)]
    write_lines("output", path, lines)


def write_lines(flag: str, path: Path, lines: Iterable[str]) -> None:
    """Writes lines to the file that a flag names."""
    from attention_jax.runs.files import write_text

    try:
        write_text(path, "".join(f"{line}\n" for line in lines))
    except OSError as error:
        raise UserError(f"--{flag}: {path} cannot be written ({error.strerror})") from None
