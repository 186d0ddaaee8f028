r"""Runs a training again until it is finished, whatever ends it.

usage: launch/supervise.sh [--retries=5] [--wait=5] COMMAND...

  COMMAND    a training with a --workdir, or a launcher of one
  --retries  how many times, one after another, it may end without a new checkpoint
  --wait     seconds before the next start, doubled after every end without progress, up to 300

for example:
  launch/supervise.sh python -m launch.train --config=configs/quickstart.py --workdir=runs/mine
  launch/supervise.sh launch/local.sh 2 \
      python -m launch.train --config=configs/quickstart.py --workdir=runs/mine

The command is started again when it ends with code 75, fails, or is killed, and continues after its
last checkpoint. SIGTERM and Ctrl-C stop it for good, as do its end and a mistake (code 2). The exit
code is that of the command's last run.
"""

import sys

from attention_jax.commands import streams, supervisor
from attention_jax.errors import UserError
from attention_jax.host import children, program_names


def main() -> int:
    """Supervises the command of the command line."""
    streams.prepare(output_is_courtesy=True)
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("--help", "-h"):
        print(program_names.usage(__doc__.strip()))
        return 0 if arguments else children.MISTAKE
    try:
        options, command = children.split(arguments, ["retries", "wait"])
        retries, wait = _number(options, "retries"), _number(options, "wait")
        return supervisor.Supervisor(command, retries=retries, wait=wait).run()
    except (OSError, ValueError, UserError) as error:
        print(f"error: {error}", file=sys.stderr)
        return children.MISTAKE


def _number(options: dict[str, str], name: str) -> int:
    text = options.get(name, "5")
    if not text.isdecimal():
        raise ValueError(f"--{name}: expected a whole number, found {text!r}")
    return int(text)


def run() -> None:
    """Runs the program."""
    sys.exit(main())
