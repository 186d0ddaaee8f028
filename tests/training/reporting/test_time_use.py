"""Time is split into parts that add up to what passed."""

import pytest

from attention_jax.training.reporting import time_use
from attention_jax.training.reporting.time_use import TimeUse, format_shares


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr(time_use.time, "monotonic", lambda: now[0])
    return now


def test_parts_add_up_to_the_time_that_passed(clock):
    use = TimeUse()
    spent = (("data", 1.0), ("save", 2.0), ("data", 3.0), ("evaluation", 4.0), ("compilation", 6.0))
    for part, seconds in spent:
        clock[0] += 5.0  # computing
        with use.of(part):
            clock[0] += seconds
    taken = {"data": 4.0, "save": 2.0, "evaluation": 4.0, "compilation": 6.0}
    assert use.take() == {"compute": 25.0, **taken}
    clock[0] += 1.5
    assert use.take() == {"compute": 1.5, **dict.fromkeys(taken, 0.0)}
    with use.of("save"):
        clock[0] += 8.0
    assert use.total() == {"compute": 26.5, **taken, "save": 10.0}
    assert use.total() == {"compute": 26.5, **taken, "save": 10.0}


def test_time_of_earlier_processes_counts(clock):
    use = TimeUse({"compute": 10.0, "save": 1.0})
    clock[0] += 2.0
    assert use.take()["compute"] == 2.0
    clock[0] += 3.0
    others = {"compilation": 0.0, "data": 0.0, "evaluation": 0.0}
    assert use.total() == {"compute": 15.0, "save": 1.0, **others}
    assert use.take() == {"compute": 3.0, "save": 0.0, **others}


def test_time_before_a_failure_counts(clock):
    use = TimeUse()
    with pytest.raises(KeyError), use.of("data"):
        clock[0] += 2.0
        raise KeyError
    assert use.take()["data"] == 2.0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        ({"compute": 93.0, "data": 1.0, "save": 6.0}, "compute 93%, save 6%, data 1%"),
        ({"compute": 100.0, "data": 0.4}, "compute 100%"),
        ({"compute": 0.0, "data": 0.0}, ""),
    ],
)
def test_format_shares_names_the_largest_first(seconds, words):
    assert format_shares(seconds) == words
