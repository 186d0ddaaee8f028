import jax
import numpy as np
import pytest

from experiments import additive_vs_multiplicative as experiment
from experiments.additive_vs_multiplicative import ADDITIVE, DOT, PASSES, Shape


@pytest.fixture(scope="module")
def results():
    return experiment.measure(experiment.SMOKE, rounds=2)


def test_every_shape_score_and_pass_is_measured(results):
    keys = {(one["length"], one["heads"], one["score"], one["pass"]) for one in results["records"]}
    assert len(keys) == len(results["records"]) == len(experiment.SMOKE) * 2 * len(PASSES)
    assert all(one["milliseconds"] > 0 for one in results["records"])


def test_both_scores_attend_to_the_same_arrays():
    shape = Shape(6, 8, 2)
    contexts = []
    for score in (ADDITIVE, DOT):
        attend, arrays = experiment.attention(score, shape)
        contexts.append(np.asarray(jax.jit(attend)(*arrays)))
    assert contexts[0].shape == contexts[1].shape == (experiment.BATCH, 6, 8)
    assert not np.allclose(*contexts)


def test_ratios_are_of_additive_over_dot(results):
    records = [
        {"length": 4, "depth": 8, "heads": 1, "pass": "forward", "score": score,
         "milliseconds": value, "temporaries_mib": 0.0}
        for score, value in ((ADDITIVE, 6.0), (DOT, 2.0))
    ]  # fmt: skip
    found = {**results, "records": records}
    assert experiment.ratios(found, "forward", "milliseconds") == {Shape(4, 8, 1): 3.0}
    assert experiment.ratios(found, "forward", "temporaries_mib") == {}


def test_each_measure_of_the_claim_is_held_or_not(results):
    """Time as 3 and 2 times; memory as 0.5 and 1, then as 1 and 2 times."""
    dot = {"milliseconds": 2.0, "temporaries_mib": 4.0}
    additive = {
        ("forward", 4): (6.0, 2.0), ("forward", 8): (4.0, 4.0),
        ("with gradients", 4): (2.0, 4.0), ("with gradients", 8): (6.0, 8.0),
    }  # fmt: skip
    records = []
    for (what, length), measured in additive.items():
        shared = {"length": length, "depth": 8, "heads": 1, "pass": what}
        records.append({**shared, "score": DOT, **dot})
        records.append({**shared, "score": ADDITIVE, **dict(zip(dot, measured, strict=True))})
    lines = experiment.verdicts({**results, "records": records})
    assert [line.split(": ")[0] for line in lines] == [
        "- time, forward", "- time, with gradients",
        "- temporary memory, forward", "- temporary memory, with gradients",
    ]  # fmt: skip
    assert "2.00 to 3.00 times" in lines[0]
    said = ["Held", "Held in part", "Not held", "Held in part"]
    assert [line.split(". ")[1].split(":")[0] for line in lines] == said


def test_page_and_plot_show_what_was_measured(results):
    text = experiment.page(results)
    assert "| 8 | 16 | 1 | " in text and "| 16 | 16 | 2 | " in text
    assert "- time, forward: additive attention takes " in text
    assert len(experiment.plot(results).axes[0].lines) == 4
