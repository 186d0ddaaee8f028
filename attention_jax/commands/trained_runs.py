"""Trained runs on the command line: the flags that name them, and loading what these name.

Several directories are an ensemble, which predicts with all of their models. `--direction=reverse`
asks those of both directions from target to source.
"""

from collections.abc import Sequence
from typing import Any

from absl import flags

from attention_jax.commands import cli
from attention_jax.errors import UserError

# As in `ops.ensemble_predictions`, which is not imported here, so that `--help` is quick.
COMBINATIONS = ("log_linear", "mean")


def define_flags(
    *texts: str, directions: bool = True, found: flags.FlagValues = flags.FLAGS
) -> None:
    """Defines `--workdir` and `--ensemble`, and what else a program is told.

    Args:
      *texts: Names of flags that are texts.
      directions: Whether there is `--direction`.
      found: Where they are defined.
    """
    for name in ("workdir", *texts):
        flags.DEFINE_string(name, None, "See above.", found)
    flags.DEFINE_enum("ensemble", None, COMBINATIONS, "How several runs predict together.", found)
    if directions:
        ways = ["forward", "reverse"]
        flags.DEFINE_enum("direction", "forward", ways, "From where to where.", found)


def loaded(**how: Any) -> Any:
    """Loads the run that flags name, or the ensemble of several, searched as flags say.

    Args:
      **how: Further arguments of `runs.load.load_run`.

    Raises:
      UserError: If one is no trained run, or they do not fit each other.
    """
    from attention_jax.runs.ensemble import ensemble_of
    from attention_jax.runs.load import load_run, note_unfinished

    cli.use_compilation_cache()
    places = cli.directories(cli.require("workdir"))
    if len(places) == 1 and cli.value("ensemble"):
        raise UserError("--ensemble: expected several runs, --workdir=RUN,RUN, found one")
    search = cli.overridden("search")
    runs = [load_run(place, search, **how) for place in places]
    note_unfinished(*runs)
    if "direction" in flags.FLAGS and cli.value("direction") == "reverse":
        from attention_jax.analysis.reverse import reverse_run

        runs = [reverse_run(run) for run in runs]
    return ensemble_of(runs, cli.value("ensemble") or COMBINATIONS[0])


def sources(names: Sequence[str]) -> tuple[str, dict[str, list[str]]]:
    """Reads what `--source` gives, FILE and NAME=FILE for each further source of a run.

    Args:
      names: The further sources.

    Returns:
      The file of the first source, and the lines of the further ones by their names.

    Raises:
      UserError: If one is missing, or there are others.
      DataError: If a further file cannot be read.
    """
    from attention_jax.analysis.given_texts import divide_sources
    from attention_jax.data.lines import read_lines

    given = cli.require("source")
    first, further = divide_sources(given, names)
    if len(first) != 1 or len(further) != len(names):
        wanted = " and ".join(["FILE", *(f"{name}=FILE" for name in names)])
        raise UserError(f"--source: expected {wanted}, found {', '.join(given)}")
    return first[0], {name: read_lines(path) for name, path in further.items()}
