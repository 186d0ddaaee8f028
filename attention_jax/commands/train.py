r"""Trains and evaluates a model, or continues where the same command was cut off.

usage: python -m launch.train --config=FILE[:ARGUMENT] --workdir=DIRECTORY [--config.FIELD=VALUE]
                              [--profile_steps=FIRST:LAST]

  --config         a config file, or the name of one of this project's (bahdanau2015:smoke) from
                   anywhere; what may follow the colon is said in the file
  --workdir        the run's directory; made if there is none, continued if it holds this run
  --config.FIELD   another value for a field of the config, by its path
  --profile_steps  writes a profiler trace of these steps to profile/ in the run's directory

for example:
  python -m launch.train --config=configs/quickstart.py --workdir=runs/quickstart
  python -m launch.train --config=configs/bahdanau2015.py:multi30k --workdir=runs/multi30k \
      --config.optimizer.learning_rate=1e-3 --config.training.num_epochs=20
  python -m launch.train --config=configs/luong2015.py:parallel --workdir=runs/mine \
      --config.data.train_source=train.en --config.data.train_target=train.de

Every field that a run was made with is in its config.json, so that is where to look for names;
docs/configuration.md says where each group of fields is explained. Another part chosen by .name=,
such as --config.optimizer.name=sgd, keeps the values of fields that both have. Fields on which
training so far did not depend (search, evaluation, length, logging) may be changed when a run is
continued.
SIGTERM saves and exits with code 75, Ctrl-C with 130; the same command then continues. Mistakes are
answered with one line and code 2.

Several processes train together under launch/local.sh, or where ATTENTION_JAX_COORDINATOR,
ATTENTION_JAX_NUM_PROCESSES and ATTENTION_JAX_PROCESS_ID, or ATTENTION_JAX_DISTRIBUTED=auto, say so;
when one dies the others exit with 75, and launch/supervise.sh runs the command again.
"""

from absl import flags

from attention_jax.commands import cli


def define_flags() -> None:
    """Flags of the command line."""
    flags.DEFINE_string("workdir", None, "The run's directory.")
    flags.DEFINE_string("profile_steps", None, "Steps to trace, as FIRST:LAST.")


def main() -> None:
    """Trains and evaluates."""
    workdir = cli.require("workdir")
    from attention_jax.devices import processes
    from attention_jax.experiment import run_experiment
    from attention_jax.runs.config import from_config_dict
    from attention_jax.runs.run_directory import RunDirectory
    from attention_jax.runs.size_of_text import settled
    from attention_jax.training.reporting.profiling import ProfileSteps

    steps = cli.value("profile_steps")
    profiled = None if steps is None else ProfileSteps.parse(steps)
    lines: list[str] = []
    known = RunDirectory(workdir).read_trained_config()
    config = from_config_dict(settled(flags.FLAGS["config"].value, lines.append, known=known))
    with processes.joined():
        cli.use_compilation_cache()
        for line in lines if processes.is_first() else ():
            cli.note(line)
        run_experiment(config, workdir, profiled)


def run() -> None:
    """Runs the program."""
    define_flags()
    cli.run(main, __doc__, cli.prepare_experiment)
