"""`launch.sweep`: from its command line to the page, and what is said of mistakes."""

import json

import pytest

from attention_jax.sweeps import archive

CONFIG = "--config=configs/quickstart.py:smoke"
RATE = "optimizer.learning_rate"
# As little as a run can be.
TINY = (
    "--config.training.num_steps=2", "--config.training.evaluate_every_steps=0",
    "--config.data.num_buckets=1", "--config.search.method=greedy",
    "--config.evaluation.num_heat_maps=0", "--config.evaluation.splits=('test',)",
)  # fmt: skip


@pytest.fixture
def workdir(tmp_path):
    return tmp_path / "sweep"


def test_a_sweep_trains_its_runs_and_compares_them(launch, workdir):
    grid = f"--grid={RATE}=1e-3,3e-2"
    result = launch("sweep", CONFIG, *TINY, grid, "--jobs=2", f"--workdir={workdir}")
    assert result.code == 0, result.err
    assert "2 runs, 0 finished; 2 at a time" in result.err and "2 of 2 finished" in result.err
    overview = result.out.partition("\n\n")[0]
    assert overview in (workdir / "sweep.md").read_text()
    for rate in ("1e-3", "3e-2"):
        run = workdir / f"learning_rate={rate}" / "seed0"
        scores = json.loads((run / "results.json").read_text())["test"]
        assert f"| learning_rate={rate} | 1 | {scores['nll']:.2f} |" in overview.replace("*", "")
        assert "This run is complete" not in (run / "logs" / "run.log").read_text()
    records = archive.load(workdir / "records.zip")
    rates = [records[key].config["optimizer"]["learning_rate"] for key in sorted(records)]
    assert rates == [1e-3, 3e-2]
    assert "Best by validation nll ↓: learning_rate=" in result.out

    again = launch("sweep", f"--workdir={workdir}")
    assert (again.code, again.out) == (0, result.out)
    assert again.err == "All 2 runs are finished.\n"
    ordered = launch("sweep", f"--workdir={workdir}", "--report_only", "--metric=test.bleu:min")
    assert "Best by test bleu ↓: " in ordered.out and ordered.err == ""


def test_runs_are_listed_by_number_with_what_training_takes(launch, workdir):
    settings = ("--setting=plain", f"--setting=dot: model.attention.name=luong_dot {RATE}=1e-2")
    where = f"--workdir={workdir}"
    result = launch("sweep", CONFIG, *settings, "--grid=training.num_steps=3,4", where, "--list")
    assert (result.code, result.err) == (0, "")
    names = [line for line in result.out.splitlines() if line.endswith("not started")]
    assert [line.split(": ")[0].strip() for line in names] == [
        "0  plain,num_steps=3/seed0", "1  plain,num_steps=4/seed0",
        "2  dot,num_steps=3/seed0", "3  dot,num_steps=4/seed0",
    ]  # fmt: skip
    chosen = launch("sweep", where, "--list", "--only=dot,num_steps=3;plain,num_steps=4")
    assert [line[:4] for line in chosen.out.splitlines()[::2]] == ["   1", "   2"]
    numbered = launch("sweep", where, "--list", "--run=3")
    assert numbered.out.startswith("   3  dot,num_steps=4")
    found = launch("sweep", where, "--arguments=2").out.splitlines()
    assert found == [
        CONFIG, f"--workdir={workdir}/dot,num_steps=3/seed0",
        "--config.model.attention.name=luong_dot", f"--config.{RATE}=1e-2",
        "--config.training.num_steps=3", "--config.seed=0",
    ]  # fmt: skip


def test_a_run_that_fails_is_one_line_and_the_code_says_so(launch, workdir, tmp_path):
    """Its data is not there; whether the config is well-formed is checked before."""
    config = "--config=configs/bahdanau2015.py:parallel"
    nowhere = f"--config.data.train_source={tmp_path}/none.en"
    target = f"--config.data.train_target={tmp_path}/none.de"
    result = launch("sweep", config, nowhere, target, f"--workdir={workdir}")
    assert (result.code, result.out) == (1, "")
    (line,) = [line for line in result.err.splitlines() if "FAILED" in line]
    assert line.startswith("config/seed0: FAILED, exit code 2: error: ") and "none.en" in line
    assert result.err.splitlines()[-1].startswith("failed: config/seed0; the same command tries")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((CONFIG,), "--workdir: expected a value, found none"),
        ((CONFIG, "--workdir=W", "--grid=x"), "--grid: expected FIELD=VALUE,VALUE, found 'x'"),
        ((CONFIG, "--workdir=W", "--grid=optimizer.learning_rat=1"), "did you mean 'learning_rate"),
        ((CONFIG, "--workdir=W", f"--grid={RATE}=fast"), "expected float, found 'fast'"),
        ((CONFIG, "--workdir=W", "--setting=a b: x=1"), "--setting: expected NAME: FIELD=VALUE"),
        ((CONFIG, "--workdir=W", "--config.sed=1"), "--config.sed: no such field"),
        ((CONFIG, "--workdir=W", "--jobs=0"), "--jobs: expected a whole number of at least 1"),
        ((CONFIG, "--workdir=W", "--search=x=1..2"), "--trials: expected it beside --search"),
        ((CONFIG, "--workdir=W", "--trials=2"), "--search: expected it beside --trials, found"),
        ((CONFIG, "--workdir=W", "--trials=2", "--search=x=1"), "--search: expected FIELD=LOW"),
        ((CONFIG, "--workdir=W", "--evaluate=--alignmet=x"), "--alignmet: no such option; did"),
        ((CONFIG, "--workdir=W", "--evaluate=x"), "--evaluate: unexpected argument 'x'"),
        ((CONFIG, "--workdir=W", "--evaluate='"), "--evaluate: expected options, found"),
        ((CONFIG, "--workdir=W", "--evaluate=--split=tset"), "--split: expected one of train,"),
        ((CONFIG, "--workdir=W", "--evaluate=--split=test --alignment=/none"),
         "--evaluate: /none: expected"),
        ((CONFIG, "--workdir=W", "--evaluate=--split=test --alignment_base=1"),
         "--evaluate: --alignment_base: expected --alignment beside it"),
        ((CONFIG, "--workdir=W", "--evaluate=--split=test --search.beam_size=10"),
         "found '--search.beam_size=10'; --config.search.beam_size=10 is for all runs"),
        ((CONFIG, "--workdir=W", "--evaluate=--source=a --target=b"), "found --source; --config."),
        (("--workdir=W",), "expected the directory of a sweep, found no sweep.json"),
        (("--workdir=W", "--grid=x=1"), "--grid: expected --config=FILE beside it, found none"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(launch, workdir, arguments, words):
    named = [f"--workdir={workdir}" if word == "--workdir=W" else word for word in arguments]
    assert words in launch("sweep", *named).error
    assert not workdir.exists()


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("--only=b", "--only: expected some of config, found 'b'"),
        ("--run=1", "--run: expected a number from 0 to 0, found '1'"),
        ("--arguments=7", "--arguments: expected a number from 0 to 0, found '7'"),
        ("--metric=mine", "--metric: expected mine:min or mine:max"),
        ("--report_only", "expected a finished run, found none"),
    ],
)
def test_what_a_sweep_does_not_have_is_one_line(launch, workdir, argument, words):
    launch("sweep", CONFIG, f"--workdir={workdir}", "--list")
    assert words in launch("sweep", f"--workdir={workdir}", argument).error
