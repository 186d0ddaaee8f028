"""Parts added from outside, in a folder of their own: the examples of docs/extending.md.

Each trains for a few steps, is evaluated and translates, through the command line; nothing of the
package is edited.
"""

import os
import re
import subprocess
import sys

import pytest

from attention_jax.discovery import VARIABLE
from tests.programs import Commands

QUICK = (
    "--config.training.num_steps=6", "--config.training.evaluate_every_steps=3",
    "--config.training.checkpoint_every_steps=3", "--config.search.method=greedy",
    "--config.evaluation.num_heat_maps=1",
)  # fmt: skip
SOURCES = """
from ml_collections import ConfigDict
from configs import quickstart


def get_config():
    config = quickstart.get_config("smoke")
    config.model.attention = {"name": "gated_sources"}
    config.model.sources.again = ConfigDict({
        "input": {"name": "waves", "field": "source"}, "encoder": {"name": "pyramid"},
    })
    return config
"""
# What is chosen together, for each run costs a compilation.
RUNS = {
    "score, normalizer, strategy and writer": (
        "--config.model.attention.name=cosine", "--config.model.attention.normalizer=squared",
        "--config.sharding.strategy=checked", "--config.training.writers=('table',)",
    ),
    "tracker, decoder and readout": (
        "--config.model.attention.name=fading", "--config.model.decoder.name=plain",
        "--config.model.readout.name=copying",
    ),
    "input, encoder, predictor and objective": (
        "--config.model.sources.source.input.name=waves",
        "--config.model.sources.source.encoder.name=pyramid",
        "--config.model.decoder.bridge=mean",
        "--config.model.predictors.length.factor=5.0",
        "--config.objectives.length_error.weight=0.1",
    ),
    "task": ("--config.data.name=plurals",),
}  # fmt: skip


def examples(page):
    """Returns the files of a page: what stands in a block below its path."""
    return dict(re.findall(r"^`([\w/]+\.py)`:\n\n```python\n(.*?)^```$", page, re.S | re.M))


@pytest.fixture(scope="module")
def folder(repository, tmp_path_factory):
    """A folder with the examples, laid out as the package."""
    folder = tmp_path_factory.mktemp("extensions")
    for path, text in examples((repository / "docs" / "extending.md").read_text()).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "two_sources.py").write_text(SOURCES)
    return folder


@pytest.fixture(scope="module")
def extended(folder):
    """Runs programs that find the folder."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(folder)
    commands = Commands()
    yield commands
    commands.close()
    if before is None:
        del os.environ[VARIABLE]
    else:
        os.environ[VARIABLE] = before


def trained(extended, directory, *options):
    """Trains, which ends with an evaluation, and translates."""
    ended = extended("train", f"--workdir={directory}", *options, *QUICK)
    assert ended.code == 0, ended.err
    assert (directory / "results.json").exists()
    written = extended("translate", f"--workdir={directory}", stdin=b"12\n7\n")
    assert written.code == 0, written.err
    assert written.out.count("\n") == 2
    return ended


@pytest.mark.parametrize("name", RUNS)
def test_parts_from_outside_are_trained_and_used(extended, tmp_path, name):
    trained(extended, tmp_path / "run", "--config=configs/quickstart.py:smoke", *RUNS[name])
    if "writer" in name:
        lines = (tmp_path / "run" / "metrics.tsv").read_text().splitlines()
        assert any("train\tloss" in line for line in lines)


def test_what_was_made_with_another_file_is_said(extended, folder, tmp_path):
    """Where a sweep goes on, and where one of its runs is asked for again."""
    sweep = ("sweep", f"--workdir={tmp_path / 'sweep'}")
    score = "--config.model.attention.name=cosine"
    ended = extended(*sweep, "--config=configs/quickstart.py:smoke", "--seeds=1", score, *QUICK)
    name, finished = "layers/mechanisms/cosine.py", "The run is finished.\n"
    assert ended.code == 0 and f"{name} " in (tmp_path / "sweep" / "sweep.md").read_text()
    assert extended(*sweep).err == finished
    path = folder / name
    text = path.read_text()
    path.write_text(f"{text}# mended\n")
    found = extended(*sweep).err
    path.write_text(text)
    assert found == f"notice: changed since finished runs were made: {name}\n{finished}"


def test_several_sources_are_attended_to(extended, folder, tmp_path):
    trained(extended, tmp_path / "run", f"--config={folder}/two_sources.py")


def test_a_mechanism_of_one_source_refuses_two(extended, folder, tmp_path):
    options = (f"--config={folder}/two_sources.py", "--config.model.attention.name=bahdanau")
    message = extended("train", f"--workdir={tmp_path}", *options).error
    assert "attention.name" in message and "source, again" in message


def test_an_experiment_lists_its_runs(extended, folder, repository):
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    command = [sys.executable, folder / "decays.py", "--list", "--smoke"]
    listed = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert listed.returncode == 0, listed.stderr
    assert listed.stdout.count("decay_") >= 6


def test_two_files_of_one_name_are_one_line(folder, tmp_path, repository):
    other = tmp_path / "other" / "layers" / "mechanisms"
    other.mkdir(parents=True)
    (other / "cosine.py").write_text((folder / "layers/mechanisms/cosine.py").read_text())
    environment = {**os.environ, VARIABLE: os.pathsep.join([str(folder), str(tmp_path / "other")])}
    command = [
        sys.executable, "-m", "launch.train", f"--workdir={tmp_path / 'run'}",
        "--config=configs/quickstart.py:smoke", "--config.model.attention.name=cosine",
    ]  # fmt: skip
    ended = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=repository, timeout=300
    )
    assert ended.returncode == 2 and ended.stderr.count("\n") == 1, ended.stderr
    assert "expected one part called 'cosine', found it in" in ended.stderr


def test_an_input_of_ones_own_passes_the_battery(folder, repository):
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "-q", "--tb=line", "-p", "no:cacheprovider",
         "tests/conformance/test_rows_alone.py", "-k", "waves"],
        capture_output=True, text=True, cwd=repository, env={**os.environ, VARIABLE: str(folder)},
    )  # fmt: skip
    assert ended.returncode == 0 and "1 passed" in ended.stdout, ended.stdout + ended.stderr
