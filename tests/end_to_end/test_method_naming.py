"""Names of functions are learnt from a folder of one's own, and judged at both ranks."""

import json

import numpy as np
import pytest

from attention_jax.analysis.resamples import read_resamples
from attention_jax.decoding.translate import Translator
from attention_jax.experiment import run_experiment
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.load import load_run
from configs import allamanis2016

WORDS = ["size", "name", "color", "path", "index", "page", "count", "title", "state", "owner"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on getters and setters, three of each in a module."""
    folder = tmp_path_factory.mktemp("allamanis2016")
    (folder / "code").mkdir()
    for number in range(60):
        lines = []
        for word in (WORDS[(number + step) % len(WORDS)] for step in (0, 3, 7)):
            lines += [f"def get_{word}(self):\n    return self.{word}"]
            lines += [f"def set_{word}(self, value):\n    self.{word} = value"]
        (folder / "code" / f"module{number}.py").write_text("\n".join(lines) + "\n")
    config = allamanis2016.get_config("method_naming")
    config.data.update({"folder": str(folder / "code"), "num_buckets": 1, "batch_size": 48})
    config.model.target_embedding_dim = config.model.decoder.hidden_dim = 32
    config.model.sources.source.input.embedding_dim = 32
    config.model.embedding_dropout = config.model.output_dropout = 0.0
    config.optimizer.learning_rate = 1e-2
    config.schedule.warmup_steps = 10
    del config.training.num_epochs, config.training.averaging
    config.training.update({"num_steps": 120, "evaluate_every_steps": 120})
    config.search.update({"beam_size": 5})
    config.evaluation.update({"splits": ("test",), "num_heat_maps": 0})
    run_experiment(from_config_dict(config), folder / "run")
    return folder / "run"


def test_names_are_learnt_and_lists_of_names_are_judged(run):
    scores = json.loads((run / "results.json").read_text())["test"]
    assert scores["f1"] > 90.0 and scores["exact_match"] > 80.0
    assert scores["f1"] <= scores["f1_rank_5"] and scores["exact_match_rank_5"] > 95.0
    with np.load(run / "resamples.test.npz") as arrays:  # by which runs are compared at both ranks
        resampled = {name: one.score for name, one in read_resamples(arrays, "run").items()}
    assert resampled == pytest.approx({name: scores[name] for name in resampled})
    assert {*resampled} == {"f1", "exact_match", "f1_rank_5", "exact_match_rank_5"}


def test_a_body_is_named(run):
    translator = Translator(load_run(run))
    found = translator.translate(["return self . color", "self . path = value"])
    assert list(translator.format(found)) == ["get color", "set path"]
