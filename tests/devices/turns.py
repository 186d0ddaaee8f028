"""A training that is told to stop after a step, as by a signal, and may go on later."""

import contextlib

from attention_jax.experiment import adopt_config, open_checkpoints
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.training.loop import train
from attention_jax.training.preemption import Preempted, Preemption


class StopAt(Preemption):
    """Tells a training to stop after a step, as a signal does."""

    def __init__(self, step):
        super().__init__()
        self._step = step

    def requested(self, step=0):
        return step == self._step


def train_turn(config, workdir, last):
    """Trains in a directory from where it was left to a step, or to the end where `last` is None.

    Returns the directory.
    """
    directory = RunDirectory(workdir)
    with directory.claimed():
        adopt_config(directory, config)
        with open_checkpoints(directory, config) as checkpointer:
            with contextlib.suppress(Preempted):
                train(config, directory, checkpointer, StopAt(last))
    return directory
