"""Configs: mappings become frozen dataclasses, and every mistake is one clear line."""

import dataclasses
import functools
import importlib
import pkgutil
import re
import typing
from typing import Any

import jaxtyping
import ml_collections
import pytest

import attention_jax
from attention_jax.configuration import plain, setting, typed, unknown_name
from attention_jax.errors import ConfigError, SettingError
from attention_jax.layers.mechanisms import multi_head


@dataclasses.dataclass(frozen=True)
class Inner:
    size: int = setting(3, at_least=1, at_most=9)
    rate: float = setting(0.5, above=0.0, below=1.0)


@dataclasses.dataclass(frozen=True)
class Red:
    name: str = setting("red")
    depth: int = setting(1)


@dataclasses.dataclass(frozen=True)
class Blue:
    width: int = setting(2)


def find(name):
    table = {"red": Red, "blue": Blue}
    if name not in table:
        raise KeyError(list(table))
    return table[name]


@dataclasses.dataclass(frozen=True)
class Outer:
    required: int = setting()
    kind: str = setting("gru", choices=("gru", "lstm"))
    flag: bool = setting(False)
    limit: int | None = setting(None, at_least=2)
    pair: tuple[float, float] = setting((0.9, 0.98))
    steps: tuple[int, ...] = setting(())
    inner: Inner = dataclasses.field(default_factory=Inner)
    color: Any = setting({"name": "red"}, named=find)
    table: dict = setting({"a": 1})

    def __post_init__(self):
        if self.flag and self.kind == "lstm":
            raise ValueError(f"flag: expected only with 'gru', found {self.flag}")


def test_typed_fills_defaults():
    config = typed(Outer, {"required": 1})
    assert config == Outer(1) and config.color == Red() and config.inner == Inner()


def test_typed_converts_nested_mappings_and_sequences():
    values = ml_collections.ConfigDict(
        {"required": 1, "inner": {"size": 4}, "color": {"name": "red", "depth": 7}, "limit": 5}
    )
    values.pair, values.steps = [1, 0.5], [1, 2, 3]
    config = typed(Outer, values)
    assert config.inner == Inner(4) and config.color == Red(depth=7) and config.limit == 5
    assert config.pair == (1.0, 0.5) and isinstance(config.pair[0], float)
    assert config.steps == (1, 2, 3)


def test_typed_passes_no_name_to_a_group_that_has_none():
    assert typed(Outer, {"required": 1, "color": {"name": "blue", "width": 5}}).color == Blue(5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "config.required: expected a value, found none"),
        ({"required": 1, "knid": "gru"}, "config.knid: no such field; did you mean 'kind'?"),
        ({"required": 1, "zzz": 1}, "config.zzz: no such field; expected one of color, flag"),
        ({"required": "1"}, "config.required: expected int, found '1'"),
        ({"required": True}, "config.required: expected int, found True"),
        ({"required": 1.0}, "config.required: expected int, found 1.0"),
        ({"required": 1, "flag": 1}, "config.flag: expected bool, found 1"),
        ({"required": 1, "kind": "lstn"}, "found 'lstn' (did you mean 'lstm'?)"),
        ({"required": 1, "kind": 3}, "config.kind: expected str, found 3"),
        ({"required": 1, "limit": 1}, "config.limit: expected at least 2, found 1"),
        ({"required": 1, "pair": [1.0]}, "config.pair: expected 2 values, found 1"),
        ({"required": 1, "pair": 1.0}, "config.pair: expected a sequence, found 1.0"),
        ({"required": 1, "steps": "12"}, "config.steps: expected a sequence, found '12'"),
        ({"required": 1, "steps": [1, "2"]}, "config.steps[1]: expected int, found '2'"),
        ({"required": 1, "inner": 4}, "config.inner: expected a group of fields, found 4"),
        ({"required": 1, "inner": {"size": 10}}, "config.inner.size: expected at most 9, found 10"),
        ({"required": 1, "inner": {"rate": 0.0}}, "inner.rate: expected more than 0, found 0.0"),
        ({"required": 1, "inner": {"rate": 1}}, "inner.rate: expected less than 1, found 1.0"),
        ({"required": 1, "inner": {"rate": float("nan")}}, "a finite number, found nan"),
        ({"required": 1, "inner": {"rate": float("-inf")}}, "a finite number, found -inf"),
        ({"required": 1, "color": "red"}, "config.color: expected a group with a 'name'"),
        ({"required": 1, "color": {}}, "config.color.name: expected a value, found none"),
        ({"required": 1, "color": {"name": "rad"}}, "one of blue, red, found 'rad' (did you mean"),
        ({"required": 1, "color": {"name": "red", "dept": 1}}, "color.dept: no such field; did"),
        ({"required": 1, "table": ["a"]}, "config.table: expected a group of fields, found ['a']"),
        ({"required": 1, "flag": True, "kind": "lstm"}, "config.flag: expected only with 'gru'"),
    ],
)
def test_typed_names_field_expectation_and_finding_in_one_line(values, message):
    with pytest.raises(ConfigError) as caught:
        typed(Outer, values)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_typed_names_where_the_values_come_from():
    with pytest.raises(ConfigError, match=r"^config\.data\.size: "):
        typed(Inner, {"size": 0}, "config.data")


def test_each_name_is_looked_up_once():
    looked_up = []

    def look_up(name):
        looked_up.append(name)
        return {"red": Red, "inner": Inner}[name]

    @dataclasses.dataclass(frozen=True)
    class Painting:
        color: Any = setting(named=look_up)
        layers: typing.Mapping[str, Any] = setting({}, members=look_up)

    found = typed(Painting, {"color": {"name": "red"}, "layers": {"inner": {"size": 2}}})
    assert found == Painting(Red(), {"inner": Inner(2)}) and looked_up[:2] == ["red", "inner"]
    assert len(looked_up) == 3  # the last one for the painting that was made by hand


def test_members_are_configs_however_they_are_given():
    @dataclasses.dataclass(frozen=True)
    class Painting:
        layers: typing.Mapping[str, Any] = setting({"red": {}}, members=find)

    assert Painting().layers == {"red": Red()} == typed(Painting, {}).layers
    assert typed(Painting, plain(Painting({"red": {"depth": 4}}))).layers == {"red": Red(depth=4)}
    assert isinstance(hash(Painting()), int)
    for values, message in (
        ({"rad": {}}, r"layers.rad: no such field; did you mean 'red'\?"),
        ({"red": {"depth": "x"}}, "layers.red.depth: expected int, found 'x'"),
        ({"red": 3}, "layers.red: expected a group of fields, found 3"),
        ("red", "layers: expected a group of fields, found 'red'"),
    ):
        with pytest.raises(ConfigError, match=f"^config.{message}$"):
            typed(Painting, {"layers": values})
        with pytest.raises(ValueError, match=f"^{message}$"):
            Painting(values)


def test_plain_is_read_back():
    config = typed(Outer, {"required": 1, "limit": 3, "steps": (1, 2), "color": {"name": "red"}})
    values = plain(config)
    assert values["pair"] == [0.9, 0.98] and values["color"] == {"name": "red", "depth": 1}
    assert typed(Outer, values) == config


def test_setting_gives_every_config_a_mutable_default_of_its_own():
    assert Outer(1).table == Outer(1).table == {"a": 1}
    assert Outer(1).table is not Outer(1).table


def test_unknown_name_suggests_the_nearest():
    assert unknown_name("a.b", "lenght", ["length"]) == "a.b: no such field; did you mean 'length'?"
    assert unknown_name("a.b", "length", []) == "a.b: no such field; none is expected there"


@functools.cache
def config_classes():
    """Every dataclass of the package."""
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(attention_jax.__path__, "attention_jax.")
    ]
    return {
        thing
        for module in modules
        for thing in vars(module).values()
        if isinstance(thing, type) and dataclasses.is_dataclass(thing)
    }


def test_no_field_is_called_as_a_method_of_config_dict():
    """From the command line it could not be told from the method, such as `update`."""
    fields = {
        (config.__module__, field.name)
        for config in config_classes()
        for field in dataclasses.fields(config)
        if field.metadata
    }
    assert len(fields) > 150
    methods = dir(ml_collections.ConfigDict)
    assert [field for field in fields if field[1] in methods] == []


def wrong_values(field):
    """Yields what a field's limits, or its type, do not accept."""
    limits = field.metadata
    for name, step in (("at_least", -1), ("above", 0), ("at_most", 1), ("below", 0)):
        if name in limits:
            yield limits[name] + step
    if "choices" in limits:
        yield "no such choice"
    if "named" in limits:
        yield "no config"
    if isinstance(field.default, bool | int | float):
        yield "text"
        if "None" not in str(field.type):
            yield None
    if isinstance(field.default, float):
        yield float("nan")
    if isinstance(field.default, int) and not isinstance(field.default, bool):
        yield 1.5


def accepts(config, name, value):
    """Whether a class does, or blames another field; its own checks come later than this."""
    hints, some = typing.get_type_hints(config), {int: 8, float: 0.5, str: "some", bool: True}
    needed = {
        field.name: Outer(1) if "named" in field.metadata else some.get(hints[field.name])
        for field in dataclasses.fields(config)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    try:
        config(**{**needed, name: value})
    except SettingError as error:
        return not re.match(rf"{name}: expected .*, found", str(error))
    return True


@pytest.fixture
def unchecked():
    """As outside of tests, nothing else checks types."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def test_every_config_class_refuses_wrong_values_itself(unchecked):
    tried = [
        (config, field.name, value)
        for config in config_classes()
        for field in dataclasses.fields(config)
        if "setting" in type(field).__name__.lower()
        for value in wrong_values(field)
    ]
    assert len(tried) > 500 and multi_head.Config in {config for config, *_ in tried}
    assert [one for one in tried if accepts(*one)] == []


def test_a_config_class_accepts_what_a_config_may_say(unchecked):
    found = Outer(1, limit=None, steps=(1, 2), pair=(0, 1))
    assert found.steps == (1, 2) and Outer(1, limit=2).limit == 2
    for fields, message in (
        ({"limit": 1}, "limit: expected at least 2, found 1"),
        ({"kind": "grus"}, "kind: expected one of 'gru', 'lstm', found 'grus' .did you mean 'gru'"),
        ({"pair": (0.5,)}, "pair: expected 2 values, found 1"),
        ({"pair": (0.5, "x")}, r"pair\[1\]: expected float, found 'x'"),
        ({"steps": [1]}, r"steps: expected a tuple, found \[1\]"),
        ({"flag": 1}, "flag: expected bool, found 1"),
    ):
        with pytest.raises(ConfigError, match=f"^{message}"):
            Outer(1, **fields)
        with pytest.raises(ValueError, match=f"^{message}"):
            dataclasses.replace(Outer(1), **fields)
    with pytest.raises(ValueError, match="flag: expected only with 'gru'"):
        Outer(1, flag=True, kind="lstm")


def test_a_config_class_of_another_checks_both():
    @dataclasses.dataclass(frozen=True)
    class More(Inner):
        more: int = setting(1, at_least=1)

        def __post_init__(self):
            super().__post_init__()
            if self.more > 8:
                raise ValueError("more: expected less")

    assert More(2, more=3).more == 3
    for fields in ({"size": 0}, {"more": 0}, {"more": 9}):
        with pytest.raises(ValueError, match="expected"):
            More(**fields)


def test_a_field_that_stands_elsewhere_now_is_read_from_there():
    @dataclasses.dataclass(frozen=True)
    class Deeper:
        RENAMED = {"size": "inner.size", "tint": "colors.main.depth"}
        inner: Inner = setting(Inner())
        colors: typing.Mapping[str, Red] = setting({})

    found = typed(Deeper, {"size": 7, "tint": 5, "inner": {"rate": 0.25}})
    assert found == Deeper(Inner(7, 0.25), {"main": Red(depth=5)})
    with pytest.raises(ConfigError, match="config.size: no such field; it is config.inner.size no"):
        typed(Deeper, {"size": 7, "inner": {"size": 8}})


def test_a_field_that_is_no_more_is_ignored_where_it_said_nothing():
    @dataclasses.dataclass(frozen=True)
    class Narrower:
        FORMER = {"width": 0}
        depth: int = setting(1)

    assert typed(Narrower, {"depth": 2, "width": 0}) == Narrower(2)
    with pytest.raises(ConfigError, match="config.width: no such field"):
        typed(Narrower, {"width": 3})
