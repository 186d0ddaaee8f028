"""The measurement of gradient estimators, at a small size: which have a bias, and what spread."""

import json
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.errors import UserError
from experiments import hard_attention_gradients as experiment


def few():
    """The estimators, but for most of Gumbel-softmax."""
    left_out = ("one-hot", "temperature 1", "temperature 0.1")
    return [
        each for each in experiment.estimators() if not any(part in each.label for part in left_out)
    ]


@pytest.fixture(scope="module")
def record():
    """Measured for three sentences, with two temperatures of one kind."""
    chosen = few()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "estimators", lambda: chosen)
        return experiment.measure(3, 2000)


def test_samples_are_all_there_are_and_have_probability_one():
    attention, rest = experiment.sentences(1, 2.0)
    one = jax.tree.map(lambda leaf: leaf[0], (attention, rest))
    samples = np.asarray(experiment.all_samples())
    assert len(np.unique(samples.argmax(-1), axis=0)) == experiment.SLOTS**experiment.STEPS
    np.testing.assert_allclose(jax.jit(experiment.likelihoods)(*one)[0].sum(), 1, rtol=1e-5)


def test_reinforce_has_no_bias_and_baselines_lower_its_spread(record):
    for found in record["found"].values():
        for returns in experiment.RETURNS.values():
            none, moving, learnt = (
                found[f"REINFORCE, {returns}, {baseline}"]
                for baseline in experiment.BASELINES.values()
            )
            assert max(each["bias"] for each in (none, moving, learnt)) < 1e-4
            assert learnt["spread"] < moving["spread"] < none["spread"]
        whole, to_go = (found[f"REINFORCE, {returns}, no baseline"]["spread"]
                        for returns in experiment.RETURNS.values())  # fmt: skip
        assert to_go < whole


def test_gradients_through_what_is_read_have_a_bias(record):
    found = record["found"]["undecided"]
    assert found["straight-through"]["bias"] > 0.1
    hot, warm = (found[f"Gumbel-softmax, temperature {t:g}"] for t in (2, 0.5))
    assert hot["bias"] > warm["bias"] and hot["spread"] < warm["spread"]


def test_exact_gradient_against_finite_differences():
    attention, rest = jax.tree.map(lambda leaf: leaf[0], experiment.sentences(1, 1.0))
    gradient, value = jax.jit(jax.grad(experiment.expected)), jax.jit(experiment.expected)
    direction = jax.tree.map(lambda leaf: jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape),
                             attention)  # fmt: skip

    def moved(size):
        shifted = jax.tree.map(lambda leaf, step: leaf + size * step, attention, direction)
        return float(value(shifted, rest))

    slope = (moved(1e-2) - moved(-1e-2)) / 2e-2
    found = gradient(attention, rest)
    expected = sum(jnp.vdot(found[name], direction[name]) for name in found)
    np.testing.assert_allclose(slope, expected, rtol=2e-2)


def test_main_writes_a_record_a_page_and_a_plot(record, tmp_path, monkeypatch):
    chosen = few()
    monkeypatch.setattr(experiment, "estimators", lambda: chosen)
    values = SimpleNamespace(out=str(tmp_path), tables_only=True)
    monkeypatch.setattr(experiment, "flags", SimpleNamespace(FLAGS=values))
    with pytest.raises(UserError, match="^--tables_only: expected measurements in .*, found none$"):
        experiment.main()
    values.tables_only = False
    monkeypatch.setattr(experiment, "measure", lambda *_: record)
    experiment.main()
    page = (tmp_path / f"{experiment.NAME}.md").read_text()
    assert page.count("| REINFORCE") == 6 and "2,000 draws" in page
    assert {path.name for path in (tmp_path / experiment.NAME).iterdir()} == {
        "results.json", "estimators.png"
    }  # fmt: skip
    values.tables_only = True
    experiment.main()
    assert (tmp_path / f"{experiment.NAME}.md").read_text() == page


def test_the_committed_page_is_what_its_record_gives(repository):
    results = repository / "docs/results"
    record = json.loads((results / experiment.NAME / "results.json").read_text())
    assert (results / f"{experiment.NAME}.md").read_text() == experiment.page(record)
