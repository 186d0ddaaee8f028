"""Runs that flags name: one, or several that predict together."""

import json
import re
import shutil

import numpy as np
import pytest

from attention_jax import api
from attention_jax.commands import cli


@pytest.mark.parametrize("combination", ["log_linear", "mean"])
def test_translate_with_a_run_twice_is_the_run(launch, trained, combination):
    found = launch("translate", f"--workdir={trained},{trained}", f"--ensemble={combination}",
                   "--alignments", stdin=b"123\n45")  # fmt: skip
    assert found.code == 0, found.err
    assert found.out == "one two three ||| 0-0 1-1 2-2\nfour five ||| 0-0 1-1\n"


def test_score_with_a_run_twice_is_the_run(launch, trained, tmp_path):
    (tmp_path / "a").write_text("123\n")
    (tmp_path / "b").write_text("one two three\n")
    files = f"--source={tmp_path / 'a'}", f"--target={tmp_path / 'b'}"
    one, two = (launch("score", f"--workdir={runs}", *files).out.split()
                for runs in (trained, f"{trained},{trained}"))  # fmt: skip
    np.testing.assert_allclose([*map(float, two)], [*map(float, one)], atol=2e-4)


def test_a_run_that_is_not_finished_is_used_and_said_to_be(launch, trained, tmp_path):
    run, (source, target) = tmp_path / "run", (tmp_path / "a", tmp_path / "b")
    shutil.copytree(trained, run)
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**facts, "finished": None}))
    source.write_text("123\n")
    target.write_text("one two three\n")
    texts = f"--source={source}", f"--target={target}"
    for command in (
        ("translate", f"--workdir={run}"), ("score", f"--workdir={run}", *texts),
        ("evaluate", f"--workdir={trained}", *texts, f"--against={run}", "--name=unfinished"),
        ("align", "apply", f"--run={run}", *texts, f"--output={tmp_path / 'links'}"),
    ):  # fmt: skip
        found = launch(*command, stdin=b"123\n" if command[0] == "translate" else b"")
        assert found.code == 0, found.err
        notice = f"notice: not finished: checkpoint step [0-9]+ of {run}, which is used"
        assert re.fullmatch(notice, found.err.strip().split("\n")[0]), found.err
        assert found.err.count("not finished") == 1
    assert "not finished" not in launch("translate", f"--workdir={trained}", stdin=b"123\n").err


def test_what_a_run_names_and_nobody_knows_is_told_with_its_file(launch, trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    config = json.loads((run / "config.json").read_text())
    config["model"]["attention"] = {"name": "mine"}  # in a folder that is named no longer
    (run / "config.json").write_text(json.dumps(config))
    for command in (("translate",), ("train", "--config=configs/quickstart.py:smoke")):
        found = launch(*command, f"--workdir={run}", stdin=b"123\n")
        assert found.code == 2
        where = f"error: {run}/config.json: config.model.attention.name: expected one of "
        assert found.err.splitlines()[-1].startswith(where), found.err


def test_commas_divide_but_in_the_names_of_directories(tmp_path):
    for name in ("a", "a,b", "c,d,e"):
        (tmp_path / name).mkdir()
    a, joined, many = (str(tmp_path / name) for name in ("a", "a,b", "c,d,e"))
    for runs in ([a], [joined], [a, many], [joined, a, f"{many}@20"], ["no", "where"]):
        assert cli.directories(",".join(runs)) == runs
    assert cli.directories(f"{a}," * 60 + a) == [a] * 61  # longer than a path may be


@pytest.mark.parametrize(
    ("workdir", "arguments", "message"),
    [
        ("RUN", ["--ensemble=mean"], "--ensemble: expected several runs, --workdir=RUN,RUN, found"),
        ("RUN,nowhere", [], "nowhere: expected the directory of a run, found none"),
        ("RUN,RUN", ["--ensemble=median"], "--ensemble: expected one of log_linear, mean, found"),
        ("RUN,", [], "--workdir: expected directories with commas between, found"),
        ("RUN,RUN", ["--online"], "--online: expected one run, found an ensemble of 2"),
        ("RUN", ["--weights=x.txt"], "--weights: expected a name that ends in .npz or .jsonl, fou"),
    ],
)
def test_mistakes_are_one_line(launch, trained, workdir, arguments, message):
    workdir = workdir.replace("RUN", str(trained))
    assert message in launch("translate", f"--workdir={workdir}", *arguments, stdin=b"1\n").error


def test_translate_writes_weights_as_arrays_and_as_lines(launch, trained, tmp_path):
    paths = tmp_path / "weights.npz", tmp_path / "weights.jsonl"
    for path in paths:
        result = launch("translate", f"--workdir={trained}", f"--weights={path}",
                        stdin=b"123\n\n45\n")  # fmt: skip
        assert result.code == 0 and result.out == "one two three\n\nfour five\n", result.err
    arrays = np.load(paths[0])
    rows = [json.loads(line) for line in paths[1].read_text().splitlines()]
    assert [row["line"] for row in rows] == [0, 2] == [arrays[f"{n}/line"] for n in range(2)]
    assert [row["output"] for row in rows] == ["one two three", "four five"]
    forced = api.load(trained).attend("123", "one two three")
    for name in ("tokens", "source_tokens"):
        assert rows[0][name] == [*arrays[f"0/{name}"]] == [*getattr(forced, name)]
    np.testing.assert_allclose(arrays["0/weights"], forced.weights, atol=1e-6)
    np.testing.assert_allclose(rows[0]["weights"], forced.weights, atol=1e-6)
