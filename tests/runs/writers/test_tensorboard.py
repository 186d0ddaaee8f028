"""Event files hold the values under the names of split and metric."""

import pytest

from attention_jax.runs.writers import FINISHED, Writer, tensorboard


def test_values_are_in_the_event_files(opening, tmp_path):
    pytest.importorskip("tensorboardX")
    writer = tensorboard.open_writer(opening())
    assert isinstance(writer, Writer) and writer.place == str(tmp_path / "tensorboard")
    writer.write(1, "train", {"loss": 1.5})
    writer.close(FINISHED)
    (events,) = (tmp_path / "tensorboard").iterdir()
    assert b"train/loss" in events.read_bytes()


def test_points_after_the_restored_step_are_purged(opening, install):
    made = []

    class SummaryWriter:
        def __init__(self, directory, purge_step):
            made.append(purge_step)

    install("tensorboardX", SummaryWriter=SummaryWriter)
    tensorboard.open_writer(opening(step=20))
    assert made == [21]
