"""The Transformer and GNMT in small: their configs train, and what they train learns its task."""

import json
import os
import subprocess
import sys

import pytest

# By config, the least accuracy of tokens and BLEU of its outputs, and what is changed in it.
# GNMT begins from nothing: from the encoder's states it would learn the task without attention.
CASES = {
    "vaswani2017": (0.97, 95.0, ()),
    "gnmt2016": (0.7, 40.0, ("--config.model.decoder.bridge=zero",)),
}


@pytest.mark.parametrize("config", CASES)
def test_config_learns_its_task(config, tmp_path):
    accuracy, bleu, changes = CASES[config]
    command = [
        sys.executable, "-m", "launch.train", f"--config=configs/{config}.py:smoke",
        f"--workdir={tmp_path / 'run'}", "--config.evaluation.splits=('test',)",
        "--config.evaluation.num_heat_maps=0", *changes,
    ]  # fmt: skip
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=900, env=dict(os.environ)
    )
    assert result.returncode == 0, result.stderr
    test = json.loads((tmp_path / "run" / "results.json").read_text())["test"]
    assert test["accuracy"] > accuracy and test["bleu"] > bleu
