"""Runs that predict together: scored, searched and evaluated as one run is."""

import dataclasses
import json

import numpy as np
import pytest

from attention_jax.analysis.evaluate import Evaluation
from attention_jax.data.lexicon import LEXICON, Lexicon
from attention_jax.decoding.forced_decoding import forced_attention
from attention_jax.decoding.scoring import Scorer
from attention_jax.decoding.translate import Translator
from attention_jax.errors import UserError
from attention_jax.ops.ensemble_predictions import COMBINATIONS
from attention_jax.runs.ensemble import ensemble_of
from tests.training.two_sources import two_sources_run
from tests.training.untrained import taught, untrained_run, write_text


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two runs on the same text with other parameters, and its data."""
    folder = tmp_path_factory.mktemp("ensemble")
    text = write_text(folder)
    (one, task), (other, _) = (untrained_run(folder / name, *text) for name in ("a", "bcd"))
    return one, other, task


def test_the_mean_of_probabilities_is_that_of_both_runs(two):
    *runs, task = two
    split = task.split("test")
    alone = [Scorer(run)(split) for run in runs]
    both = Scorer(ensemble_of(runs, "mean"), with_attention=True)(split)
    attention = [forced_attention(run, split) for run in runs]
    for index, found in enumerate(both):
        probs = [np.exp(each[index].log_probs.astype(np.float64)) for each in alone]
        np.testing.assert_allclose(found.log_probs, np.log(np.mean(probs, 0)), rtol=1e-4)
        weights = [each[index].weights for each in attention]
        np.testing.assert_allclose(found.weights, np.mean(weights, 0), rtol=1e-4, atol=1e-6)
    product = Scorer(ensemble_of(runs))(split)
    assert not np.allclose(product[0].log_probs, both[0].log_probs)


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_runs_that_are_alike_search_as_each_does(two, combination):
    one, _, task = two
    lines = task.split("test").sources[:3]
    mine, its = (
        Translator(run).translate(lines)
        for run in (ensemble_of([one, one, one], combination), one)
    )
    for translation, expected in zip(mine, its, strict=True):
        [best], [known] = translation.hypotheses, expected.hypotheses
        np.testing.assert_array_equal(best.tokens, known.tokens)
        np.testing.assert_allclose(best.log_prob, known.log_prob, rtol=1e-4)
        np.testing.assert_allclose(best.weights, known.weights, rtol=1e-4, atol=1e-6)


def test_one_run_is_itself(two):
    assert ensemble_of(two[:1]) is two[0]


def test_evaluations_of_an_ensemble_have_a_place_of_their_own(two):
    one, other, task = two
    run = ensemble_of([one, other], "mean")
    assert run.directory.outputs == one.directory.path / "evaluations" / "ensemble_mean=bcd"
    metrics = Evaluation(run, task).evaluate("test")
    results = json.loads((run.directory.outputs / "results.json").read_text())["test"]
    assert results["nll"] == metrics["nll"] and "bleu" in results
    assert (run.directory.outputs / "viewer.test.html").exists()
    assert not one.directory.results.exists()


def test_attention_is_averaged_over_runs_that_align_at_one_step(two):
    one, other, task = two
    split = task.split("test")
    run = ensemble_of([one, taught(other, "reads")])
    mine, its = forced_attention(run, split)[0], forced_attention(one, split)[0]
    np.testing.assert_allclose(mine.weights, its.weights, rtol=1e-5)
    assert ensemble_of([taught(one, "reads"), other]).model.attending == (0,)


@pytest.mark.parametrize("aligner", ["module", "full_context"])
def test_aligners_of_the_members_say_the_links(tmp_path, aligner):
    """Those alone, be it forced, scored or searched; runs without one are left out beside them."""
    runs = [
        two_sources_run(tmp_path / name, transformer=False, alone=True, aligner=chosen)
        for name, chosen in (("a", aligner), ("bc", aligner), ("def", "attention"))
    ]
    (one, task), (other, _), (plain, _) = runs
    plain = taught(plain, "reads")
    split = task.split("test")
    run = ensemble_of([one, plain, other])
    assert run.has_aligner and run.alignment_shift == 1 and run.model.attending == (0, 2)
    alone = [forced_attention(each, split) for each in (one, other)]
    found, scored = forced_attention(run, split), Scorer(run, with_attention=True)(split)
    for index in range(len(split)):
        expected = np.mean([each[index].weights for each in alone], axis=0)
        for weights in (found[index].weights, scored[index].weights):
            np.testing.assert_allclose(weights, expected, rtol=1e-4, atol=1e-6)
    own = [np.mean([each[0].heads[0] for each in alone], axis=0), found[0].weights]
    assert np.abs(np.subtract(*own)).max() > 0.01  # of the decoders
    [translation] = Translator(run).translate(split.sources[:1])
    [best] = translation.hypotheses
    written = split.select([0]).with_target_ids([best.tokens])
    [again] = forced_attention(run, written)
    np.testing.assert_allclose(best.weights, again.weights, rtol=1e-4, atol=1e-6)
    assert ensemble_of([plain, one]).model.attending == (0,)
    assert not ensemble_of([plain, one]).has_aligner


def test_members_that_read_a_lexicon_have_the_same(two, monkeypatch):
    """All are given that of the first; of others, a lexicon beside the vocabularies is nothing."""
    one, other, _ = two
    table = np.zeros((3, 2), np.int32)
    lexicon = Lexicon(table, table.astype(np.float32), np.arange(5))
    changed = dataclasses.replace(lexicon, probs=lexicon.probs + 1)
    with_its = dataclasses.replace(one, resources={LEXICON: lexicon})
    assert ensemble_of([with_its, other]).resources == {LEXICON: lexicon}
    monkeypatch.setattr(type(one.model), "fields", (*one.model.fields, LEXICON))
    again = dataclasses.replace(lexicon, by_frequency=np.arange(4))
    ensemble_of([with_its, dataclasses.replace(other, resources={LEXICON: again})])
    for resources in ({}, {LEXICON: changed}):
        with pytest.raises(UserError, match="expected the lexicon of .*/a, found another"):
            ensemble_of([with_its, dataclasses.replace(other, resources=resources)])


def test_the_first_run_must_know_the_sources_of_all(two, tmp_path):
    one, _, _ = two
    both, _ = two_sources_run(tmp_path / "both", transformer=False)
    with pytest.raises(UserError, match="both: expected sources that .* one alone, found 'second'"):
        ensemble_of([one, both])


def test_runs_that_do_not_fit_each_other_are_one_line(two, tmp_path):
    one, other, _ = two
    stranger, _ = untrained_run(tmp_path / "efgh", *write_text(tmp_path, seed=1, number=3))
    with pytest.raises(UserError, match="efgh: expected the vocabularies of .*/a, found others; "):
        ensemble_of([one, stranger])
    data = dataclasses.replace(other.config.data, lowercase=True)
    lower = dataclasses.replace(other, config=dataclasses.replace(other.config, data=data))
    with pytest.raises(UserError, match="expected the use of data.lowercase of .*, False, found T"):
        ensemble_of([one, lower])
