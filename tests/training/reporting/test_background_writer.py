"""Writers at work beside a training: in order, without holding it up, and without ending it."""

import json
import threading
import types

import pytest

from attention_jax.errors import UserError
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.training.reporting import background_writer
from attention_jax.training.reporting.background_writer import BackgroundWriter, open_writers


class Remembering:
    """A writer that keeps what it is told."""

    run_id, place = "abc", "memory"

    def __init__(self, fails_at=None, waits_for=None):
        self.told, self._fails_at, self._waits_for = [], fails_at, waits_for

    def write(self, step, split, values):
        if self._waits_for is not None:
            self._waits_for.wait(30)
        if step == self._fails_at:
            raise OSError("no route to host\n  and much more")
        self.told.append((step, split, dict(values)))

    def close(self, ending):
        self.told.append(ending)


def test_what_is_written_arrives_in_order_and_before_the_end():
    writer, said = Remembering(), []
    background = BackgroundWriter("memory", writer, said.append)
    for step in range(50):
        background.write(step, "train", {"loss": 1.5})
    background.close("finished")
    assert writer.told == [(step, "train", {"loss": 1.5}) for step in range(50)] + ["finished"]
    assert said == []


def test_only_finite_numbers_are_written():
    writer = Remembering()
    background = BackgroundWriter("memory", writer, print)
    background.write(1, "train", {"a": float("nan"), "b": float("inf"), "c": "text", "d": 2})
    background.close("finished")
    assert writer.told[0] == (1, "train", {"d": 2})


def test_writing_waits_for_nobody():
    gate = threading.Event()
    writer, said = Remembering(waits_for=gate), []
    background = BackgroundWriter("memory", writer, said.append)
    background.write(1, "train", {})
    background.close("finished", patience=0.01)
    assert said == ["notice: memory did not end within 0 s; left behind"]
    assert writer.told == []
    gate.set()
    background._thread.join(30)
    assert writer.told == [(1, "train", {}), "finished"]


def test_less_is_waited_for_where_the_process_is_being_ended(monkeypatch):
    monkeypatch.setattr(background_writer, "_HURRIED", 0.01)
    gate, said = threading.Event(), []
    background = BackgroundWriter("memory", Remembering(waits_for=gate), said.append)
    background.write(1, "train", {})
    background.close("interrupted")
    gate.set()
    assert len(said) == 1


def test_a_failure_ends_the_writer_with_one_line():
    writer, said = Remembering(fails_at=2), []
    background = BackgroundWriter("memory", writer, said.append)
    for step in (1, 2, 3):
        background.write(step, "train", {})
    background.close("finished")
    assert writer.told == [(1, "train", {})]
    assert said == [
        "notice: memory writes no more (OSError: no route to host); metrics.jsonl goes on"
    ]


@pytest.fixture
def directory(tmp_path) -> RunDirectory:
    directory = RunDirectory(tmp_path)
    directory.write_config({"seed": 3})
    return directory


@pytest.fixture
def openings(monkeypatch):
    """What writers called `good` were told, one called `bad` being out of reach."""
    told = []

    def find(name):
        def open_writer(opening):
            told.append(opening)
            if name == "bad":
                raise ConnectionError("out of reach\nsee below")
            return Remembering()

        return types.SimpleNamespace(open_writer=open_writer)

    monkeypatch.setattr(background_writer.WRITERS, "find", find)
    return told


def test_a_run_remembers_what_services_call_it(directory, openings):
    for step in (0, 7):
        said = []
        (writer,) = open_writers(["good"], directory, step=step, say=said.append)
        writer.close("finished")
        assert said == ["metrics go to memory"]
    assert [(opening.step, opening.run_id) for opening in openings] == [(0, None), (7, "abc")]
    assert openings[0].config == {"seed": 3} and openings[0].directory == directory.path
    assert json.loads(directory.run.read_text())["writers"] == {"good": "abc"}


def test_a_service_out_of_reach_stops_only_a_new_run(directory, openings):
    with pytest.raises(UserError) as caught:
        open_writers(["good", "bad"], directory, step=0, say=print)
    reason = "bad cannot be written: ConnectionError: out of reach"
    assert str(caught.value) == f"config.training.writers: {reason}"
    said = []
    (writer,) = open_writers(["bad", "good"], directory, step=7, say=said.append)
    writer.close("finished")
    assert said == [f"notice: {reason}; metrics.jsonl goes on", "metrics go to memory"]
