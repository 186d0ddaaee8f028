"""Metrics are one object a line, and continue where a restored checkpoint stands."""

import json

import pytest

from attention_jax.errors import RunDirectoryError
from attention_jax.plotting.curves import read_metrics
from attention_jax.training.reporting.metrics_writer import MetricsWriter


def test_write_appends_step_split_and_values(tmp_path):
    writer = MetricsWriter(tmp_path / "metrics.jsonl", step=0)
    writer.write(10, "train", {"loss": 1.5})
    writer.write(10, "validation", {"nll": float("nan"), "signature": "text"})
    writer.close()
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"step": 10, "split": "train", "loss": 1.5},
        {"step": 10, "split": "validation", "nll": None},
    ]


def test_metrics_writer_drops_lines_after_the_restored_step(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(
        '{"step": 10, "split": "train", "loss": 2.0}\n'
        '{"step": 20, "split": "train", "loss": 1.0}\n{"step": 3'
    )
    writer = MetricsWriter(path, step=10)
    writer.write(20, "train", {"loss": 1.5})
    writer.close()
    assert [(line["step"], line["loss"]) for line in read_metrics(path)] == [(10, 2.0), (20, 1.5)]


def test_a_full_disk_is_one_line(tmp_path):
    path = tmp_path / "metrics.jsonl"
    writer = MetricsWriter(path, step=0)
    writer._file.close()
    writer._file = open("/dev/full", "a", encoding="utf-8")
    with pytest.raises(RunDirectoryError, match="metrics.jsonl cannot be written: No space left"):
        writer.write(1, "train", {"loss": 1.0})
    with pytest.raises(RunDirectoryError, match="metrics.jsonl cannot be written: No space left"):
        writer.close()
