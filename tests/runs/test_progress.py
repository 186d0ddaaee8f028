"""Progress is one rewritten line on a terminal and separate lines elsewhere."""

import io

import pytest

from attention_jax.runs import progress as module
from attention_jax.runs.progress import Progress, format_seconds


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        """Returns True."""
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_update_returns_rates_and_shows_the_time_left(clock):
    stream = io.StringIO()
    progress = Progress(100, stream=stream)
    clock[0] += 2.0
    rates = progress.update(10, {"loss": 1.25}, tokens=3000)
    assert rates == {"steps_per_second": 5.0, "tokens_per_second": 1500.0}
    # Most of that time may have gone into compiling: nothing is estimated from it.
    assert stream.getvalue() == "step 10/100  loss 1.2500  1,500 tokens/s\n"
    clock[0] += 10.0
    progress.update(30, {"loss": 1.0}, tokens=3000)
    assert stream.getvalue().endswith("step 30/100  loss 1.0000  300 tokens/s  35s left\n")


def test_update_shows_what_the_time_went_into(clock):
    stream = io.StringIO()
    progress = Progress(100, stream=stream)
    clock[0] += 2.0
    progress.update(10, {"loss": 1.25}, 3000, "compute 93%, data 7%")
    assert "1,500 tokens/s  compute 93%, data 7%" in stream.getvalue()


def test_update_leaves_pauses_out(clock):
    progress = Progress(100, stream=io.StringIO())
    clock[0] += 1.0  # a validation within a window takes neither its time nor its tokens from it
    with progress.paused():
        clock[0] += 50.0
    clock[0] += 1.0
    rates = progress.update(10, {}, tokens=10)
    assert rates == {"steps_per_second": 5.0, "tokens_per_second": 5.0}


def test_update_rewrites_its_line_on_a_terminal(clock):
    stream = Terminal()
    progress = Progress(100, stream=stream)
    for step in (1, 2):
        clock[0] += 1.0
        progress.update(step, {"loss": 1.0}, tokens=1)
    progress.say("saved")
    text = stream.getvalue()
    assert text.count("\n") == 1 and text.count("\rstep") == 2 and text.endswith("saved\n")


def test_update_writes_few_lines_to_a_file(clock):
    stream = io.StringIO()
    progress = Progress(100, stream=stream)
    for step in range(1, 101):
        clock[0] += 1.0
        progress.update(step, {"loss": 1.0}, tokens=1)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 11 and lines[-1].startswith("step 100/100")


def test_passing_lines_take_no_update_away(clock):
    terminal, stream = Terminal(), io.StringIO()
    in_place, progress = Progress(100, stream=terminal), Progress(100, stream=stream)
    for seconds, line in ((1.0, "one"), (10.0, "two"), (5.0, "three"), (5.0, "four")):
        clock[0] += seconds
        progress.passing(line)
        in_place.passing(line)
    clock[0] += 1.0
    progress.update(10, {}, tokens=10)
    assert [line.split()[0] for line in stream.getvalue().splitlines()] == ["two", "four", "step"]
    assert terminal.getvalue().split() == ["one", "two", "three", "four"]


def test_progress_is_silent_when_told(clock):
    stream = io.StringIO()
    progress = Progress(10, stream=stream, silent=True)
    progress.update(1, {}, tokens=1)
    progress.say("hello")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0s"), (59.4, "59s"), (200, "3m 20s"), (7500, "2h 05m")]
)
def test_format_seconds_reads_as_people_say_it(seconds, words):
    assert format_seconds(seconds) == words
