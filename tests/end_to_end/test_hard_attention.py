"""Hard attention in one small training: it learns to align, and does not stay where it began.

With half of the batches sampled, as the paper has them; of samples alone, some seeds need longer.
"""

import pytest

from attention_jax.experiment import run_experiment
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.run_directory import read_json

CONFIG = {
    "data": {"name": "smoke", "batch_size": 64, "num_buckets": 1, "eval_batch_size": 128},
    "model": {
        "name": "encoder_decoder",
        "target_embedding_dim": 16,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": 16},
                "encoder": {"name": "recurrent", "hidden_dim": 24},
            }
        },
        "attention": {
            "name": "hard",
            "score": {"name": "bahdanau", "attention_dim": 24},
            "estimator": {"name": "reinforce", "expectation_share": 0.5},
            "at_test": {"name": "argmax"},
        },
        "decoder": {"name": "bahdanau", "hidden_dim": 32, "bridge": "mean", "readout_dim": 32},
        "predictors": {"baseline": {"hidden_dim": 16}},
    },
    "objectives": {
        "nll": {},
        "reinforce": {"weight": 0.5, "returns": "to_go", "baseline": "learnt"},
        "attention_entropy": {"weight": 0.01},
    },
    "optimizer": {"name": "adam", "learning_rate": 0.01},
    "schedule": {"name": "warmup_cosine", "warmup_steps": 20},
    "training": {"num_steps": 350, "evaluate_every_steps": 0, "checkpoint_every_steps": 0},
    "search": {"method": "greedy"},
    "evaluation": {"splits": ("test",), "num_heat_maps": 0},
}


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    """A run that is tested with the most probable slot alone."""
    directory = tmp_path_factory.mktemp("hard") / "run"
    run_experiment(from_config_dict(CONFIG), directory)
    return directory


def test_it_learns_its_task_reading_one_slot_at_a_time(workdir):
    results = read_json(workdir / "results.json")["test"]
    assert results["accuracy"] > 0.9 and results["bleu"] > 80
    first = (workdir / "metrics.jsonl").read_text().splitlines()[0]
    assert "reinforce/squared_advantage" in first and "loss/attention_entropy" in first


def test_it_aligns_and_does_not_attend_to_the_same_place_at_every_step(workdir):
    lines = (workdir / "alignments.test.txt").read_text().splitlines()
    rows = [[tuple(map(int, link.split("-"))) for link in line.split()] for line in lines]
    links = [link for row in rows for link in row]
    assert sum(source == target for source, target in links) > 0.9 * len(links)
    longer = [row for row in rows if len(row) > 2]
    assert all(len({source for source, _ in row}) > 1 for row in longer) and longer
