import json
import re
import shutil
import subprocess
import sys

import pytest

from attention_jax.data.examples import Texts
from attention_jax.errors import UserError
from experiments.compare_runs import (
    Measured,
    check_distinct,
    comparison,
    count_dropped,
    named_directories,
)
from tests.experiments.measured import alignments, system, translations
from tests.smoke_runs import smoke_run


@pytest.fixture
def runs(tmp_path):
    """Two copies of a trained run, which their tests change."""
    made, result = smoke_run()
    assert result.returncode == 0, result.stderr
    return [shutil.copytree(made, tmp_path / name) for name in ("one", "two")]


def _edit(path, change):
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def _compare(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "experiments.compare_runs", *map(str, arguments)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_named_directories_reads_pairs():
    assert named_directories(["a=runs/a0", "a=runs/a1", "b=x=y"]) == [
        ("a", "runs/a0"), ("a", "runs/a1"), ("b", "x=y"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "found"), [([], "none"), (["runs/a"], "'runs/a'"), (["=a"], "'=a'"), (["a="], "'a='")]
)
def test_named_directories_says_what_is_wrong(texts, found):
    with pytest.raises(UserError, match=f"expected NAME=DIRECTORY, found {found}"):
        named_directories(texts)


def test_one_run_is_not_two_seeds():
    check_distinct([("a", "runs/a"), ("b", "runs/a"), ("a", "runs/b")])
    with pytest.raises(UserError, match="every seed of a once, found runs/../runs/a twice"):
        check_distinct([("a", "runs/a"), ("b", "runs/b"), ("a", "runs/../runs/a")])


def measured(runs, **results):
    return [Measured("runs/x", ["an output"], run, results, {"beam_size": 5}) for run in runs]


def test_comparison_shows_what_was_measured(numpy_rng):
    found = {
        "base": system(numpy_rng, 2, missing=0.5),
        "taught": system(numpy_rng, 1, missing=0.1),
    }
    for name, rate in (("base", 0.5), ("taught", 0.9)):
        for run in found[name]:
            run["bleu"] = translations(numpy_rng, 0.6)
            run["aer"] = alignments(numpy_rng, rate)
    systems = {name: measured(runs, perplexity=7.5) for name, runs in found.items()}
    text = "\n".join(comparison(systems))
    assert "| base | 2 |" in text and "| taught | 1 |" in text
    assert "AER ↓" in text and "missing words ↓" in text
    assert "fertility" not in text  # nothing of that table was measured
    assert "| base | 7.50 ± 0.00 | – | – |" in text and "otherwise" not in text
    (aligned,) = [line for line in text.splitlines() if "taught" in line and "**" in line
                  and line.count("|") == 4]  # fmt: skip
    assert aligned


def test_comparison_shows_measures_that_the_first_system_lacks(numpy_rng):
    blind, seeing = ({"bleu": translations(numpy_rng, 0.6)} for _ in range(2))
    seeing["aer"] = alignments(numpy_rng, 0.5)
    text = "\n".join(comparison({"blind": measured([blind]), "seeing": measured([seeing])}))
    _, table = text.split("AER ↓")
    assert "| blind | 1 | – |" in table and re.search(r"\| seeing \| 1 \| \d", table)


def test_count_dropped_adds_a_measure_to_every_run():
    animals = {"dog": "hund", "cat": "katze", "horse": "pferd"}
    # Enough other words for these not to be the most frequent, which do not count.
    others = [f"word{number}" for number in range(100)] * 20
    train = Texts([*animals] * 10 + others, [*animals.values()] * 10 + others, [], [])
    outputs = {"base": ["hund pferd", "katze"], "worse": ["", "katze"]}
    systems = {name: [Measured(name, texts, {}, {}, {})] for name, texts in outputs.items()}
    count_dropped(systems, train, ["dog horse", "cat"])
    counts = {name: run.measures["dropped"].counts for name, (run,) in systems.items()}
    assert counts["base"].tolist() == [[0, 2], [0, 1]]
    assert counts["worse"].tolist() == [[2, 2], [0, 1]]


def test_runs_are_compared_from_the_command_line(runs, tmp_path):
    def change(facts):
        facts["evaluations"]["test"]["search"]["beam_size"] = 7

    _edit(runs[1] / "run.json", change)
    output, twin = tmp_path / "table.md", shutil.copytree(runs[0], tmp_path / "twin")
    result = _compare(
        f"--runs=base={runs[0]},base={twin},other={runs[1]}", f"--output={output}",
        "--dropped_words",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert output.read_text() == result.stdout
    assert "| base | 2 |" in result.stdout and "dropped source words ↓" in result.stdout
    assert re.search(r"/two was searched otherwise than .*/one: beam_size 7 - \d+\.", result.stdout)


def test_outputs_of_other_parameters_or_texts_are_refused(runs):
    def other_step(results):
        results["test"]["step"] = 1

    _edit(runs[1] / "results.json", other_step)
    result = _compare(f"--runs=base={runs[0]},other={runs[1]}")
    assert result.returncode == 2 and result.stderr.count("\n") == 1
    assert "expected outputs of step" in result.stderr and "found those of step 1" in result.stderr


def test_a_table_that_cannot_be_written_is_refused_before_anything_is_measured(runs, tmp_path):
    result = _compare(f"--runs=base={runs[0]}", f"--output={tmp_path / 'none' / 'table.md'}")
    assert result.returncode == 2 and result.stderr.count("\n") == 1
    assert "--output: " in result.stderr and not result.stdout
