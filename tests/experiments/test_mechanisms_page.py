"""Every part of a model that a config can choose has its row in docs/mechanisms.md."""

import importlib
import sys

import pytest

from attention_jax import objectives
from attention_jax.errors import UserError
from attention_jax.layers import mechanisms
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.objectives import compose
from experiments import mechanisms_page
from experiments.kit.sections import with_sections

COMMAND = "python -m experiments.mechanisms_page"
NEW = '"""New attention | of a test.\n\nMore."""\n{paper}\nimport dataclasses\n\n\n' + (
    "@dataclasses.dataclass(frozen=True)\nclass Config:\n"
    "    name: str = 'brand_new'\n    width: int = 3\n"
)


@pytest.fixture
def new_mechanism(tmp_path, monkeypatch):
    """A function that adds a mechanism file, given its line `PAPER`."""
    monkeypatch.setattr(mechanisms, "__path__", [*mechanisms.__path__, str(tmp_path)])

    def add(paper: str) -> None:
        (tmp_path / "brand_new.py").write_text(NEW.format(paper=paper))
        importlib.invalidate_caches()

    yield add
    sys.modules.pop(f"{mechanisms.__name__}.brand_new", None)


@pytest.fixture(autouse=True)
def _in_the_clone(repository, monkeypatch):
    monkeypatch.chdir(repository)


def is_current() -> bool:
    """Whether the committed page has the tables that the files give."""
    page = mechanisms_page.PAGE
    section = {mechanisms_page.SECTION: mechanisms_page.parts_section()}
    return with_sections(page, section) == page.read_text(encoding="utf-8")


def test_the_page_is_what_the_files_give():
    assert is_current(), f"{mechanisms_page.PAGE}: not what the files give; run `{COMMAND}`"
    assert COMMAND in mechanisms_page.PAGE.read_text(encoding="utf-8")


def test_a_new_file_changes_the_page(new_mechanism):
    new_mechanism("PAPER = 'Nobody (2030), section 1'")
    assert not is_current()
    (row,) = [row for row in mechanisms_page.parts_section().splitlines() if "brand_new" in row]
    assert r"New attention \| of a test |" in row
    assert "| Nobody (2030), section 1 | `width=3` | – |" in row


def test_a_file_without_its_paper_is_one_line(new_mechanism):
    new_mechanism("")
    with pytest.raises(UserError, match="mechanisms/brand_new.py: expected PAPER, .*, found none$"):
        mechanisms_page.parts_section()


def test_all_that_can_be_chosen_is_listed():
    packages = {package.__name__.rpartition(".")[2]: package
                for package in mechanisms_page.part_packages()}  # fmt: skip
    assert tuple(packages)[: len(mechanisms_page.FIRST)] == mechanisms_page.FIRST
    assert list(mechanisms_page.part_modules(packages["mechanisms"])) == MECHANISMS.names()
    assert list(mechanisms_page.part_modules(objectives)) == compose.OBJECTIVES.names()


def test_a_part_is_shown_with_the_configs_that_start_with_it():
    users = mechanisms_page.config_users()
    assert "gnmt2016" in users["decoders", "gnmt"]
    assert users["refinements", "rope"] == ["transformer_lm"]
    assert users["mechanisms", "coverage_embedding"] == ["mi2016"]
    assert users["objectives", "bilingual_symmetry"] == ["cohn2016_symmetric"]
