r"""Runs N processes of this host that train together, and ends when all have ended.

usage: launch/local.sh [--logs=DIRECTORY] N COMMAND...

  N         processes; on a host with GPUs each gets its share of them
  COMMAND   what each of them runs
  --logs    where they write process_0.log, ... (default: logs/ in the command's --workdir)

for example:
  launch/local.sh 2 python -m launch.train --config=configs/quickstart.py --workdir=runs/quickstart
  launch/supervise.sh launch/local.sh 4 \
      python -m launch.train --config=configs/quickstart.py --workdir=runs/quickstart

Process 0's output is shown. SIGTERM and Ctrl-C go to every process, which save and exit; nothing is
left running, whichever way this ends. Exit code: 2 after a mistake, 1 after a failure, 130 after
Ctrl-C, 75 if the same command continues, such as when one process was killed.
"""

import sys

from attention_jax.commands import local_job, streams
from attention_jax.errors import UserError
from attention_jax.host import children, program_names
from attention_jax.paths import expanded


def main() -> int:
    """Runs the job that the command line asks for."""
    streams.prepare(output_is_courtesy=True)
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("--help", "-h"):
        print(program_names.usage(__doc__.strip()))
        return 0 if arguments else children.MISTAKE
    try:
        options, rest = children.split(arguments, ["logs"])
        if len(rest) < 2 or not rest[0].isdecimal() or not int(rest[0]):
            found = " ".join(rest)
            raise ValueError(f"expected a number of processes and a command, found {found!r}")
        logs = expanded(options["logs"]).absolute() if "logs" in options else None
        return local_job.LocalJob(rest[1:], int(rest[0]), logs).run()
    except (OSError, ValueError, UserError) as error:
        print(f"error: {error}", file=sys.stderr)
        return children.MISTAKE


def run() -> None:
    """Runs the program."""
    sys.exit(main())
