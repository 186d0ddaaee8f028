"""Commands on pages work: each is parsed as its program does, with all its options and values."""

import re
from pathlib import Path

import pytest

from attention_jax.analysis.gold_links import GoldFiles
from tests.example_commands import UNPARSED, Example, check, commands, lines
from tests.test_pages import written_by_hand

_BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
PAGES = (
    "README.md", "docs/alignment.md", "docs/configuration.md", "docs/installing.md",
    "docs/launching.md", "docs/own_text.md", "docs/runs.md", "docs/scaling.md", "docs/sweeps.md",
    "docs/weights.md",
)  # fmt: skip


def examples(page: Path) -> list[Example]:
    """The commands of this project in the blocks of a page."""
    blocks = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [found for block in blocks for line in lines(block) for found in commands(line)]


def is_of_a_run(example: Example) -> bool:
    """Whether a config is that of a run that the reader has."""
    return any(re.match("--config=.*json$", each) for each in example.arguments)


def test_pages_with_commands_are_all_here(repository):
    found = {
        page.relative_to(repository).as_posix()
        for page in written_by_hand(repository)
        if examples(page)
    }
    assert found <= {*PAGES}


@pytest.mark.parametrize("name", PAGES)
def test_commands_of_pages_are_taken_by_their_programs(repository, trained, monkeypatch, name):
    monkeypatch.chdir(repository)
    # Gold links are the reader's, and of a run that is not there yet.
    monkeypatch.setattr(GoldFiles, "check_files", lambda self, splits: self.check())
    wrong = []
    for example in examples(repository / name):
        if example.program in UNPARSED or is_of_a_run(example):
            continue
        try:
            check(example, trained, monkeypatch)
        except Exception as error:  # all of a page at once
            wrong.append(f"{example}: {error}")
    assert not wrong, "\n".join(wrong)
