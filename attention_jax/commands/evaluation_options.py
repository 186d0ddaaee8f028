"""Options of `launch.evaluate`: its flags, and a check of them before there is a run.

Nothing heavy is imported before it is needed, so that `--help` and mistakes are answered at once.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from absl import flags

from attention_jax.commands import cli, trained_runs
from attention_jax.errors import UserError, quoted

GIVEN = ("source", "target", "name")
GOLD = ("alignment", "alignment_base", "alignment_source", "alignment_target")


def define_flags(found: flags.FlagValues = flags.FLAGS) -> None:
    """Flags of the command line."""
    names = "target", "name", "reverse", "against", GOLD[0], *GOLD[2:]
    trained_runs.define_flags(*names, directions=False, found=found)
    flags.DEFINE_multi_string("source", [], "See above.", found)
    flags.DEFINE_list("split", None, "The splits.", found)
    flags.DEFINE_list("attribution", [], "Methods.", found)
    flags.DEFINE_enum("alignment_base", "0", ["0", "1"], "Number of a first word.", found)
    flags.DEFINE_integer("alignment_shift", None, "Whose attention links a word.", -1, 1, found)
    flags.DEFINE_float("alignment_threshold", None, "The least weight.", 0.0, 1.0, found)
    flags.DEFINE_boolean("dropped_words", False, "Whether an aligner is asked.", found)
    flags.DEFINE_boolean("heads", False, "Whether heads are measured.", found)


def check_options(options: Sequence[str], configs: Iterable[Any]) -> None:
    """Checks options before there are runs to evaluate, whose own results they are to add to.

    Args:
      options: What stands on the command line beside `--workdir`.
      configs: The configs of the runs.

    Raises:
      UserError: If there is no such option, it does not take its value, a file of gold links cannot
        be read, or results would be in a folder of `evaluations/`.
    """
    from attention_jax.analysis import evaluation_request as requests

    wanted = "expected the search and the data of the runs, whose results are compared, found"
    for option in options:
        if re.match(r"--?(search|data)\.", option):
            hint = f"--config.{option.lstrip('-')} is for all runs"
            raise UserError(f"{wanted} {quoted(option)}; {hint}")
    found = flags.FlagValues()
    define_flags(found)
    cli.parse_flags(["evaluate", *options], found)
    for name in (*GIVEN, "workdir", "ensemble"):
        if found[name].value:
            hint = "; --config.data.test_source and test_target are a text for all runs"
            raise UserError(f"{wanted} --{name}{hint if name in GIVEN else ''}")
    asked = {name: found[name].value for name in requests.FLAGS if name != "against"}
    gold = requests.GoldFiles(*(found[name].value for name in GOLD))
    request = requests.EvaluationRequest(**asked, gold=gold)
    for config in configs:
        request.check_before(config)
