"""TensorBoard event files in `tensorboard/` of the run's directory."""

from collections.abc import Mapping

from attention_jax.runs.writers import Opening

PACKAGE = "tensorboardX"


def open_writer(opening: Opening) -> "TensorBoard":
    """Continues the run's event files; points of later steps, from before a crash, are purged."""
    return TensorBoard(opening)


class TensorBoard:
    """Writes event files.

    Attributes:
      run_id: Nothing that has to be remembered: files are continued by being in one directory.
      place: The directory.
    """

    def __init__(self, opening: Opening):
        import tensorboardX

        self.run_id = ""
        self.place = str(opening.directory / "tensorboard")
        self._events = tensorboardX.SummaryWriter(self.place, purge_step=opening.step + 1)

    def write(self, step: int, split: str, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._events.add_scalar(f"{split}/{name}", value, step)

    def close(self, ending: str) -> None:
        self._events.close()
