"""Heads of a Transformer that was trained in small: what they do, and what is lost without them."""

import csv
import dataclasses
import importlib
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.analysis import heads as head_analysis
from attention_jax.analysis import self_attention_views
from attention_jax.analysis.evaluation_request import EvaluationRequest, evaluate_as_asked
from attention_jax.analysis.gold_links import GoldLinks, compare_with_gold
from attention_jax.analysis.head_names import cross_heads, head_name
from attention_jax.analysis.heads import (
    _cross_attention,
    analyse_heads,
    check_heads,
    losses_without,
    read_heads,
    write_heads,
)
from attention_jax.analysis.self_attention import self_attention
from attention_jax.analysis.self_attention_views import write_self_attention_viewers
from attention_jax.data.loading import build_task
from attention_jax.decoding.teacher_forcing import TeacherForcing, batches_of_process
from attention_jax.errors import UserError
from attention_jax.evaluation.pharaoh import marked_links
from attention_jax.experiment import run_experiment
from attention_jax.layers.transformer import place_embeddings
from attention_jax.objectives import Objective
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.load import load_run
from tests.plotting.viewer_data import page_data, view_weights
from tests.training.tiny import tiny_config
from tests.training.untrained import untrained, write_text

pytestmark = pytest.mark.early


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A Transformer whose first head of the upper layer was told where to look."""
    source, target = write_text(tmp_path_factory.mktemp("text"), 600)
    test_source, test_target = write_text(tmp_path_factory.mktemp("test"), 60, seed=1)
    config = smoke_config("vaswani2017")
    config.data = {
        "name": "parallel",
        "batch_size": 32,
        "num_buckets": 2,
        "subwords": {"kind": "words"},
        "alignment": {"method": "hmm"},
        "train_source": source,
        "train_target": target,
        "test_source": test_source,
        "test_target": test_target,
    }
    config.training.update({"num_steps": 150, "evaluate_every_steps": 150})
    config.model.decoder.update({"alignment_layer": 1, "alignment_head": 0})
    config.objectives = {"nll": {}, "supervised_alignment": {"weight": 0.3}}
    config.evaluation = {"splits": ("test",), "num_heat_maps": 0}
    directory = tmp_path_factory.mktemp("heads") / "run"
    run_experiment(from_config_dict(config), directory)
    return load_run(directory)


def smoke_config(name):
    """A smoke config that evaluates all in one batch, so that one shape is compiled."""
    config = importlib.import_module(f"configs.{name}").get_config("smoke")
    config.data.eval_batch_size = 512
    return config


def in_order(split):
    """Links every word of some pairs with the one at its place."""
    return {
        number: marked_links((place, place) for place in range(len(split.sources[number].split())))
        for number in range(20)
    }


def test_heads_are_scored_at_the_step_that_links(run):
    split = build_task(run.config.data, run.directory.vocabularies).split("test").select(range(20))
    gold = GoldLinks(in_order(split))
    writes, reads = (
        [*_cross_attention(run, split, compare_with_gold(run, split, gold, shift=shift)).values()]
        for shift in (0, 1)
    )
    assert writes[2]["aer"] < reads[2]["aer"] - 20  # the head that was told


def test_every_head_is_measured(run):
    task = build_task(run.config.data, run.directory.vocabularies)
    split = task.split("test")
    check_heads(run, split)
    heads = analyse_heads(run, split, compare_with_gold(run, split, GoldLinks(in_order(split))))
    layers = [f"decoder/layer_{n}/attention" for n in range(2)]
    assert [(h.layer, h.number) for h in heads[:4]] == [(n, k) for n in layers for k in range(2)]
    assert len(heads) == 12 and all(np.isfinite(list(h.values.values())).all() for h in heads)
    assert all("nll_without" in h.values for h in heads)
    others = [f"{side}/layer_{n}/self_attention" for side in ("encoder", "decoder") for n in (0, 1)]
    assert [(h.layer, h.number) for h in heads[4:]] == [(n, k) for n in others for k in range(2)]
    assert all({"entropy", "diagonality", "positional"} < set(h.values) for h in heads)
    assert [h.name for h in heads[:4]] == [f"layer {n} head {k}" for n in (0, 1) for k in (0, 1)]

    told, other = heads[2].values, heads[3].values
    assert told["diagonality"] > max(0.9, other["diagonality"]) and told["entropy"] < 0.3
    assert max(h.values["nll_without"] for h in heads[:4]) > 0.1

    write_heads(run, split, heads)
    lines = (run.directory.path / "heads.test.tsv").read_text().splitlines()
    rows = list(csv.DictReader(lines, delimiter="\t"))
    assert [row["layer"] for row in rows] == [head.layer for head in heads]
    assert float(rows[2]["diagonality"]) == pytest.approx(told["diagonality"], abs=1e-4)
    assert rows[5]["aer"] == "" and float(rows[5]["nll_without"]) == pytest.approx(
        heads[5].values["nll_without"], abs=1e-4
    )
    assert (run.directory.plots / "heads.test.png").read_bytes().startswith(b"\x89PNG")
    for head, again in zip(heads, read_heads(run, split), strict=True):
        assert (again.layer, again.number) == (head.layer, head.number)
        assert again.values == pytest.approx(head.values, abs=1e-4)
    table = run.directory.heads(split.name)
    for damaged in ("layer\thead\taer\nencoder/layer_0", "layer\nencoder/layer_0", "\xff"):
        table.write_text(damaged, encoding="latin-1")
        assert read_heads(run, split) == []
    table.unlink()


def test_self_attention_is_that_of_the_positions(run):
    """The weights of the lowest encoder layer again, from embedded words; no target looks ahead."""
    split = build_task(run.config.data, run.directory.vocabularies).split("test").select([3])
    found = self_attention(run, split)
    params, encoder = run.params["encoder"], run.model.sources[0].encoder
    ids = jnp.asarray(split.source_ids[0])
    embedded = run.params.get("source_embedding", run.params["target_embedding"])[ids]
    stream = place_embeddings(encoder.config, params, embedded, jnp.arange(len(ids)))
    weights = params["layer_0"]["self_attention"]
    for head in range(2):
        query, key = (stream @ weights[f"{name}_projection"][head] for name in ("query", "key"))
        expected = jax.nn.softmax(query @ key.T / np.sqrt(query.shape[-1]))
        found_there = found["encoder/layer_0/self_attention"][0]
        np.testing.assert_allclose(found_there.weights[head], expected, rtol=1e-4, atol=1e-5)
        assert found_there.reach[head].tolist() == [len(ids)] * len(ids)
    for layer in (0, 1):
        ((causal, reach),) = found[f"decoder/layer_{layer}/self_attention"]
        assert reach.tolist() == [list(range(1, causal.shape[1] + 1))] * 2
        np.testing.assert_allclose(causal.sum(-1), 1, rtol=1e-5)
        assert not np.triu(causal, 1).any() and causal[:, 1:, 0].any()


def test_self_attention_has_a_page_for_each_side(run):
    split = build_task(run.config.data, run.directory.vocabularies).split("test").select(range(4))
    heads, found = analyse_heads(run, split), self_attention(run, split)
    write_self_attention_viewers("run", run, split, heads)
    for side, begins in (("encoder", 0), ("decoder", 1)):
        data = page_data(run.directory.viewer("test", side))
        assert data["title"] == f"run, test, self-attention of the {side}"
        assert data["views"] == [f"layer {n} head {k}" for n in (0, 1) for k in (0, 1)]
        shown = next(h for h in heads if h.layer == f"{side}/layer_1/self_attention" and h.number)
        assert data["about"][3] == pytest.approx(shown.values, rel=1e-5)
        for index, sentence in enumerate(data["sentences"]):
            text = (split.targets if begins else split.sources)[index]
            assert sentence["text"] == text
            assert "".join(sentence["target"][:-1]) == "".join(text.split())
            assert sentence["target"][-1] == "</s>"
            read = ["<s>", *sentence["target"][:-1]] if begins else sentence["target"]
            assert sentence["source"] == read
            expected = found[shown.layer][index].weights[1]
            np.testing.assert_allclose(view_weights(sentence, 3), expected, atol=0.003)


def test_a_page_holds_so_many_heads_and_no_more(run, monkeypatch):
    split = build_task(run.config.data, run.directory.vocabularies).split("test").select(range(9))
    heads = analyse_heads(run, split)
    monkeypatch.setattr(self_attention_views, "_MOST_PICTURES", 24)
    write_self_attention_viewers("run", run, split, heads)
    assert len(page_data(run.directory.viewer("test", "encoder"))["sentences"]) == 3  # of 8 heads


def test_layers_are_in_order_of_their_numbers_and_the_reverse_model_is_left_out():
    layers = {f"layer_{n}": {"attention": {"w": 0}, "self_attention": {}} for n in range(12)}
    params = {"reverse": {"decoder": layers}, "forward": {"decoder": dict(sorted(layers.items()))}}
    found = cross_heads(params, 24)
    assert found == [(f"forward/decoder/layer_{n}/attention", k) for n in range(12) for k in (0, 1)]
    assert head_name(*found[21]) == "layer 10 head 1"
    alone = cross_heads({"decoder": {"attention": {}}}, 2)
    assert alone == [("decoder/attention", 0), ("decoder/attention", 1)]
    assert cross_heads({}, 2) == [("attention", 0), ("attention", 1)]
    # Attention without parameters, such as scaled_dot, of a Transformer.
    normed = {"decoder": {f"layer_{n}": {"attention_norm": {}} for n in range(3)}}
    found = cross_heads(normed, 6)
    assert found == [(f"decoder/layer_{n}/attention", k) for n in range(3) for k in (0, 1)]
    assert head_name("decoder/attention", 1) == "head 1"


def test_a_head_is_ablated_by_the_mask_of_its_layer(run, monkeypatch):
    """A made-up loss tells which head may read nothing; the only head of a layer is left alone."""

    def forcing(model, objective, strategy, shardings):
        def measure(params, batches, masks):
            assert all(mask.shape == (1, 2, 1, 1) for mask in masks.values())
            silent = [(path, k) for path, mask in masks.items() for k in (0, 1) if not mask[0, k]]
            return {"nll": 1.0 + sum(1.0 + head + len(path) for path, head in silent)}

        return measure

    monkeypatch.setattr(head_analysis, "TeacherForcing", forcing)
    monkeypatch.setattr(head_analysis, "batches_of_process", lambda *parts: [])
    split = build_task(run.config.data, run.directory.vocabularies).split("test")
    places = [(f"forward/decoder/layer_{n}/attention", k) for n in range(12) for k in (0, 1)]
    found = dict(losses_without(run, split, [*places, ("encoder/alone", 0)]))
    assert found == {(path, k): k + 1.0 + len(path) for path, k in places}


def test_the_head_that_was_told_stands_for_the_attention(run):
    results = json.loads(run.directory.results.read_text())["test"]
    assert results["attention_monotonicity"] > 0.9 and results["attention_entropy"] < 0.3


@pytest.mark.parametrize("name", ["encoders_as_matrices", "transformer_lm"])
def test_heads_of_self_attention_need_no_others(name, tmp_path):
    """Under a decoder with a single head, and in a model that reads no source."""
    config = smoke_config(name)
    if name == "encoders_as_matrices":
        heads = {"name": "multi_head", "num_heads": 2, "head_dim": 4}
        config.model.sources.source.encoder = {
            "name": "self_attention", "num_layers": 1, "feed_forward_dim": 8,
            "self_attention": heads,
        }  # fmt: skip
    config.search = {"method": "greedy"}
    run, task = untrained(from_config_dict(config), tmp_path / "run")
    evaluate_as_asked(run, task, EvaluationRequest(split=("test",), heads=True))
    lines = (tmp_path / "run" / "heads.test.tsv").read_text().splitlines()
    rows = list(csv.DictReader(lines, delimiter="\t"))
    side = "decoder" if name == "transformer_lm" else "encoder"
    assert len(rows) > 1 and all(row["layer"].startswith(f"{side}/layer_") for row in rows)
    assert all(row["entropy"] and row["nll_without"] for row in rows)


def test_heads_that_split_depths_are_silenced_where_their_context_is_read(tmp_path):
    """Luong's decoder reads it by one matrix, whose rows of the head are put to zero."""
    config = smoke_config("luong2015")
    config.model.attention.update({"name": "bahdanau", "num_heads": 2})
    run, task = untrained(from_config_dict(config), tmp_path / "run")
    split = task.split("test").select(range(40))
    measured = analyse_heads(run, split)
    assert [(head.layer, head.number) for head in measured] == [
        ("decoder/attention", 0), ("decoder/attention", 1),
    ]  # fmt: skip

    objective = Objective(run.config.objectives)
    measure = TeacherForcing(run.model, objective, run.strategy, run.shardings)
    batches = batches_of_process(split, run.config, run.strategy)
    decoder = run.params["decoder"]
    kernel = decoder["combine"]["context"]
    depth = kernel.shape[0] // 2
    for head in measured:
        rows = slice(head.number * depth, (head.number + 1) * depth)
        combine = {**decoder["combine"], "context": kernel.at[rows].set(0.0)}
        without = {**run.params, "decoder": {**decoder, "combine": combine}}
        lost = measure(without, batches)["nll"] - measure(run.params, batches)["nll"]
        assert head.values["nll_without"] == pytest.approx(lost, abs=2e-6) and abs(lost) > 2e-5


def test_heads_that_split_depths_are_silenced_in_every_layer(tmp_path):
    """They are heads with projections, each of which copies a part of what it is given."""
    config = smoke_config("vaswani2017")
    for stack in (config.model.sources.source.encoder, config.model.decoder):
        stack.norm_order = "pre"
    config.model.attention = {"name": "scaled_dot", "num_heads": 2}
    run, task = untrained(from_config_dict(config), tmp_path / "splitting")
    config.model.attention = {"name": "multi_head", "num_heads": 2, "head_dim": 16}
    config.seed = 1
    projecting, _ = untrained(from_config_dict(config), tmp_path / "projecting")
    parts = jnp.eye(32).reshape(32, 2, 16).transpose(1, 0, 2)
    copies = {f"{name}_projection": parts for name in ("query", "key", "value")}
    copies["output_kernel"] = parts.transpose(0, 2, 1)
    params = jax.tree.map(jnp.asarray, run.params)
    places = {"encoder": ["self_attention"], "decoder": ["self_attention", "attention"]}
    for side, kinds in places.items():
        for layer in ("layer_0", "layer_1"):
            params[side][layer] |= dict.fromkeys(kinds, copies)
    assert jax.tree.structure(params) == jax.tree.structure(projecting.params)
    params = jax.tree.map(lambda one, like: jax.device_put(one, like.sharding), params,
                          projecting.params)  # fmt: skip

    split = task.split("test").select(range(20))
    expected = analyse_heads(dataclasses.replace(projecting, params=params), split)
    found = {(head.layer, head.number): head.values for head in analyse_heads(run, split)}
    assert len(found) == len(expected) == 12
    for head in expected:
        assert found[head.layer, head.number] == pytest.approx(head.values, abs=2e-5)
        assert abs(head.values["nll_without"]) > 1e-4


def test_windows_reach_as_far_as_they_do(tmp_path):
    config = smoke_config("vaswani2017")
    config.model.attention.refinements = {"sliding_window": {"size": 2}}
    config.model.attention.score = {"name": "scaled_dot", "normalizer": "sparsemax"}
    run, task = untrained(from_config_dict(config), tmp_path / "run")
    sharp = dataclasses.replace(run, params=jax.tree.map(lambda leaf: 5 * leaf, run.params))
    found = self_attention(sharp, task.split("test").select([0]))
    ((weights, reach),) = found["encoder/layer_1/self_attention"]
    assert ((weights > 0).sum(-1) <= reach).all() and ((weights > 0).sum(-1) < reach).any()
    assert reach[0, :3].tolist() == [2, 3, 3]
    ((_, reach),) = found["decoder/layer_0/self_attention"]
    assert reach[0, :3].tolist() == [1, 2, 2]


def test_what_was_found_of_heads_goes_when_the_run_has_gone_on(tmp_path):
    config = smoke_config("vaswani2017")
    config.search = {"method": "greedy"}
    run, task = untrained(from_config_dict(config), tmp_path / "run")
    asked = EvaluationRequest(split=("test",), heads=True)
    evaluate_as_asked(run, task, asked)
    page = run.directory.viewer("test")
    about = page_data(page)["about"]
    kept = [run.directory.heads("test"), run.directory.viewer("test", "encoder")]
    asked = dataclasses.replace(asked, heads=False)
    evaluate_as_asked(run, task, asked)
    assert all(path.exists() for path in kept)
    again = page_data(page)["about"]
    assert any(about) and [*map(bool, again)] == [*map(bool, about)]
    for now, then in zip(again, about, strict=True):
        assert now == pytest.approx(then, abs=1e-4)
    evaluate_as_asked(dataclasses.replace(run, step=run.step + 1), task, asked)
    assert not any(path.exists() for path in kept)


def test_a_model_without_heads_is_refused(tmp_path):
    run, task = untrained(tiny_config(), tmp_path / "run")
    with pytest.raises(UserError, match="--heads: expected a model with several heads, found none"):
        check_heads(run, task.split("test"))
