"""Standard streams that are closed, full, or not UTF-8: one line, the right code, no traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

_LAUNCH = Path(__file__).resolve().parents[2] / "launch"
_PROGRAMS = sorted({path.stem for path in _LAUNCH.glob("*.py")} - {"__init__"})
_PROGRAMS += ["gke.manifest", "gke.sweep"]
_LAUNCHERS = ("local", "supervise")


@pytest.fixture
def shell(python_environment):
    """Runs a line of a shell."""

    def run(line, **environment):
        return subprocess.run(
            ["bash", "-c", line.replace("python", sys.executable)],
            env={**python_environment, **environment}, capture_output=True, timeout=300,
        )  # fmt: skip

    return run


@pytest.mark.parametrize("program", _PROGRAMS)
def test_output_that_is_not_taken_is_one_line(shell, program):
    for target, words in ((">/dev/full", b"No space left"), (">&-", b"found it closed")):
        result = shell(f"python -m launch.{program} --help {target}")
        if program in _LAUNCHERS:  # whose output is a courtesy
            assert (result.returncode, result.stderr) == (0, b"")
        else:
            assert result.returncode == 2
            assert result.stderr.startswith(b"error: standard output: ") and words in result.stderr
            assert result.stderr.count(b"\n") == 1


@pytest.mark.parametrize("program", ["align", "local"])
@pytest.mark.parametrize("target", ["2>&-", "2>/dev/full", ">&- 2>&-", "0<&- >&- 2>&-"])
def test_a_mistake_that_nobody_hears_keeps_its_code(shell, program, target):
    result = shell(f"python -m launch.{program} --nonsense {target}")
    assert (result.returncode, result.stdout, result.stderr) == (2, b"", b"")


def test_scores_that_are_not_taken_are_one_line(shell, tmp_path):
    (tmp_path / "links").write_text("0-0\n")
    files = f"--gold={tmp_path / 'links'} --hypothesis={tmp_path / 'links'}"
    result = shell(f"python -m launch.align score {files} >/dev/full")
    assert result.returncode == 2
    assert result.stderr == (
        b"error: standard output: expected it to take text (No space left on device)\n"
    )


_OTHER_LOCALES = (
    {"PYTHONIOENCODING": "latin-1"},
    {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    {"PYTHONIOENCODING": "utf-16"},
)


@pytest.mark.parametrize("locale", _OTHER_LOCALES)
def test_text_is_utf8_in_every_locale(shell, locale):
    code = "from attention_jax.commands import streams; streams.prepare(); print('\\u732b \\udcff')"
    result = shell(f'python -c "{code}"', **locale)
    assert (result.returncode, result.stdout, result.stderr) == (0, "猫 \\udcff\n".encode(), b"")


def test_a_closed_number_is_not_given_to_a_file(shell, tmp_path):
    program = (
        "import os, sys; from attention_jax.commands import streams;"
        "streams.prepare(output_is_courtesy=True);"
        f"file = open('{tmp_path / 'file'}', 'w'); print('lost'); os.write(2, b'lost');"
        "print('lost', file=sys.stderr); file.write(str(file.fileno()))"
    )
    result = shell(f'python -c "{program}" 0<&- >&- 2>&-')
    assert result.returncode == 0 and int((tmp_path / "file").read_text()) > 2


def test_a_reader_that_has_left_is_no_mistake(shell):
    line = "set -o pipefail; python -m launch.align --help | :"
    result = shell(line, PYTHONUNBUFFERED="1")
    assert (result.returncode, result.stderr) == (0, b"")
