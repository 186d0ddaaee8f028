"""The notebook of the first hour: its cells run, and the outputs that it is kept with are small."""

import json
import os
import shutil
import sys

import pytest

from attention_jax import api
from attention_jax.layers import mechanisms
from attention_jax.models import build_model
from attention_jax.objectives import Objective
from attention_jax.runs.config import from_config_dict

# What cells say, and what they say here: the first run is the one that tests share, which was
# trained with the config as it is.
CHANGES = {"STEPS = 250": "STEPS = 400", '    config.search = {"method": "greedy"}\n': ""}


@pytest.fixture(scope="module")
def cells(repository):
    page = json.loads((repository / "docs" / "first_hour.ipynb").read_text(encoding="utf-8"))
    assert (page["nbformat"], page["nbformat_minor"]) == (4, 5)
    return [cell for cell in page["cells"] if cell["cell_type"] == "code"]


def test_the_cells_run(cells, trained, repository, tmp_path, monkeypatch, capsys):
    """The first training finds its run complete; the others are built and checked, not trained."""
    train, configs = api.train, {}

    def build(config, workdir):
        if workdir.name == "plain":
            return train(config, workdir)
        configs[workdir.name] = config = from_config_dict(config)
        Objective(config.objectives).check(build_model(config.model, 14, 14))
        return api.load(workdir.with_name("plain"))

    monkeypatch.setattr(api, "train", build)
    (tmp_path / "configs").symlink_to(repository / "configs")
    shutil.copytree(trained, tmp_path / "runs" / "first_hour" / "plain")
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "docs")  # where Jupyter starts it
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(mechanisms, "__path__", [*mechanisms.__path__])
    monkeypatch.setenv("ATTENTION_JAX_EXTENSIONS", "")  # to be put back
    sources = ["".join(cell["source"]) for cell in cells]
    for said, here in CHANGES.items():
        assert sum(said in source for source in sources) == 1, said
        sources = [source.replace(said, here) for source in sources]
    names: dict = {}
    for source in sources:
        exec(compile(source, "first_hour", "exec"), names)  # noqa: S102
    assert os.getcwd() == str(tmp_path)
    assert configs["covered"].objectives["coverage_loss"].weight == 1.0
    assert configs["euclidean"].model.attention.depth == 48
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"This run is complete: {tmp_path / 'runs/first_hour/plain'}"
    assert printed[-4].split()[0] == "BLEU"
    assert [line.split()[0] for line in printed[-3:]] == ["plain", "covered", "euclidean"]
    sys.modules.pop("attention_jax.layers.mechanisms.euclidean")


def test_the_outputs_are_small_and_of_one_execution_from_the_top(cells, repository):
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    kinds = {output["output_type"] for cell in cells for output in cell["outputs"]}
    assert kinds == {"stream", "execute_result"}
    path = repository / "docs" / "first_hour.ipynb"
    assert path.stat().st_size < 100_000 and "/root/" not in path.read_text(encoding="utf-8")
