"""The trace holds the steps that were asked for; a training does not fail for want of one."""

import jax
import jax.numpy as jnp
import pytest

from attention_jax.errors import UserError
from attention_jax.training.reporting import profiling
from attention_jax.training.reporting.profiling import Profile, ProfileSteps


@pytest.mark.parametrize(
    "text", ["", "5", "5:", ":5", "0:3", "4:3", "1:2:3", "a:b", "-1:2", "1.5:2"]
)
def test_parse_says_what_it_expects(text):
    with pytest.raises(UserError) as caught:
        ProfileSteps.parse(text)
    assert str(caught.value) == (
        f"--profile_steps: expected FIRST:LAST with 1 <= FIRST <= LAST, found {text!r}"
    )


def test_steps_after_the_end_are_refused(tmp_path):
    with pytest.raises(UserError, match="of this training, from 1 to 12, found 10:13"):
        Profile(ProfileSteps.parse("10:13"), tmp_path, 12, print)
    Profile(ProfileSteps.parse("12:12"), tmp_path, 12, print)


@pytest.fixture
def calls(monkeypatch):
    """What the profiler was told, with the steps between."""
    told = []
    monkeypatch.setattr(profiling.jax.profiler, "start_trace", lambda path: told.append("start"))
    monkeypatch.setattr(profiling.jax.profiler, "stop_trace", lambda: told.append("stop"))
    return told


def run(profile, calls, steps):
    for step in steps:
        with profile.step(step, jnp.zeros(2)):
            calls.append(step)
    profile.close()


@pytest.mark.parametrize(
    ("text", "steps", "expected"),
    [
        ("2:3", range(1, 6), [1, "start", 2, 3, "stop", 4, 5]),
        ("1:1", range(1, 3), ["start", 1, "stop", 2]),
        ("4:5", range(1, 6), [1, 2, 3, "start", 4, 5, "stop"]),
        ("2:4", range(3, 6), ["start", 3, 4, "stop", 5]),
    ],
)
def test_only_the_steps_asked_for_are_traced(tmp_path, calls, text, steps, expected):
    said = []
    run(Profile(ProfileSteps.parse(text), tmp_path, 5, said.append), calls, steps)
    assert calls == expected
    assert len(said) == 1 and str(tmp_path) in said[0]


def test_steps_of_the_past_are_said_to_be_so(tmp_path, calls):
    said = []
    run(Profile(ProfileSteps(1, 2), tmp_path, 5, said.append), calls, range(3, 6))
    assert calls == [3, 4, 5]
    assert said == ["notice: no profile: none of the steps 1 to 2 was trained here"]


def test_nothing_is_said_where_nothing_was_asked_for(tmp_path, calls):
    said = []
    run(Profile(None, tmp_path, 5, said.append), calls, range(1, 3))
    assert calls == [1, 2] and said == []


def test_a_profiler_that_fails_leaves_training_alone(tmp_path, calls, monkeypatch):
    def fail():
        raise RuntimeError("no space\nleft")

    monkeypatch.setattr(profiling.jax.profiler, "stop_trace", fail)
    said = []
    run(Profile(ProfileSteps(1, 1), tmp_path, 5, said.append), calls, range(1, 3))
    assert calls == ["start", 1, 2] and said == ["notice: no profile: no space left"]


def test_a_trace_is_written(tmp_path):
    profile = Profile(ProfileSteps(2, 2), tmp_path, 3, print)
    double = jax.jit(lambda x: x + x)
    value = jnp.ones(4)
    for step in (1, 2, 3):
        with profile.step(step, value):
            value = double(value)
    profile.close()
    assert [path.name for path in tmp_path.rglob("*.xplane.pb")]
