"""Learning-rate schedules against their definitions in plain Python."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import plain, typed
from attention_jax.errors import ConfigError
from attention_jax.updates import schedules
from attention_jax.updates.decays import Clock
from attention_jax.updates.plateau import PlateauState
from attention_jax.updates.schedules import build_schedule, lookup

NAMES = (
    "constant warmup_cosine warmup_linear inverse_sqrt exponential noam luong2015 sutskever2014 "
    "luong234 luong5 luong10 plateau"
).split()
REQUIRED = {"exponential": {"every_steps": 10}}


def build(name, *, learning_rate=2.0, steps_per_epoch=10, total_steps=100, **fields):
    config = typed(lookup(name), {"name": name, **REQUIRED.get(name, {}), **fields})
    return build_schedule(
        config, learning_rate, steps_per_epoch=steps_per_epoch, total_steps=total_steps
    )


def rates(schedule, steps):
    return np.array([schedule(jnp.int32(step)) for step in steps])


@pytest.mark.parametrize(
    ("steps", "epochs", "length", "expected"),
    [(3, 0.0, 7, 3), (0, 1.5, 8, 12), (0, 2.6, 7, 18), (0, 0.29, 100, 29)],  # 18.2, 28.999...
)
def test_epochs_are_rounded_to_steps(steps, epochs, length, expected):
    assert Clock(length, total_steps=100).in_steps(steps, epochs) == expected


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (1, 1.7469281e-7),
        (100, 1.7469281e-5),
        (4000, 6.9877124e-4),
        (8000, 4.9410588e-4),
        (100_000, 1.3975425e-4),
    ],
)
def test_noam_golden(step, expected):
    schedule = build("noam", learning_rate=1.0, model_depth=512, warmup_steps=4000)
    # The case counts updates from 1, a schedule those that were made before.
    np.testing.assert_allclose(schedule(jnp.int32(step - 1)), expected, rtol=1e-6)


def decayed(name, step, warmup, total=100, final=0.25):
    """The factor in plain Python."""
    if step < warmup:
        return (step + 1) / warmup
    share = min(1.0, (step - warmup) / (total - warmup))
    return {
        "constant": 1.0,
        "plateau": 1.0,
        "warmup_cosine": final + (1 - final) * (1 + math.cos(math.pi * share)) / 2,
        "warmup_linear": final + (1 - final) * (1 - share),
        "inverse_sqrt": math.sqrt(max(warmup, 1) / (step + 1)),
        "exponential": 0.5 ** ((step - warmup) / 10),
    }[name]


@pytest.mark.parametrize("warmup", [0, 20])
@pytest.mark.parametrize(
    "name",
    ["constant", "plateau", "warmup_cosine", "warmup_linear", "inverse_sqrt", "exponential"],
)
def test_schedule_with_warmup_matches_definition(name, warmup):
    fields = {"final_fraction": 0.25} if name in ("warmup_cosine", "warmup_linear") else {}
    schedule = build(name, warmup_steps=warmup, **fields)
    steps = [0, 1, 18, 19, 20, 21, 50, 99, 100, 150]
    expected = [2.0 * decayed(name, step, warmup) for step in steps]
    np.testing.assert_allclose(rates(schedule, steps), expected, rtol=1e-6)
    in_epochs = build(name, warmup_epochs=warmup / 10, **fields)
    np.testing.assert_array_equal(rates(in_epochs, steps), rates(schedule, steps))


def test_exponential_staircase_holds_within_a_period():
    steps = build("exponential", rate=0.5, every_steps=0, every_epochs=1.5, staircase=True)
    np.testing.assert_allclose(rates(steps, [0, 14, 15, 29, 30]), [2, 2, 1, 1, 0.5])


@pytest.mark.parametrize(
    ("name", "start", "times"),
    [("luong234", 2 / 3, 4), ("luong5", 1 / 2, 5), ("luong10", 1 / 2, 10)],
)
def test_luong_halvings_match_definition(name, start, times):
    total = 12_000
    schedule = build(name, total_steps=total)
    first = int(total * start)
    period = int((total - first) / times)
    steps = [0, first - 1, first, first + period - 1, first + period, first + 3 * period, total]
    expected = [2.0 * 0.5 ** max(0, (step - first) // period) for step in steps]
    np.testing.assert_array_equal(rates(schedule, steps), expected)
    assert rates(schedule, [total])[0] == 2.0 * 0.5**times


@pytest.mark.parametrize("name", ["luong234", "luong5", "luong10"])
def test_luong_halvings_survive_a_training_of_few_steps(name):
    assert np.isfinite(rates(build(name, total_steps=3), range(4))).all()


def test_luong2015_halves_from_the_sixth_epoch_on():
    schedule = build("luong2015", steps_per_epoch=7)
    by_epoch = rates(schedule, [epoch * 7 for epoch in range(10)])
    np.testing.assert_array_equal(by_epoch, [2, 2, 2, 2, 2, 1, 0.5, 0.25, 0.125, 0.0625])
    np.testing.assert_array_equal(rates(schedule, [34, 35, 41, 42]), [2, 1, 1, 0.5])
    with_dropout = build("luong2015", steps_per_epoch=7, constant_epochs=8)
    np.testing.assert_array_equal(rates(with_dropout, [55, 56, 63]), [2, 1, 0.5])


def test_sutskever2014_halves_every_half_epoch_after_five():
    schedule = build("sutskever2014", steps_per_epoch=8, learning_rate=0.7)
    steps = [0, 39, 40, 43, 44, 48, 52, 56, 59]
    halvings = [0, 0, 1, 1, 2, 3, 4, 5, 5]
    np.testing.assert_allclose(rates(schedule, steps), [0.7 * 0.5**n for n in halvings], rtol=1e-6)


def observe_all(schedule, values, name="nll"):
    state, scales = PlateauState.start(), []
    for value in values:
        state = schedule.observe(state, {name: value, "other": 0.0})
        scales.append(float(state.scale))
    return scales


@pytest.mark.parametrize(
    ("fields", "values", "expected"),
    [
        ({}, [3, 2, 2, 1, 1.5, 1.2], [1, 1, 0.5, 0.5, 0.25, 0.125]),
        ({"patience": 1}, [3, 3, 3, 3, 3], [1, 1, 0.5, 0.5, 0.25]),
        ({"patience": 1}, [3, 4, 2, 4, 4], [1, 1, 1, 1, 0.5]),
        ({"reduction": 0.1}, [3, 3], [1, 0.1]),
        ({"minimum": 0.8}, [3, 3, 3], [1, 0.5, 0.4]),
        ({"minimum": 5.0}, [3, 3], [1, 1]),
        ({"mode": "max", "metric": "bleu"}, [10, 20, 20, 30], [1, 1, 0.5, 0.5]),
        ({}, [3, float("nan"), 2], [1, 0.5, 0.5]),
        ({}, [0.1, 0.1], [1, 0.5]),  # 0.1 is larger in float32 than in float64
    ],
)
def test_plateau_reduces_when_the_metric_stops_improving(fields, values, expected):
    schedule = build("plateau", **fields)
    scales = observe_all(schedule, values, fields.get("metric", "nll"))
    np.testing.assert_allclose(scales, expected, rtol=1e-6)


def test_plateau_scale_multiplies_the_learning_rate():
    schedule = build("plateau", warmup_steps=4)
    np.testing.assert_allclose(schedule(jnp.int32(0), jnp.float32(0.5)), 2.0 / 4 * 0.5)


def test_plateau_without_its_metric_names_those_there_are():
    with pytest.raises(ConfigError) as caught:
        build("plateau", metric="blue").observe(PlateauState.start(), {"bleu": 1.0, "nll": 2.0})
    message = "config.schedule.metric: expected one of bleu, nll, found 'blue'"
    assert str(caught.value) == message


def test_observe_changes_nothing_under_other_schedules():
    state = PlateauState.start()
    assert build("constant").observe(state, {}) is state


@pytest.mark.parametrize("name", NAMES)
def test_schedule_is_float32_and_the_same_under_jit(name):
    schedule = build(name)
    for step in (0, 70):
        value = schedule(jnp.int32(step))
        assert value.dtype == jnp.float32 and value.shape == ()
        np.testing.assert_allclose(jax.jit(schedule)(jnp.int32(step)), value, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (name, {"warmup_steps": 90})
        for name in ("constant", "warmup_cosine", "warmup_linear", "inverse_sqrt", "plateau")
    ]
    + [
        ("constant", {"warmup_epochs": 9.0}),
        ("warmup_cosine", {"final_fraction": 0.5}),
        ("warmup_linear", {"final_fraction": 0.5}),
        ("exponential", {"rate": 0.9}),
        ("exponential", {"every_steps": 7}),
        ("exponential", {"every_steps": 0, "every_epochs": 0.7}),
        ("exponential", {"staircase": True}),
        ("noam", {"model_depth": 64}),
        ("noam", {"warmup_steps": 10}),
        ("luong2015", {"constant_epochs": 8.0}),
        ("luong2015", {"halve_every_epochs": 2.0}),
        ("sutskever2014", {"constant_epochs": 8.0}),
        ("sutskever2014", {"halve_every_epochs": 2.0}),
    ],
)
def test_every_field_changes_the_learning_rate(name, change):
    assert abs(rates(build(name), [75])[0] - rates(build(name, **change), [75])[0]) > 1e-5


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("constant", {"warmup_steps": 3, "warmup_epochs": 1.0}, "config.warmup_steps: expected 0"),
        ("exponential", {"every_steps": 0}, "config.every_steps: expected it or every_epochs"),
        ("exponential", {"every_epochs": 1.0}, "found both"),
        ("warmup_cosine", {"final_fraction": 1.5}, "expected at most 1"),
        ("plateau", {"mode": "mni"}, "did you mean 'min'"),
    ],
)
def test_impossible_fields_are_named(name, fields, message):
    with pytest.raises(ConfigError) as caught:
        build(name, **fields)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_lookup_finds_every_schedule_by_its_name(name):
    config = build(name).config
    assert lookup(name) is type(config) and config.name == name
    assert typed(type(config), plain(config)) == config
    assert dataclasses.is_dataclass(config)


def test_lookup_lists_the_names():
    with pytest.raises(KeyError) as caught:
        lookup("cosine")
    assert caught.value.args[0] == sorted(NAMES)


def test_every_schedule_is_tested():
    assert sorted(schedules._SCHEDULES) == sorted(NAMES)
