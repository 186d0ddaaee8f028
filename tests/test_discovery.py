"""Parts are found by file name, in the package's folders and in those of extensions."""

import importlib
import sys

import pytest

from attention_jax import discovery
from attention_jax.config_choices import Choices
from attention_jax.discovery import VARIABLE, own_files, own_mistake
from attention_jax.errors import ConfigError, PartError
from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.refinement import REFINEMENTS
from attention_jax.models import build_model
from attention_jax.objectives.compose import OBJECTIVES
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
OBJECTIVE = '''
import dataclasses

@dataclasses.dataclass(frozen=True)
class Term:
    weight: float = 1.0
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
    discovery._imported.cache_clear()


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


def test_a_name_that_no_field_can_have_is_refused_in_one_line(extension):
    extension("refinements", "pea-ky", REFINEMENT)
    with pytest.raises(ConfigError, match=r"refinements/pea-ky\.py: expected a name of letters, "):
        REFINEMENTS.names()


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
        ("def (:\n", ":1: expected a file that can be imported, found SyntaxError: "),
    ],
)
def test_a_file_that_cannot_be_imported_is_named_in_one_line(extension, text, found):
    extension("refinements", "unready", text)
    with pytest.raises(ConfigError, match=f"layers/refinements/unready.py{found}") as caught:
        REFINEMENTS.names()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        ({"model": {"attention": {"normalizer": "recipes"}}}, "layers/normalizers"),
        ({"sharding": {"strategy": "recipes"}}, "devices/strategies"),
        ({"training": {"writers": ("recipes",)}}, "runs/writers"),
    ],
)
def test_an_unknown_choice_is_told_where_ones_own_would_be(group, kind):
    values = quickstart.get_config()
    values.update(group)
    with pytest.raises(ConfigError) as found:
        from_config_dict(values)
    own = f" (your own: {kind}/NAME.py in a folder that {VARIABLE} names)"
    assert str(found.value).endswith(own)


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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("@dataclasses.dataclass(frozen=True)", "", "expected Config to be a frozen dataclass"),
        ("(frozen=True)\nclass Config(luong_dot.Config)", "\nclass Config", "expected Config to"),
        ('name: str = setting("half_dot")', "pass", "expected Config.name to be 'half_dot' by def"),
        ('setting("half_dot")', "setting()", "expected Config.name to be 'half_dot' .* found none"),
        ("build = ", "built = ", "expected a function called build, found none"),
        ("luong_dot.build", "lambda *_: (1, {})", "expected build to return MechanismParts or"),
    ],
)
def test_what_is_no_mechanism_is_refused_in_one_line(extension, old, new, message):
    extension("mechanisms", "half_dot", MECHANISM.replace(old, new))
    with pytest.raises(PartError, match=f"layers/mechanisms/half_dot.py: {message}") as caught:
        build_mechanism(MECHANISMS.config("half_dot")(), 4, 4, 4)
    assert "\n" not in str(caught.value)


def test_a_refusal_of_ones_own_names_the_group_and_the_file(extension):
    refusing = "def build(*sizes):\n    raise ValueError('expected even depths')"
    extension("mechanisms", "half_dot", MECHANISM.replace("build = luong_dot.build", refusing))
    values = quickstart.get_config()
    values.model.attention = {"name": "half_dot"}
    with pytest.raises(ConfigError) as caught:
        build_model(from_config_dict(values).model, 7, 7)
    found = str(caught.value)
    assert found.startswith("config.model: expected even depths (")
    assert found.endswith("half_dot.py)")


def test_an_error_in_a_file_of_ones_own_is_told_with_its_place(extension, tmp_path):
    failing = "\ndef build(*sizes):\n    return 1 + None\n"
    extension("mechanisms", "half_dot", MECHANISM.replace("build = luong_dot.build", failing))
    with pytest.raises(TypeError) as caught:
        build_mechanism(MECHANISMS.config("half_dot")(), 4, 4, 4)
    place = tmp_path / "layers" / "mechanisms" / "half_dot.py"
    assert own_mistake(caught.value).startswith(f"{place}:15, build: TypeError: unsupported")
    assert own_mistake(TypeError("of another")) is None


def test_an_objective_lacks_nothing(extension, tmp_path, monkeypatch):
    module = importlib.import_module("attention_jax.objectives")
    monkeypatch.setattr(module, "__path__", list(module.__path__))
    path = tmp_path / "objectives" / "half_loss.py"
    path.parent.mkdir()
    path.write_text(OBJECTIVE)
    with pytest.raises(PartError, match="half_loss.py: expected Term to have weight, schedule, co"):
        OBJECTIVES.config("half_loss")
    sys.modules.pop("attention_jax.objectives.half_loss", None)


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


def test_files_of_parts_are_told_by_their_content(extension, tmp_path):
    """Whatever else lies in the folder is none of them."""
    extension("mechanisms", "mine", "a = 1\n")
    for other in ("config.py", ".venv/layers/other.py"):
        (tmp_path / other).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / other).write_text("b = 1\n")
    before = own_files()
    assert [*before] == ["layers/mechanisms/mine.py"] and len(before[[*before][0]]) == 64
    extension("mechanisms", "mine", "a = 2\n")
    assert own_files().keys() == before.keys() and own_files() != before
