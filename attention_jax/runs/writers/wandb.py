"""Weights & Biases; project, entity and mode are chosen by wandb's own `WANDB_*` variables.

With `WANDB_MODE=offline` everything stays in `wandb/` of the run's directory until `wandb sync
--append` sends it. A training that is continued continues the same run.
"""

import os
from collections.abc import Mapping

from attention_jax.runs.writers import FINISHED, INTERRUPTED, Opening

PACKAGE = "wandb"
_PROJECT = "attention_jax"


def open_writer(opening: Opening) -> "WeightsAndBiases":
    """Starts a run of wandb, or continues that of `opening.run_id`."""
    return WeightsAndBiases(opening)


class WeightsAndBiases:
    """Writes to a run of wandb.

    Attributes:
      run_id: The run's id there.
      place: Its address, or the directory that holds it until it is sent.
    """

    def __init__(self, opening: Opening):
        import wandb

        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", _PROJECT),
            name=os.environ.get("WANDB_NAME", opening.directory.name),
            id=opening.run_id,
            resume="allow",
            dir=str(opening.directory),
            config=dict(opening.config),
            allow_val_change=True,  # a run may be continued with other intervals or more steps
            settings=wandb.Settings(console="off", silent=True),
        )
        # wandb's own count of steps must rise, but steps since the last checkpoint come twice
        # where training is continued. They come with the same losses.
        self._run.define_metric("*", step_metric="step")
        self.run_id = self._run.id
        self.place = str(opening.directory / "wandb") if self._run.offline else self._run.url

    def write(self, step: int, split: str, values: Mapping[str, float]) -> None:
        self._run.log({"step": step, **{f"{split}/{name}": v for name, v in values.items()}})

    def close(self, ending: str) -> None:
        if ending == INTERRUPTED:
            self._run.mark_preempting()
        self._run.finish(exit_code=0 if ending == FINISHED else 1)
