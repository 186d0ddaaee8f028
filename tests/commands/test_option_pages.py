"""The options and names that pages tell of are those of the configs."""

import dataclasses
import re
from collections.abc import Iterator

import pytest

from attention_jax import objectives
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
def configuration(repository) -> str:
    """The text of the page of configuration."""
    return (repository / "docs" / "configuration.md").read_text(encoding="utf-8")


def test_options_of_the_pages_exist(repository, known):
    pages = [*repository.glob("*.md"), *(repository / "docs").glob("*.md")]
    paths = {
        path
        for page in pages
        if page.name != "CHANGELOG.md"  # tells of what there was
        for path in re.findall(r"--config\.([\w.]*\w)", page.read_text(encoding="utf-8"))
    }
    assert len(paths) > 40
    assert not [path for path in paths if not _parts(path) <= known]


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
