r"""Aligns the words of a parallel corpus, combines the two directions, scores alignments.

usage: python -m launch.align train --source=TEXT --target=TEXT --output=LINKS [options]
       python -m launch.align apply (--model=FILE | --run=DIRECTORY) --source=... --target=... [...]
       python -m launch.align symmetrize --forward=LINKS --reverse=LINKS --output=LINKS [options]
       python -m launch.align score --gold=LINKS --hypothesis=LINKS [options]

train: one tokenised sentence a line; every line gets links 0-0 1-2, source-target from 0
  --method          hmm (default), spelling, agreement, ibm1, or eflomal where it is installed
  --symmetrization  intersection, union, grow-diag, grow-diag-final or grow-diag-final-and (default)
                    of both directions; or one alone: forward (a target word has at most one link)
                    or reverse (a source word has)
  --model           keeps what is learnt in a file, for apply; then --output may be left out
apply: links other texts with a --model, or with the attention of a trained --run (DIRECTORY;
                    --reverse=DIRECTORY is one of the opposite direction, --source=fr=FILE a further
                    source); --order; --symmetrization, also geometric-mean of both ways' weights
  --scores          file for log p of each line by word, in the directions used, for filtering; then
                    --output may be left out
symmetrize:
  --method          as --symmetrization above
  --order           in which links are looked at when growing: source (default), moses, or atools
                    of fast_align; also for train
  --strict          grow only by links of which neither word is linked yet, not just one
  --transposed      the links of --reverse are target-source
score: prints precision, recall, AER and the number of links, over all lines together
  --gold            sure links 1-1, 1-1-S or 1-1-SCORE, possible ones 1?1, 1p1 or 1-1-P; or, for
                    some lines only, NUMBER<TAB>LINKS with lines counted from 0
  --hypothesis      likewise; a possible link counts as a link
  --gold_base=1     the gold links count words from 1; also --hypothesis_base=1. From 0 by default,
                    as everywhere here
  --transposed      the links of --hypothesis are target-source
  --source --target the texts, to check that no link is outside of them

for example:
  python -m launch.align train --source=train.en --target=train.de --output=train.en-de.links
  python -m launch.align score --gold=test.gold --gold_base=1 --hypothesis=test.links

Texts may be gzip files; the directory of --output must exist. Mistakes are answered with one line
and code 2, and nothing is written.
"""

import sys

from attention_jax.commands import cli
from attention_jax.commands.align_commands import COMMANDS
from attention_jax.errors import UserError


def main() -> None:
    """Runs the command."""
    COMMANDS[sys.argv[1]].run()


def prepare(argv: list[str]) -> list[str]:
    """Takes out the command, and defines the flags that go with it."""
    command = argv[1] if len(argv) > 1 else "none"
    if command not in COMMANDS:
        raise UserError(f"expected a command, {', '.join(COMMANDS)}; found {command}")
    COMMANDS[command].define_flags()
    return [argv[0], *argv[2:]]


def run() -> None:
    """Runs the program."""
    cli.run(main, __doc__, prepare)
