"""The report of what the configs reach."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from attention_jax.errors import RunDirectoryError, UserError
from attention_jax.sweeps import archive
from attention_jax.sweeps.archive import Record
from attention_jax.sweeps.records import FILES, keep_record, read_record, record_of
from experiments import trained_configs
from experiments.trained_configs import REPORT, config_name, report, require_plain


@pytest.fixture
def run(repository, tmp_path):
    """A finished run: the record of the main example."""
    return shutil.copytree(repository / "docs/results/quickstart", tmp_path / "run")


def rename_config(run, config):
    made = json.loads((run / "run.json").read_text())
    made["command"] = f"python -m launch.train --config={config} --workdir=runs/x"
    (run / "run.json").write_text(json.dumps(made))


def of_quickstart(run):
    return record_of(run, "quickstart", 0, {})


def test_report_says_what_the_records_say(repository, monkeypatch):
    monkeypatch.chdir(repository)
    records = archive.load(trained_configs.RECORDS).outlines()
    assert len(records) >= 6 and REPORT.read_text() == report(records)


@pytest.mark.parametrize(
    ("config", "name"),
    [("configs/a.py", "a"), ("configs/b.py:multi30k", "b-multi30k")],
)
def test_config_is_named_with_its_argument(run, config, name):
    rename_config(run, config)
    assert config_name(run) == name


def test_a_record_takes_the_place_of_the_one_of_its_config(run, repository, tmp_path, monkeypatch):
    monkeypatch.chdir(repository)
    monkeypatch.setattr(trained_configs, "RECORDS", tmp_path / archive.FILE)
    before = [Record(name, seed, {}, {"of": "yore"}, {}, {}) for name, seed in
              (("another", 5), ("quickstart", 5))]  # fmt: skip
    archive.add(trained_configs.RECORDS, before)
    trained_configs.keep(run)
    found = archive.load(trained_configs.RECORDS)
    assert list(found) == [("another", 5), ("quickstart", 0)]
    assert found["another", 5].config == {"of": "yore"}
    assert found["quickstart", 0].results == of_quickstart(run).results


def test_a_run_with_changes_is_refused(run, repository, monkeypatch):
    monkeypatch.chdir(repository)
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "seed": 7}))
    require_plain(run, "quickstart")
    config["training"]["num_steps"] = 3
    (run / "config.json").write_text(json.dumps(config))
    expected = "expected a run of configs/quickstart.py as it is, found training.num_steps 3, there"
    with pytest.raises(UserError, match=expected):
        require_plain(run, "quickstart")


def test_config_of_somebody_else_is_refused(run):
    rename_config(run, "/home/me/mine.py")
    with pytest.raises(UserError, match="expected a run of a file in configs"):
        config_name(run)


@pytest.mark.parametrize("name", FILES)
def test_unfinished_run_is_refused(run, tmp_path, name):
    (run / name).unlink()
    with pytest.raises(UserError, match=f"found no {name}"):
        keep_record(run, tmp_path / "record")
    assert not (tmp_path / "record").exists()


def test_a_run_that_goes_on_or_was_not_evaluated_is_refused(run, tmp_path):
    made = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**made, "finished": None}))
    with pytest.raises(UserError, match="expected a finished run, found one that has not ended"):
        keep_record(run, tmp_path / "record")
    (run / "run.json").write_text(json.dumps(made))
    (run / "results.json").write_text('{"validation": {}}')
    with pytest.raises(UserError, match="expected results of the test split, found none"):
        keep_record(run, tmp_path / "record")
    assert not (tmp_path / "record").exists()


@pytest.mark.parametrize("name", ["run.json", "results.json"])
def test_a_record_that_is_cut_off_is_one_line(run, tmp_path, name):
    (run / name).write_text('{"finished": ')
    with pytest.raises(RunDirectoryError, match=f"{name}: expected JSON"):
        keep_record(run, tmp_path / "record")
    with pytest.raises(RunDirectoryError, match=f"{name}: expected JSON"):
        read_record(run)
    (run / name).unlink()
    with pytest.raises(RunDirectoryError, match=f"found no {name}"):
        read_record(run)


def test_a_record_that_cannot_be_written_is_one_line(run, tmp_path):
    (tmp_path / "record").write_text("no folder")
    with pytest.raises(RunDirectoryError, match="record cannot be written"):
        keep_record(run, tmp_path / "record")


def test_a_page_links_to_the_configs(run, tmp_path, monkeypatch):
    monkeypatch.setattr(trained_configs, "RECORDS", tmp_path / archive.FILE)
    archive.add(trained_configs.RECORDS, [record_of(run, "a-b", 0, {})])
    monkeypatch.setattr(trained_configs, "REPORT", tmp_path / "report.md")
    flags = SimpleNamespace(FLAGS=SimpleNamespace(run=[]))
    monkeypatch.setattr(trained_configs, "flags", flags)
    trained_configs.main()
    assert "[a-b](../../configs/a.py)" in (tmp_path / "report.md").read_text()


def test_metrics_stand_under_their_kind_of_task(run):
    record = of_quickstart(run)
    text = report([record])
    assert "Pronunciation" in text and "Translation" not in text
    assert f"{record.results['test']['wer_no_stress']:.2f}" in text


def test_no_record_is_one_line(repository, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "experiments.trained_configs"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and "name a finished run" in done.stderr


def test_a_language_model_has_a_perplexity_only(run):
    results = {"test": {"perplexity": 21.5, "accuracy": 0.4, "step": 7}}
    text = report([dataclasses.replace(of_quickstart(run), results=results)])
    assert "Language models" in text and "Pronunciation" not in text and "| 21.50 | 0.40 |" in text
