import dataclasses

import jax
import numpy as np
import pytest

from attention_jax.errors import RunDirectoryError
from attention_jax.runs.files import write_json
from experiments import additive_vs_multiplicative as experiment
from experiments.additive_vs_multiplicative import ADDITIVE, DOT, PASSES, PLAIN, SCORES, Shape


@pytest.fixture(scope="module")
def results():
    with pytest.MonkeyPatch.context() as patch:  # no times are judged here: do not wait for quiet
        patch.setattr(experiment, "QUIET", dataclasses.replace(experiment.QUIET, patience=0.0))
        return experiment.measure(experiment.SMOKE, rounds=2)


def test_every_shape_score_and_pass_is_measured(results):
    keys = {(one["slots"], one["heads"], one["score"], one["pass"]) for one in results["records"]}
    number = len(experiment.SMOKE) * len(SCORES) * len(PASSES)
    assert len(keys) == len(results["records"]) == number
    assert all(one["milliseconds"] > 0 for one in results["records"])


def test_scores_attend_to_the_same_arrays_and_both_additive_ones_alike():
    shape, contexts = Shape(5, 6, 8, 2), {}
    for score in SCORES:
        attend, arrays = experiment.attention(score, shape)
        contexts[score] = np.asarray(jax.jit(attend)(*arrays))
        assert contexts[score].shape == (experiment.BATCH, 5, 8)
    np.testing.assert_allclose(contexts[PLAIN], contexts[ADDITIVE], rtol=1e-5, atol=1e-6)
    assert not np.allclose(contexts[DOT], contexts[ADDITIVE])


@pytest.mark.parametrize("score", (ADDITIVE, PLAIN))
def test_additive_scores_have_a_vector_more_and_no_further_projection(score):
    """The hidden layer is that of queries and keys as the heads project them."""
    attend, (params, query, keys, values) = experiment.attention(score, Shape(5, 6, 8, 2))
    of_products = experiment.attention(DOT, Shape(5, 6, 8, 2))[1][0]
    assert set(params) - set(of_products) == {"vector"}
    projected = [
        np.einsum("bsd,hdk->bhsk", np.asarray(array, np.float64), params[f"{name}_projection"])
        for name, array in (("query", query), ("key", keys), ("value", values))
    ]
    hidden = np.tanh(projected[0][:, :, :, None] + projected[1][:, :, None])
    scores = np.exp(np.einsum("bhtsk,hk->bhts", hidden, params["vector"]))
    contexts = (scores / scores.sum(-1, keepdims=True)) @ projected[2]
    expected = np.einsum("bhtk,hkd->btd", contexts, params["output_kernel"])
    np.testing.assert_allclose(
        attend(params, query, keys, values), expected, rtol=1e-4, atol=1e-5
    )


def test_ratios_are_of_additive_over_dot(results):
    records = [
        {"queries": 4, "slots": 2, "depth": 8, "heads": 1, "pass": "forward", "score": score,
         "milliseconds": value, "temporaries_mib": 0.0}
        for score, value in ((ADDITIVE, 6.0), (PLAIN, 8.0), (DOT, 2.0))
    ]  # fmt: skip
    found = {**results, "records": records}
    shape = Shape(4, 2, 8, 1)
    assert experiment.ratios(found, "forward", "milliseconds") == {shape: 3.0}
    assert experiment.ratios(found, "forward", "milliseconds", PLAIN) == {shape: 4.0}
    assert experiment.ratios(found, "forward", "temporaries_mib") == {}


def test_each_measure_of_the_claim_is_held_or_not(results):
    """Time as 3 and 2 times, then as 1 and 3; memory as 0.5 and 1, then as 1 and 2 times."""
    dot = {"milliseconds": 2.0, "temporaries_mib": 4.0}
    additive = {
        ("forward", 4): (6.0, 2.0), ("forward", 8): (4.0, 4.0),
        ("with gradients", 4): (2.0, 4.0), ("with gradients", 8): (6.0, 8.0),
    }  # fmt: skip
    records = []
    for (what, length), measured in additive.items():
        shared = {"queries": length, "slots": length, "depth": 8, "heads": 1, "pass": what}
        records.append({**shared, "score": DOT, **dot})
        for score in (ADDITIVE, PLAIN):
            records.append({**shared, "score": score, **dict(zip(dot, measured, strict=True))})
    lines = experiment.verdicts({**results, "records": records})[::2]
    assert [line.split(": ")[0] for line in lines] == [
        "- time, forward, additive", "- time, with gradients, additive",
        "- temporary memory, forward, additive", "- temporary memory, with gradients, additive",
    ]  # fmt: skip
    assert "2.00 to 3.00 times" in lines[0]
    said = ["Held", "Held in part", "Not held", "Held in part"]
    assert [line.split(". ")[1].split(":")[0] for line in lines] == said


def test_a_second_start_goes_on_after_the_shapes_that_were_saved(results, monkeypatch):
    first, second = experiment.SMOKE
    asked, saved = [], []

    def measure_shape(shape, rounds):
        asked.append(shape)
        return [{**one, **dataclasses.asdict(shape)} for one in results["records"][:6]]

    monkeypatch.setattr(experiment, "measure_shape", measure_shape)
    partial = experiment.measure([first], 1, save=saved.append)
    whole = experiment.measure(experiment.SMOKE, 1, partial, saved.append)
    assert asked == [first, second]
    assert [experiment.measured_shapes(each) for each in saved] == [{first}, {first, second}]
    assert whole["records"][:6] == partial["records"] and saved[-1] == whole
    assert "**Only 1 of 2 shapes are measured.**" in experiment.page(partial, experiment.SMOKE)


@pytest.mark.parametrize("changed", [{"commit": "c0ffee"}, {"jax": "0.1"}, {"batch": 3}])
def test_results_of_other_code_or_another_library_are_not_gone_on_with(
    results, changed, monkeypatch
):
    monkeypatch.setattr(experiment, "is_of_this_code", lambda commit: commit == "here")
    here = {**results, "commit": "here"}
    assert experiment.is_current(here) and not experiment.is_current({**here, **changed})


def test_load_reads_what_was_saved_and_refuses_anything_else(results, tmp_path):
    path = tmp_path / "results.json"
    assert experiment.load(path) is None
    write_json(path, results)
    assert experiment.load(path) == results
    without_dot = [one for one in results["records"] if one["score"] != DOT]
    other_value = [{**results["records"][0], "milliseconds": "fast"}, *results["records"][1:]]
    for broken in (
        [], {}, {**results, "records": without_dot}, {**results, "records": other_value},
        {name: value for name, value in results.items() if name != "device"},
    ):  # fmt: skip
        write_json(path, broken)
        with pytest.raises(RunDirectoryError, match=r"results\.json: expected what this program"):
            experiment.load(path)
    path.write_text('{"records": [')
    with pytest.raises(RunDirectoryError, match=r"results\.json: expected JSON"):
        experiment.load(path)


def test_several_heads_are_measured_at_several_shapes():
    with_heads = {shape.queries for shape in experiment.SHAPES if shape.heads == 8}
    assert len(with_heads) > 1 and len(set(experiment.SHAPES)) == len(experiment.SHAPES)


def test_committed_page_is_what_the_committed_results_give(repository):
    folder = repository / "docs" / "results"
    results = experiment.load(folder / experiment.NAME / "results.json")
    text = (folder / f"{experiment.NAME}.md").read_text()
    assert text == experiment.page(results, experiment.SHAPES)


def test_page_and_plot_show_what_was_measured(results):
    text = experiment.page(results, experiment.SMOKE)
    assert "Only" not in text
    assert "| 8 | 8 | 16 | 1 | " in text and "| 8 | 16 | 16 | 2 | " in text
    assert "- time, forward, additive, written out: " in text
    assert len(experiment.plot(results).axes[0].lines) == len(SCORES) * len(PASSES)
