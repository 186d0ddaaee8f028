"""The Transformer and GNMT in small: their configs train, and what they train learns its task."""

import json
import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("config", ["vaswani2017", "gnmt2016"])
def test_config_learns_its_task_and_attends(config, tmp_path):
    """That it attends is asked too: what the encoder has read last tells GNMT nearly as much."""
    command = [
        sys.executable, "-m", "launch.train", f"--config=configs/{config}.py:smoke",
        f"--workdir={tmp_path / 'run'}", "--config.evaluation.splits=('test',)",
        "--config.evaluation.num_heat_maps=0",
    ]  # fmt: skip
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=900, env=dict(os.environ)
    )
    assert result.returncode == 0, result.stderr
    test = json.loads((tmp_path / "run" / "results.json").read_text())["test"]
    assert test["accuracy"] > 0.97 and test["bleu"] > 95
    assert test["dropped_source"] < 10  # percent of words that are given less than half a word
