"""The options and names that pages tell of are those of the configs."""

import dataclasses
import re
from collections.abc import Iterator

import pytest

from attention_jax import api, objectives
from attention_jax.commands import cli
from attention_jax.data.config import DATA_SETS, data_config_class
from attention_jax.layers.bridges import BRIDGES
from attention_jax.runs.config import from_config_dict, to_plain
from attention_jax.runs.size_of_text import USUAL, settled
from attention_jax.updates import averaging, optimizers, schedules
from experiments import mechanisms_page

CONFIGS = (
    "vaswani2017.py:multi30k", "bahdanau2015.py:parallel", "gnmt2016.py:smoke",
    "libovicky2017.py:parallel", "allamanis2016.py", "lei2016.py:smoke",
    "huang2016.py",
)  # fmt: skip
# Groups of configs that the page of configuration names its fields by.
GROUPS = "data|model|objectives|optimizer|schedule|training|evaluation|search|sharding"


@pytest.fixture(scope="module")
def known(repository) -> set[str]:
    """Names of all fields, and of the parts whose configs have them."""
    found: set[str] = set()
    for name in CONFIGS:
        config = cli.load_config(str(repository / "configs" / name))
        if name.endswith(":parallel"):
            config.data.train_source, config.data.train_target = "train.en", "train.de"
            for files in config.data.get("further", {}).values():
                files.train = "train.fr"
        found |= set(_keys(to_plain(from_config_dict(settled(config, print, USUAL)))))
    for package in (*mechanisms_page.part_packages(), objectives):
        for part, module in mechanisms_page.part_modules(package).items():
            fields = dataclasses.fields(mechanisms_page.config_of(module))
            found |= {part, *(field.name for field in fields)}
    for name in DATA_SETS.names():
        found |= {field.name for field in dataclasses.fields(data_config_class(name))}
    return found


@pytest.fixture(scope="module")
def texts(repository) -> dict[str, str]:
    """The pages that speak of the present, by their names."""
    pages = [*repository.glob("*.md"), *(repository / "docs").glob("*.md")]
    return {page.name: page.read_text(encoding="utf-8") for page in pages
            if page.name != "CHANGELOG.md"}  # fmt: skip


@pytest.fixture(scope="module")
def configuration(repository) -> str:
    """The text of the page of configuration."""
    return (repository / "docs" / "configuration.md").read_text(encoding="utf-8")


def test_options_of_the_pages_exist(texts, known):
    paths = {
        path
        for text in texts.values()
        for path in re.findall(r"--config\.([\w.]*\w)", text)
    }
    assert len(paths) > 40
    assert not [path for path in paths if not _parts(path) <= known]


def test_fields_that_pages_name_exist(texts, known):
    """As `search.beam_size`, `config.data.lowercase` or `objectives.x.weight=1`."""
    field = re.compile(rf"(?<![\w/.-])(?:config\.)?((?:{GROUPS})\.[a-z][\w.]*\w)")
    paths = {
        (page, path)
        for page, text in texts.items()
        for code in inline_code(text)
        for path in field.findall(code)
    }
    assert len(paths) > 100
    others = {
        ("architecture.md", "model.start"),  # a function
        ("configuration.md", "model.source_embedding_dim"),  # a former name
        ("configuration.md", "schedule.py"), ("runs.md", "evaluation.json"),  # files
        ("weights.md", "model.safetensors"),
    }  # fmt: skip
    assert not sorted(
        f"{page}: {path}" for page, path in paths - others if not _parts(path) <= known
    )


def test_options_that_pages_name_beside_a_program_are_of_it(texts, repository):
    """As `launch.translate --prefix`: the help of the program tells of it."""
    wrong, count = [], 0
    for page, text in texts.items():
        for code in inline_code(text):
            for name, rest in re.findall(r"\blaunch\.(\w+)((?: [^|`]*)?)", code):
                files = (repository / "attention_jax" / "commands").glob(f"{name}*.py")
                if not (told := "".join(file.read_text(encoding="utf-8") for file in files)):
                    continue
                for option in re.findall(r"(?<!\S)--([a-z]\w*)", rest):
                    count += 1
                    wrong += [f"{page}: {code}"] if f"--{option}" not in told else []
    assert count > 20
    assert not wrong


def test_what_pages_ask_of_a_run_is_there(texts):
    """As `run.translate`, `api.load`, on pages where a run is that of the Python API."""
    names = {
        (owner, name)
        for page in ("python.md", "own_text.md", "runs.md", "alignment.md")
        for owner, name in re.findall(r"\b(run|api)\.([a-z_]+)\b", texts[page])
        if name not in ("json", "log")
    }
    assert len(names) > 10
    owners = {"run": api.Run, "api": api}
    assert not [each for each in sorted(names) if not hasattr(owners[each[0]], each[1])]


def test_fields_that_stand_for_words_of_the_field_exist(configuration, known):
    table = configuration.partition("## The words of the field")[2]
    paths = set(re.findall(rf"`((?:{GROUPS})\.[\w.]+)", table))
    assert len(paths) > 10
    assert not [path for path in paths if not _parts(path) <= known]


@pytest.mark.parametrize(
    ("group", "lookup"),
    [
        ("optimizer", optimizers.lookup),
        ("schedule", schedules.lookup),
        ("training.averaging", averaging.lookup),
    ],
)
def test_names_to_choose_are_all_there_are(configuration, group, lookup):
    with pytest.raises(KeyError) as error:
        lookup("no such name")
    assert _names(configuration, group) == set(error.value.args[0])


def test_bridges_to_choose_are_all_there_are(configuration):
    assert _names(configuration, "model.decoder.bridge") == set(BRIDGES)


def inline_code(text: str) -> list[str]:
    """The code between backticks in the prose of a page."""
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose)]


def _names(configuration: str, group: str) -> set[str]:
    (row,) = re.findall(rf"^\| `{group}` \|.*$", configuration, re.MULTILINE)
    return set(re.findall(r"`(\w+)`", row.rpartition(" | ")[2]))


def _parts(path: str) -> set[str]:
    """The components of a path, but for placeholders in capitals."""
    return {part for part in path.split(".") if not part.isupper()}


def _keys(values) -> Iterator[str]:
    if isinstance(values, dict):
        for key, value in values.items():
            yield key
            yield from _keys(value)
