"""Examples of help texts are commands that work: every option is there, and takes its value."""

import importlib
import re
from pathlib import Path

import pytest

from tests.example_commands import UNPARSED, Example, check, commands, lines

COMMANDS = (
    "align", "compile_check", "evaluate", "import_weights", "local", "score", "supervise", "sweep",
    "train", "translate", "weights",
)  # fmt: skip
OTHERS = (
    "launch/gke/manifest.py", "launch/gke/sweep.py", "launch/tpu_vm/pod.sh",
    "launch/slurm/train.sbatch", "launch/slurm/sweep.sbatch", "experiments/compare_runs.py",
    "experiments/benchmarks/scaling/plan.py", "experiments/benchmarks/scaling/measure.py",
)  # fmt: skip


def help_of(repository: Path, place: str) -> str:
    """The help text of a program, or of a script."""
    if place in COMMANDS:
        return importlib.import_module(f"attention_jax.commands.{place}").__doc__
    return (repository / place).read_text(encoding="utf-8")


def examples(text: str) -> list[Example]:
    """The commands of this project in the blocks of a text that begin with `for example`."""
    found = []
    for block in re.findall(r"^ *for example\b[^\n]*:(.*?)\n(?:\n|HELP|\"\"\")", text, re.S | re.M):
        for line in lines(block):
            found += commands(line)
    return found


@pytest.mark.parametrize("place", [*COMMANDS, *OTHERS])
def test_examples_of_help_are_commands(repository, trained, monkeypatch, place):
    monkeypatch.chdir(repository)
    text = help_of(repository, place)
    found = examples(text)
    assert found
    for example in found:
        check(example, trained, monkeypatch)
        if example.program in UNPARSED:
            assert not unexplained(example, text)


def unexplained(example: Example, text: str) -> list[str]:
    """The options of an example that the help of its program does not tell of."""
    told = [each.partition("=")[0] for each in example.arguments if each.startswith("--")]
    return [each for each in told if not is_told(each, text)]


def is_told(option: str, text: str) -> bool:
    """Whether a help text has an option, or the group of fields that it is of."""
    group = option.partition(".")[0]
    before = text.partition("for example")[0]
    return bool(re.search(rf"{re.escape(group)}(?![\w])", before))


def test_an_option_that_help_does_not_tell_of_is_found(repository):
    text = help_of(repository, "experiments/compare_runs.py")
    [example] = commands("python -m experiments.compare_runs --runs=a=b --alignment=c --gold=d")
    assert unexplained(example, text) == ["--gold"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("python -m launch.train --config=configs/none.py --workdir=x", "expected a file"),
        ("python -m launch.train --config=quickstart --workdir=x --config.sed=1", "no such field"),
        ("python -m launch.translate --workdir=runs/x --nbest=10 < test.en", "at most search.beam"),
        ("python -m launch.translate --workdir=runs/x --n_best=3", "no such option"),
        ("python -m launch.compile_check --config=quickstart --topology=h100", "--topology: "),
        ("launch/supervise.sh launch/local.sh 2 python -m launch.train --config=none", "a file"),
        (
            "python -m launch.sweep --config=quickstart --workdir=x --grid=optimizer.rate=1,2",
            "no such field",
        ),
    ],
)
def test_an_example_that_does_not_work_is_found(trained, monkeypatch, line, words):
    [example] = commands(line)
    with pytest.raises(Exception, match=re.escape(words)):
        check(example, trained, monkeypatch)


def test_examples_are_found_in_pipes_and_continued_lines():
    text = """
for example, two:
  python -m launch.translate --workdir=a < b \\
      | python -m launch.score --workdir=c --setting='N: a=b' > d
  kubectl apply -f x

that was it
"""
    assert examples(text) == [
        Example("translate", ("--workdir=a",)),
        Example("score", ("--workdir=c", "--setting=N: a=b")),
    ]
