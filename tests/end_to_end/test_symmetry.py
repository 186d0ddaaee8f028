"""Two models of opposite directions, trained together in small: they learn, and learn to agree."""

import pytest

from attention_jax.analysis.reverse import reverse_run
from attention_jax.commands import cli
from attention_jax.decoding.translate import Translator
from attention_jax.experiment import run_experiment
from attention_jax.models import build_model
from attention_jax.objectives import Objective
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.load import load_run
from attention_jax.runs.run_directory import read_json


@pytest.fixture(scope="module", params=[0.0, 4.0], ids=["apart", "together"])
def workdir(request, tmp_path_factory):
    """A run without the bonus, and one with it after the first steps."""
    return _train(request.param, tmp_path_factory.mktemp("symmetric") / "run")


def _train(weight, workdir):
    symmetry = {"weight": weight, "schedule": {"start_steps": 20}}
    config = {
        "data": {"name": "smoke", "batch_size": 32, "num_buckets": 1, "eval_batch_size": 128},
        "model": {
            "name": "bidirectional",
            "target_embedding_dim": 16,
            "sources": {
                "source": {
                    "input": {"name": "tokens", "embedding_dim": 16},
                    "encoder": {"hidden_dim": 24},
                }
            },
            "attention": {"name": "bahdanau", "attention_dim": 24},
            "decoder": {"name": "bahdanau", "hidden_dim": 24, "readout_dim": 24},
        },
        "objectives": {"nll": {}, "reverse_nll": {}, "bilingual_symmetry": symmetry},
        "optimizer": {"name": "adam", "learning_rate": 0.01},
        "schedule": {"name": "warmup_cosine", "warmup_steps": 20},
        "training": {
            "num_steps": 300,
            "evaluate_every_steps": 0,
            "checkpoint_every_steps": 0,
        },
        "search": {"method": "greedy"},
        "evaluation": {"splits": ("test",), "num_heat_maps": 0},
    }
    run_experiment(from_config_dict(config), workdir)
    return workdir


@pytest.mark.parametrize("argument", ["multi30k", "cmudict", "smoke"])
def test_config_trains_two_models_that_should_agree(argument):
    config = from_config_dict(cli.load_config(f"configs/cohn2016_symmetric.py:{argument}"))
    model = build_model(config.model, 9, 8)
    Objective(config.objectives).check(model)
    assert "alignment" in model.provides and model.reverse.target_vocabulary_size == 9
    terms = config.objectives
    assert terms["reverse_nll"].label_smoothing == terms["nll"].label_smoothing == 0.1
    assert 0 < terms["bilingual_symmetry"].schedule.start_steps
    assert config.training.metric == "loss"


def test_both_directions_are_learnt(workdir):
    results = read_json(workdir / "results.json")["test"]
    assert results["accuracy"] > 0.95 and results["reverse/accuracy"] > 0.95
    assert results["bleu"] > 90.0


def test_bonus_brings_the_attentions_together(workdir):
    weight = read_json(workdir / "config.json")["objectives"]["bilingual_symmetry"]["weight"]
    agreement = -read_json(workdir / "results.json")["test"]["loss/bilingual_symmetry"]
    assert 0.95 < agreement <= 1.0 if weight else agreement < 0.85


def test_translation_goes_both_ways(workdir):
    run, digits, words = load_run(workdir), "123", "one two three"
    for used, line, expected in ((run, digits, words), (reverse_run(run), words, digits)):
        translator = Translator(used)
        assert list(translator.format(translator.translate([line]))) == [expected]
