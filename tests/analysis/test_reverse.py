"""A run of both directions: trained, continued, and used from either side."""

import dataclasses
import json
import shutil

import jax
import numpy as np
import pytest

from attention_jax import api
from attention_jax.analysis.evaluate import Evaluation
from attention_jax.analysis.evaluation_request import EvaluationRequest, evaluate_as_asked
from attention_jax.analysis.gold_links import GoldFiles
from attention_jax.analysis.reverse import reverse_run, reverse_split, reverse_task
from attention_jax.configuration import plain
from attention_jax.data.builders.cmudict import Config as CmudictConfig
from attention_jax.data.loading import build_task
from attention_jax.decoding.forced_decoding import forced_attention
from attention_jax.decoding.translate import Translator
from attention_jax.errors import RunDirectoryError, UserError
from attention_jax.experiment import run_experiment
from attention_jax.runs.config import from_config_dict, to_plain
from attention_jax.runs.load import load_run
from attention_jax.runs.results import format_results
from attention_jax.runs.run_directory import read_json
from attention_jax.training.loop import hash_parameters
from tests.training.tiny import tiny_config

OBJECTIVES = {"nll": {}, "reverse_nll": {}, "bilingual_symmetry": {"schedule": {"start_steps": 3}}}


def config(**training):
    values = to_plain(tiny_config(evaluate_every_steps=0, **training))
    values["model"]["name"] = "bidirectional"
    return from_config_dict({**values, "objectives": OBJECTIVES})


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    """A run of 12 steps."""
    workdir = tmp_path_factory.mktemp("both") / "run"
    run_experiment(config(checkpoint_every_steps=0), workdir)
    return workdir


@pytest.fixture(scope="module")
def run(workdir):
    """What it has learnt."""
    return load_run(workdir)


@pytest.fixture(scope="module")
def task(run):
    """Its data."""
    return build_task(run.config.data, run.directory.vocabularies)


def test_results_tell_of_both_directions(workdir):
    results = read_json(workdir / "results.json")["test"]
    names = {"nll", "accuracy", "reverse/nll", "reverse/accuracy", "loss/bilingual_symmetry"}
    assert names <= set(results) and -1 <= results["loss/bilingual_symmetry"] < 0
    terms = [results[f"loss/{name}"] for name in OBJECTIVES]
    np.testing.assert_allclose(results["loss"], sum(terms), rtol=1e-6)
    assert (workdir / "viewer.test.html").exists()


def test_run_that_was_cut_off_ends_the_same(workdir, tmp_path):
    short = config(checkpoint_every_steps=0)
    short = dataclasses.replace(short, training=dataclasses.replace(short.training, num_steps=2))
    run_experiment(short, tmp_path / "run")  # before the symmetry is switched on
    run_experiment(config(checkpoint_every_steps=7), tmp_path / "run")
    facts = [read_json(path / "run.json") for path in (workdir, tmp_path / "run")]
    assert facts[0]["parameters"] == facts[1]["parameters"]


def test_run_of_one_direction_is_not_continued_in_two(workdir):
    single = to_plain(config())
    single["model"]["name"], single["objectives"] = "encoder_decoder", {"nll": {}}
    with pytest.raises(RunDirectoryError, match="model.name is 'bidirectional' there") as caught:
        run_experiment(from_config_dict(single), workdir)
    assert "\n" not in str(caught.value)


def test_attention_of_both_directions_is_to_the_same_pairs(run, task):
    split = task.split("test").select(range(5))
    forward = forced_attention(run, split)
    reverse = forced_attention(reverse_run(run), reverse_split(split))
    output = jax.jit(run.model.apply)(run.params, _batch(split, 3))
    for found, expected in ((forward, output), (reverse, output.outputs["reverse"])):
        weights = expected.attention.weights[0]
        np.testing.assert_allclose(found[3].weights, weights, rtol=1e-4, atol=1e-6)
    assert [one.weights.shape for one in forward] == [one.weights.T.shape for one in reverse]


def test_run_of_both_directions_is_symmetrized_with_itself(workdir, task, tmp_path):
    copy = load_run(shutil.copytree(workdir, tmp_path / "run"))
    split = task.split("test")
    gold = tmp_path / "gold"
    gold.write_text("".join(f"{number}\t0-0\n" for number in range(4)))
    words = tmp_path / "words"
    # Each character of a number is a word that links count.
    words.write_text("".join(f"{' '.join(_pieces(split, n))}\n" for n in range(len(split))))
    request = EvaluationRequest(split=["test"], gold=GoldFiles(str(gold), source=str(words)))
    evaluate_as_asked(copy, task, request)
    scores = read_json(copy.directory.results)["test"]
    assert {"aer", "aer_reverse", "aer_grow_diag_final_and"} <= scores.keys()
    assert "run, reverse, reversed" in copy.directory.viewer("test").read_text()


def _pieces(split, number):
    return split.source_vocabulary.surfaces(split.sources[number])


def _batch(split, index):
    sides = {"source": split.source_ids[index], "target": split.target_ids[index]}
    masks = {f"{side}_mask": np.ones((1, len(ids)), bool) for side, ids in sides.items()}
    return {**{side: ids[None] for side, ids in sides.items()}, **masks}


def test_every_pair_is_written_alike_on_both_sides(task):
    """What makes rows and columns of the two attentions match without any shift."""
    for split in map(task.split, ("train", "test")):
        for ids in (*split.source_ids, *split.target_ids):
            assert ids[-1] == 2 and not {0, 1, 2} & set(ids[:-1].tolist())


def test_reverse_direction_is_evaluated_beside_the_forward_one(run, task, workdir):
    before = read_json(workdir / "results.json")["test"]
    back = reverse_run(run)
    assert hash_parameters(back.params) == hash_parameters(run.params["reverse"])
    assert list(back.config.objectives) == ["nll"]
    metrics = Evaluation(back, reverse_task(task)).evaluate("test.reverse")
    results = read_json(workdir / "results.json")
    assert results["test"] == before and results["test.reverse"]["nll"] == metrics["nll"]
    for name in ("nll", "accuracy"):
        np.testing.assert_allclose(metrics[name], before[f"reverse/{name}"], rtol=1e-5)
    assert (workdir / "predictions.test.reverse.txt").exists()
    assert "test.reverse bleu" in format_results(run.directory, ["bleu"])


def test_run_of_one_direction_has_no_reverse(run):
    single = dataclasses.replace(run, model=run.model.forward, config=tiny_config())
    with pytest.raises(UserError, match="expected a run with a reverse direction") as caught:
        reverse_run(single)
    assert "found 'encoder_decoder'" in str(caught.value) and "\n" not in str(caught.value)


def test_config_of_the_run_reads_back(run):
    assert from_config_dict(json.loads(json.dumps(plain(run.config)))) == run.config
    assert run.config.objectives["bilingual_symmetry"].schedule.start_steps == 3


def test_phonemes_keep_their_case_where_they_are_the_source(run):
    reverse = dataclasses.replace(reverse_run(run).config, data=CmudictConfig())
    back = dataclasses.replace(reverse_run(run), config=reverse)
    assert Translator(back).translate([" HH AH0 "])[0].source == "HH AH0"


def test_the_reverse_direction_is_used_from_python(workdir, run, tmp_path, launch):
    backward, lines = api.load(workdir, direction="reverse"), ["one two", "five"]
    expected = Translator(reverse_run(run), nbest=1).translate(lines)
    outputs = backward.translate(lines)
    for output, found in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(output.log_prob, found.hypotheses[0].log_prob, rtol=1e-5)
    printed = launch(
        "translate", f"--workdir={workdir}", "--direction=reverse", stdin=b"one two\nfive\n"
    ).out
    assert printed.splitlines() == [output.text for output in outputs]
    [pair] = backward.score(["one two"], ["12"])
    [forward] = api.load(workdir).score(["12"], ["one two"])
    assert np.isfinite(pair.log_prob) and pair.log_prob != forward.log_prob
    assert backward.attend("one two", "12").weights.shape == (3, 3)
    assert backward.attribute("one two", "12").values.shape == (3, 3)


def test_the_reverse_direction_is_evaluated_from_python(workdir, tmp_path):
    copy = shutil.copytree(workdir, tmp_path / "run")
    backward = api.load(copy, direction="reverse")
    metrics = backward.evaluate(["one two", "five"], ["12", "5"], gold=["0-0", ""])
    assert {"perplexity", "aer"} <= {*metrics}


def test_one_direction_has_no_reverse_from_python(trained):
    with pytest.raises(UserError, match="expected a run with a reverse direction"):
        api.load(trained, direction="reverse")
