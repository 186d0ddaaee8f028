r"""Trains runs that differ in a few fields, with seeds, and compares them on a page.

usage: python -m launch.sweep --config=FILE[:ARGUMENT] --workdir=DIRECTORY --grid=FIELD=VALUE,VALUE
       python -m launch.sweep --workdir=DIRECTORY [options]       goes on with what is known there

  --config, --config.FIELD   what all runs share, as for launch.train
  --grid=FIELD=VALUE,VALUE   a field of the config and its values; several grids multiply
  --setting='NAME: FIELD=VALUE FIELD=VALUE'  fields that change together; settings are one grid
  --search=FIELD=LOW..HIGH[:log] or 'FIELD=A|B'  what optuna chooses, in --trials=N further cells
  --seeds=N                  runs of each (1)
  --jobs=N                   runs at a time, which share cores and GPUs (1)
  --evaluate=OPTIONS         after training also launch.evaluate with these, such as gold links
  --metric=[SPLIT.]NAME[:min|max]  what is best (what training watches, on the validation split)
  --only=CELL;CELL --run=N,N  these cells, these numbers of the list
  --list                     number every run, with its state and command, and stop
  --arguments=N              what launch.train takes for a run, an argument a line, and stop
  --report_only              the page of what is finished

for example:
  python -m launch.sweep --config=configs/bahdanau2015.py:multi30k --workdir=runs/rates \
      --grid=optimizer.learning_rate=3e-4,1e-3 --grid=model.attention.name=bahdanau,luong_dot \
      --seeds=3 --jobs=2

Runs that are finished are not run again, one that was cut off goes on, and another grid adds its
runs to those that there are. The page is sweep.md in DIRECTORY. SIGTERM or Ctrl-C make the runs
save and stop. Exit codes: 0, 1 if a run failed, 2 after a mistake, 75 or 130 after SIGTERM or
Ctrl-C.
"""

from absl import flags

from attention_jax.commands import cli, sweep_request


def define_flags() -> None:
    """Flags of the command line."""
    for name in ("workdir", "evaluate", "metric", "only"):
        flags.DEFINE_string(name, None, "See above.")
    for name in ("grid", "setting", "search"):
        flags.DEFINE_multi_string(name, [], "See above.")
    for name in ("seeds", "jobs"):
        flags.DEFINE_integer(name, 1, "See above.", lower_bound=1)
    for name, least in (("arguments", 0), ("trials", 1)):
        flags.DEFINE_integer(name, None, "See above.", lower_bound=least)
    flags.DEFINE_list("run", [], "Numbers of runs.")
    flags.DEFINE_bool("list", False, "Show the runs and stop.")
    flags.DEFINE_bool("report_only", False, "Run nothing.")


def main() -> int:
    """Runs what is not finished, and writes the page."""
    return sweep_request.carried_out()


def run() -> None:
    """Runs the program."""
    define_flags()
    cli.run(main, __doc__, sweep_request.prepare)
