"""Parts are found by file name, in the package's folders and in those of extensions."""

import importlib
import sys

import pytest

from attention_jax.config_choices import Choices
from attention_jax.discovery import VARIABLE
from attention_jax.errors import ConfigError
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.refinement import REFINEMENTS
from attention_jax.runs.config import from_config_dict, template, to_plain
from configs import quickstart

MECHANISM = '''
"""Half a dot product."""
import dataclasses
from attention_jax.configuration import setting
from attention_jax.layers.mechanisms import luong_dot

PAPER = "of this test"

@dataclasses.dataclass(frozen=True)
class Config(luong_dot.Config):
    name: str = setting("half_dot")

build = luong_dot.build
'''
REFINEMENT = '''
"""Changes nothing."""
import dataclasses
from attention_jax.configuration import setting
from attention_jax.layers.refinement import RefinementConfig

PAPER = "of this test"

@dataclasses.dataclass(frozen=True)
class Config(RefinementConfig):
    order = 0
    strength: float = setting(1.0, at_least=0.0)

def refine(config, parts, head):
    return parts
'''


@pytest.fixture
def extension(tmp_path, monkeypatch):
    """A function that writes the file of a part into a folder of extensions."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    written = []

    def write(kind, name, text):
        package = f"attention_jax.layers.{kind}"
        module = importlib.import_module(package)
        monkeypatch.setattr(module, "__path__", list(module.__path__))
        path = tmp_path / "layers" / kind / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        written.append(f"{package}.{name}")

    yield write
    for name in written:
        sys.modules.pop(name, None)


def test_a_mechanism_and_a_refinement_of_an_extension_are_chosen_by_name(extension):
    extension("mechanisms", "half_dot", MECHANISM)
    extension("refinements", "nothing", REFINEMENT)
    assert "half_dot" in MECHANISMS.names() and "nothing" in REFINEMENTS.names()
    values = quickstart.get_config()
    values.model.attention = {
        "name": "multi_head",
        "score": {"name": "half_dot"},
        "refinements": {"nothing": {"strength": 2.0}},
    }
    attention = from_config_dict(values).model.attention
    assert attention.score.name == "half_dot" and attention.refinements["nothing"].strength == 2.0
    assert from_config_dict(to_plain(from_config_dict(values))).model.attention == attention
    values.model.attention.refinements.nothing.strength = -1.0
    where = "^config.model.attention.refinements.nothing.strength: expected at least 0, found -1.0$"
    with pytest.raises(ConfigError, match=where):
        from_config_dict(values)


def test_two_parts_of_one_name_are_refused_in_one_line(extension):
    extension("refinements", "rope", REFINEMENT)
    with pytest.raises(ConfigError, match="expected one part called 'rope', found it in") as caught:
        REFINEMENTS.names()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("missing", ["/no/such/folder", "~/no_such_folder", "{folder}/a_file"])
def test_a_folder_of_extensions_that_is_not_there_is_refused(tmp_path, monkeypatch, missing):
    (tmp_path / "a_file").touch()
    missing = missing.format(folder=tmp_path)
    monkeypatch.setenv(VARIABLE, f"{tmp_path}:{missing}")
    with pytest.raises(ConfigError, match=f"{VARIABLE}: expected folders, found '{missing}'"):
        REFINEMENTS.names()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\n\nimport no_such_module\n", ":3: expected .*, found ModuleNotFoundError: No module"),
        ("def (:\n", ": expected a file that can be imported, found SyntaxError: "),
    ],
)
def test_a_file_that_cannot_be_imported_is_named_in_one_line(extension, text, found):
    extension("refinements", "unready", text)
    with pytest.raises(ConfigError, match=f"layers/refinements/unready.py{found}") as caught:
        REFINEMENTS.names()
    assert "\n" not in str(caught.value)


def test_a_config_of_another_name_than_its_file_is_refused_in_one_line(extension):
    extension("mechanisms", "half_the_dot", MECHANISM)
    values = quickstart.get_config()
    values.model.attention = {"name": "half_the_dot"}
    with pytest.raises(ConfigError) as caught:
        from_config_dict(values)
    assert str(caught.value).endswith(
        "layers/mechanisms/half_the_dot.py: expected Config.name to be 'half_the_dot' by default, "
        "as the file is called, found 'half_dot'"
    )


def test_an_unknown_part_is_told_where_ones_own_would_be(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))  # where there is none
    for group, kind, chosen in (
        ({"model": {"attention": {"name": "weary"}}}, "layers/mechanisms", ()),
        ({"objectives": {"diagonal": {}}}, "objectives", ()),
        ({}, "objectives", [("objectives.diagonal.weight", 0.1)]),
        ({"data": {"name": "recipes_of_mine"}}, "data/tasks", ()),
    ):
        values = quickstart.get_config()
        values.update(group)
        with pytest.raises(ConfigError) as found:
            template(values, Choices(chosen))
        own = f" (your own: {kind}/NAME.py in a folder that {VARIABLE} names)"
        assert str(found.value).endswith(own)
