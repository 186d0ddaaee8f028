"""Every program explains itself at once and runs from the root of the repository."""

import os
import subprocess
import sys

import pytest

PROGRAMS = (
    "train", "sweep", "evaluate", "translate", "score", "align", "compile_check", "weights",
    "import_weights", "gke.manifest", "gke.sweep",
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_is_short_and_has_examples(launch, program, flag):
    result = launch(program, flag)
    assert (result.code, result.err) == (0, "")
    assert f"usage: python -m launch.{program}" in result.out
    assert "for example:" in result.out
    assert len(result.out.splitlines()) < 40


def test_help_that_nobody_reads_is_quiet(repository, python_environment):
    reader, writer = os.pipe()
    os.close(reader)  # as `head` does
    result = subprocess.run(
        [sys.executable, "-m", "launch.weights", "--help"], cwd=repository, env=python_environment,
        stdout=writer, stderr=subprocess.PIPE, text=True, timeout=300,
    )  # fmt: skip
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, "")


def test_help_does_not_wait_for_heavy_imports(repository, python_environment):
    code = (
        "import sys; sys.argv = ['train', '--help']\n"
        "import runpy\n"
        "try: runpy.run_module('launch.train', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "heavy = {'jax', 'orbax', 'flax', 'matplotlib', 'tensorflow_datasets'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=repository, env=python_environment,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
