"""The notebook of the first hour: all cells run, and show what they are kept with."""

import ast
import contextlib
import io
import json
import os
import re
import sys

import pytest
from matplotlib.figure import Figure

from attention_jax.layers import mechanisms

SAID, HERE = "STEPS = 250", "STEPS = 12"


@pytest.fixture(scope="module")
def cells(repository):
    page = json.loads((repository / "docs" / "first_hour.ipynb").read_text(encoding="utf-8"))
    assert (page["nbformat"], page["nbformat_minor"]) == (4, 5)
    return [cell for cell in page["cells"] if cell["cell_type"] == "code"]


def run_cell(source, names):
    """Runs a cell as Jupyter does: returns what it prints, and the value of its last line."""
    *body, last = ast.parse(source).body
    value, printed = None, io.StringIO()
    with contextlib.redirect_stdout(printed):
        if not isinstance(last, ast.Expr):
            body, last = [*body, last], None
        exec(compile(ast.Module(body, []), "first_hour", "exec"), names)  # noqa: S102
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "first_hour", "eval"), names)  # noqa: S307
    return printed.getvalue(), value


def beginnings(text):
    """Returns how each line begins, whatever its numbers are."""
    return [re.sub(r"[\d.]+", "#", line.split()[0]) for line in text.splitlines()]


def test_all_cells_run_and_show_what_they_are_kept_with(cells, repository, tmp_path, monkeypatch):
    """With fewer steps: the numbers are others."""
    (tmp_path / "configs").symlink_to(repository / "configs")
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "docs")  # where Jupyter starts it
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(mechanisms, "__path__", [*mechanisms.__path__])
    monkeypatch.setenv("ATTENTION_JAX_EXTENSIONS", "")  # to be put back
    sources = ["".join(cell["source"]) for cell in cells]
    assert sum(SAID in source for source in sources) == 1
    names: dict = {}
    for number, (source, cell) in enumerate(zip(sources, cells, strict=True), start=1):
        printed, value = run_cell(source.replace(SAID, HERE), names)
        kept = {output["output_type"]: output for output in cell["outputs"]}
        text = "".join(kept.get("stream", {"text": []})["text"])
        assert beginnings(printed) == beginnings(text), f"cell {number}"
        assert (value is not None) == ("execute_result" in kept), f"cell {number}"
        if value is not None:
            assert isinstance(value, Figure) and kept["execute_result"]["data"]["image/png"]
    assert os.getcwd() == str(tmp_path)
    runs = {name: names[name] for name in ("plain", "covered", "euclidean")}
    assert {run.trained.step for run in runs.values()} == {12}
    assert runs["covered"].config.objectives.coverage_loss.weight == 1.0
    assert runs["euclidean"].config.model.attention.depth == 48
    sys.modules.pop("attention_jax.layers.mechanisms.euclidean")


def test_the_outputs_are_small_and_of_one_execution_from_the_top(cells, repository):
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    kinds = {output["output_type"] for cell in cells for output in cell["outputs"]}
    assert kinds == {"stream", "execute_result"}
    path = repository / "docs" / "first_hour.ipynb"
    assert path.stat().st_size < 100_000 and "/root/" not in path.read_text(encoding="utf-8")
