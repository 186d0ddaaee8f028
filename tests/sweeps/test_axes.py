"""What a command line says is to vary, and which combinations that makes."""

import pytest

from attention_jax.errors import UserError
from attention_jax.sweeps.axes import crossed, field_axis, settings_axis, split_values

RATE, NAME = "optimizer.learning_rate", "model.attention.name"


def test_values_of_a_field_are_texts_as_flags_take_them():
    assert field_axis(f"{RATE}=1e-3,None") == {"1e-3": {RATE: "1e-3"}, "None": {RATE: "None"}}
    assert list(field_axis("config.seed=1, 2")) == ["1", "2"]
    assert field_axis("a.b=true") == {"true": {"a.b": "true"}}


def test_commas_in_brackets_and_quotes_divide_nothing():
    assert split_values("('a','b'),(),'x,y',[1,(2,3)]") == ["('a','b')", "()", "'x,y'", "[1,(2,3)]"]


def test_fields_that_change_together_have_one_name():
    both = f"both:{NAME}=luong_dot {RATE}='1 2'"
    axis = settings_axis([f"plain: {NAME}=bahdanau", both, "as_is"])
    assert axis == {
        "plain": {NAME: "bahdanau"},
        "both": {NAME: "luong_dot", RATE: "1 2"},
        "as_is": {},
    }


def test_axes_multiply_and_the_first_varies_slowest():
    cells = crossed([settings_axis(["one: a.x=1 a.y=2", "two:"]), field_axis("b.z=3,4")])
    assert list(cells) == ["one,z=3", "one,z=4", "two,z=3", "two,z=4"]
    assert cells["one,z=4"] == {"a.x": "1", "a.y": "2", "b.z": "4"}
    assert cells["two,z=3"] == {"b.z": "3"}


def test_settings_keep_their_names():
    """Also one that is called as the value of its only field."""
    cells = crossed([settings_axis(["base", f"weary: {NAME}=weary"]), field_axis("a.y=weary")])
    assert list(cells) == ["base,y=weary", "weary,y=weary"]
    assert list(crossed([settings_axis([f"luong: {NAME}=luong"])])) == ["luong"]


def test_names_are_as_short_as_they_tell_fields_apart():
    weights = [f"objectives.{name}.weight=1" for name in ("coverage_loss", "attention_entropy")]
    (name,) = crossed([field_axis(text) for text in [*weights, "training.num_steps=5"]])
    assert name == "coverage_loss.weight=1,attention_entropy.weight=1,num_steps=5"
    assert list(crossed([field_axis(f"{NAME}=bahdanau,none")])) == [
        "attention=bahdanau", "attention=none",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["", "rate", "=1", "rate=", "rate=1,,2", "1a=2", "rate=1,", "a b=1"]
)
def test_what_is_no_grid_is_one_line(text):
    with pytest.raises(UserError, match=r"--grid: expected FIELD=VALUE,VALUE, found '"):
        field_axis(text)


@pytest.mark.parametrize("text", ["", "a b: x=1", "a: x", "a: x=", "a: =1", "a: x='1"])
def test_what_is_no_setting_is_one_line(text):
    with pytest.raises(UserError, match=r"--setting: expected NAME: FIELD=VALUE FIELD=VALUE, fou"):
        settings_axis([text])


def test_what_is_given_twice_is_refused():
    with pytest.raises(UserError, match="every value of x once, found 1,1"):
        field_axis("x=1,1")
    with pytest.raises(UserError, match="every name once, found a twice"):
        settings_axis(["a", "a: x=1"])
    with pytest.raises(UserError, match="expected every field in one grid or setting, found x in"):
        crossed([field_axis("x=1,2"), settings_axis(["a: x=3"])])
