"""What a training tells reaches every writer of the first process, and none of another's."""

import types

import jax
import numpy as np
import pytest

from attention_jax.devices.background_compilation import BackgroundCompilation
from attention_jax.errors import UserError
from attention_jax.plotting.curves import read_metrics
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.training.assembly import assemble
from attention_jax.training.preemption import Preempted
from attention_jax.training.reporting import background_writer, run_log
from attention_jax.training.reporting.profiling import ProfileSteps
from attention_jax.training.reporting.run_log import RunLog
from tests.training.tiny import tiny_config

CONFIG = tiny_config(writers=("tensorboard",))
TOTALS = {"nll": (6.0, 4.0), "loss/nll": (6.0, 4.0), "skipped": (0.0, 3.0)}
SHARDING = {
    "strategy": "jit",
    "device": "cpu",
    "mesh": {"data": 1, "fsdp": 1, "tensor": 1},
    **dict.fromkeys(("parameter_bytes", "parameter_bytes_per_device"), 10),
    **dict.fromkeys(("optimizer_bytes", "optimizer_bytes_per_device"), 20),
}


KEY = jax.random.key(0)


def as_called(step):
    """A step of which nothing is compiled before it is called."""
    return BackgroundCompilation(step, None, [])


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return assemble(CONFIG, RunDirectory(tmp_path_factory.mktemp("assembled")))


@pytest.fixture
def told(monkeypatch):
    """What a writer in the place of the one of the config is told."""
    told = []
    writer = types.SimpleNamespace(
        run_id="abc",
        place="memory",
        write=lambda step, split, values: told.append((step, split, values["loss"])),
        close=told.append,
    )
    module = types.SimpleNamespace(open_writer=lambda opening: writer)
    monkeypatch.setattr(background_writer.WRITERS, "find", lambda name: module)
    return told


@pytest.fixture
def make(parts, tmp_path):
    """Returns a function that opens the log of a run in `tmp_path`."""
    return lambda **more: RunLog(RunDirectory(tmp_path), CONFIG.training, parts, step=0, **more)


def test_the_first_process_tells_every_writer(make, told, tmp_path):
    with make() as log:
        log.training((3, TOTALS))
        log.validation(3, {"loss": 1.25, "nll": 1.25}, best=True)
    assert told == [(3, "train", 1.5), (3, "validation", 1.25), "finished"]
    lines = read_metrics(tmp_path / "metrics.jsonl")
    assert [(line["step"], line["split"], line["loss"]) for line in lines] == told[:2]
    parts_of_time = ("compute", "compilation", "data", "save", "evaluation")
    assert {f"seconds/{part}" for part in parts_of_time} <= set(lines[0])


def test_what_is_wrong_is_said_once_and_taken_back_once(make, parts, told, capsys):
    values = {"loss": 1.0, "nll": 1.0}
    with make() as log:
        for step in (0, parts.total_steps, parts.total_steps):
            log.validation(step, {**values, "attention/entropy": 0.99}, best=False)
        found = capsys.readouterr().err
        assert found.count("attention is flat") == 1 and "no longer" not in found
        for entropy in (0.9, 0.8, 0.99, 0.8):
            log.validation(parts.total_steps, {**values, "attention/entropy": entropy}, best=False)
    found = capsys.readouterr().err
    assert found.count("no longer: flat attention") == 1 and "is flat" not in found


def test_another_process_writes_nothing(make, told, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(jax, "process_index", lambda: 1)
    with make(profiled=ProfileSteps(1, 1)) as log:
        log.start(100, SHARDING, seconds=0.0)
        assert log.dispatched(1, as_called(lambda state, *_: state), 5, {}, KEY) == 5
        assert log.timed("data", max, 2, 3) == 3
        log.training((3, TOTALS))
        log.end()
    assert told == [] and list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("error", "ending"), [(Preempted(75), "interrupted"), (UserError("diverged"), "failed")]
)
def test_writers_are_told_how_training_ended(make, told, error, ending):
    with pytest.raises(type(error)), make():
        raise error
    assert told == [ending]


def test_the_time_use_is_said_at_the_end(make, told, capsys):
    with make() as log:
        log.training((12, TOTALS))
        seconds = log.end()
    assert set(seconds) == {"compute", "compilation", "data", "save", "evaluation"}
    progress, closing = capsys.readouterr().err.splitlines()[-2:]
    assert "compute 100%" in progress and closing == "trained for 0s: compute 100%"


def test_compiling_a_shape_is_said_once_and_is_no_part_of_the_rates(
    make, parts, told, monkeypatch, capsys
):
    now = [100.0]
    monkeypatch.setattr(run_log.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(parts.batches, "buckets", ("one", "another"))

    def train_step(state, batch, rng):
        now[0] += state
        return state

    step = as_called(train_step)
    with make() as log:
        for length, seconds in ((3, 40.0), (3, 1.0), (5, 30.0), (5, 1.0)):
            assert log.dispatched(1, step, seconds, {"source": np.zeros((2, length))}, KEY)
        log.training((4, TOTALS))
    said = capsys.readouterr().err.splitlines()
    # The first one was announced when the training began.
    assert said[1:3] == [
        "compiling batch shape 2 of 2, waited 40s so far",
        "the update is compiled for all 2 batch shapes: 1m 10s of waiting",
    ]
    assert "2 tokens/s  compilation 97%, compute 3%" in said[3]  # four tokens in two seconds


def test_a_shape_that_is_ready_is_not_said_to_be_compiled(make, parts, told, monkeypatch, capsys):
    now = iter(range(0, 1000, 20))  # a log file has been silent for long, whenever it is asked
    monkeypatch.setattr(run_log.time, "monotonic", lambda: float(next(now)))
    batches = [{"source": np.zeros((2, length))} for length in (3, 5)]
    step = jax.jit(lambda state, batch, rng: state)
    with BackgroundCompilation(step, 1.0, batches, KEY) as ready, make() as log:
        ready.close()  # waits for one, and drops the other
        for batch in batches[:1]:
            assert log.dispatched(1, ready, 1.0, batch, KEY) == 1.0
    assert "compiling" not in capsys.readouterr().err
