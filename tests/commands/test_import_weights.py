"""The program that imports models: the run is used as any other, and mistakes are one line."""

import re

import pytest

from tests.foreign_models import answers_of
from tests.golden.foreign.make import ASKED


@pytest.fixture(scope="module")
def imported(launch, repository, tmp_path_factory):
    """A run of a small model of T5, and the folder that it is of."""
    folder, run = repository / "tests/golden/foreign/t5", tmp_path_factory.mktemp("t5") / "run"
    found = launch("import_weights", f"--from={folder}", f"--workdir={run}")
    assert (found.code, found.err) == (0, "")
    assert found.out == f"The model of {folder} is in {run}\n"
    return run, folder


def test_an_imported_run_is_translated_and_scored_with(launch, imported, tmp_path):
    run, folder = imported
    lines = "".join(f"{text}\n" for text in ASKED)
    found = launch("translate", f"--workdir={run}", stdin=lines.encode())
    assert found.code == 0, found.err
    # Symbols that no text has are written here, and left out by the other program.
    written = [re.sub(r"<unused_\d+>", "", line) for line in found.out.splitlines()]
    known = answers_of(folder)["texts"]
    assert written == [text if asked else "" for asked, text in zip(ASKED, known, strict=True)]
    for name in ("source", "target"):
        (tmp_path / name).write_text("the dog\n")
    files = [f"--{name}={tmp_path / name}" for name in ("source", "target")]
    assert launch("score", f"--workdir={run}", *files).code == 0
    weights = tmp_path / "weights.safetensors"
    assert launch("weights", f"--workdir={run}", f"--output={weights}").code == 0


def test_what_an_imported_run_has_not_is_said(launch, imported):
    run, folder = imported
    error = launch("evaluate", f"--workdir={run}").error
    assert error.startswith("config.data.name: expected data with examples, found 'imported'")
    found = launch("train", f"--config={run / 'config.json'}", f"--workdir={run}")
    assert found.out.startswith(f"This run is complete: {run}\n")
    error = launch("import_weights", f"--from={folder}", f"--workdir={run}").error
    assert error == f"{run}: expected a new directory, found a run"
    error = launch("import_weights", f"--from={run}", f"--workdir={run}").error
    assert "config.json: expected a value named 'model_type', found none" in error
    assert launch("import_weights", f"--workdir={run}").error.startswith("--from: expected a value")
