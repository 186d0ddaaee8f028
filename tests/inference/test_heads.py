"""Heads of a Transformer that was trained in small: what they do, and what is lost without them."""

import csv
import json

import numpy as np
import pytest

from attention_jax.data.tasks import build_task
from attention_jax.evaluation.pharaoh import marked_links
from attention_jax.inference.gold_links import GoldLinks, compare_with_gold
from attention_jax.inference.heads import analyse_heads, check_heads, write_heads
from attention_jax.inference.run import run_experiment
from attention_jax.inference.trained import load_run
from attention_jax.training.config import from_config_dict
from configs import vaswani2017
from tests.training.untrained import write_text


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A Transformer whose first head of the upper layer was told where to look."""
    source, target = write_text(tmp_path_factory.mktemp("text"), 600)
    config = vaswani2017.get_config("smoke")
    config.data = {
        "name": "parallel",
        "batch_size": 32,
        "num_buckets": 2,
        "subwords": {"kind": "words"},
        "alignment": {"method": "hmm"},
        **{f"{split}_source": source for split in ("train", "test")},
        **{f"{split}_target": target for split in ("train", "test")},
    }
    config.training.update({"num_steps": 150, "evaluate_every_steps": 150})
    config.model.decoder.update({"alignment_layer": 1, "alignment_head": 0})
    config.objectives = {"nll": {}, "supervised_alignment": {"weight": 0.3}}
    config.evaluation = {"splits": ("test",), "num_heat_maps": 0}
    directory = tmp_path_factory.mktemp("heads") / "run"
    run_experiment(from_config_dict(config), directory)
    return load_run(directory)


def test_every_head_is_measured(run):
    task = build_task(run.config.data, run.directory.vocabularies)
    split = task.split("test")
    check_heads(run, split)
    gold = {
        number: marked_links((place, place) for place in range(len(split.sources[number].split())))
        for number in range(20)
    }
    heads = analyse_heads(run, split, compare_with_gold(run, split, GoldLinks(gold)))
    layers = [f"decoder/layer_{n}/attention" for n in range(2)]
    assert [(h.layer, h.number) for h in heads[:4]] == [(n, k) for n in layers for k in range(2)]
    assert len(heads) == 12 and all(np.isfinite(list(h.values.values())).all() for h in heads)
    assert all("nll_without" in h.values for h in heads)
    assert not any("entropy" in h.values for h in heads[4:])

    told, other = heads[2].values, heads[3].values
    assert told["diagonality"] > max(0.9, other["diagonality"]) and told["entropy"] < 0.3
    assert max(h.values["nll_without"] for h in heads[:4]) > 0.1

    write_heads(run, split, heads)
    lines = (run.directory.path / "heads.test.tsv").read_text().splitlines()
    rows = list(csv.DictReader(lines, delimiter="\t"))
    assert [row["layer"] for row in rows] == [head.layer for head in heads]
    assert float(rows[2]["diagonality"]) == pytest.approx(told["diagonality"], abs=1e-4)
    assert rows[5]["entropy"] == "" and float(rows[5]["nll_without"]) == pytest.approx(
        heads[5].values["nll_without"], abs=1e-4
    )
    assert (run.directory.plots / "heads.test.png").read_bytes().startswith(b"\x89PNG")


def test_the_head_that_was_told_stands_for_the_attention(run):
    results = json.loads(run.directory.results.read_text())["test"]
    assert results["attention_monotonicity"] > 0.9 and results["attention_entropy"] < 0.3
