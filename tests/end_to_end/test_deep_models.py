"""The Transformer and GNMT in small: their configs train, and what they train learns its task."""

import json
import os
import subprocess
import sys

import pytest

# By config, what its outputs reach at least: accuracy of tokens and BLEU. A stack of LSTMs learns
# where to look more slowly.
REACHED = {"vaswani2017": (0.97, 95.0), "gnmt2016": (0.85, 60.0)}


@pytest.mark.parametrize("config", REACHED)
def test_config_learns_its_task(config, tmp_path):
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
    accuracy, bleu = REACHED[config]
    assert test["accuracy"] > accuracy and test["bleu"] > bleu
