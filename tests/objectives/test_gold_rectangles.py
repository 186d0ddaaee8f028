"""Objectives of attention to pictures, in NumPy: gold rectangles, and every place once."""

import jax
import numpy as np

from attention_jax.objectives.coverage_penalty import Term as CoveragePenalty
from tests.taught import first_batch, supervised_config

CELL, DEPTH = 16, 8


def experiment():
    data = {"name": "formulas", "num_formulas": 3, "max_symbols": 6, "cell": CELL,
            "batch_size": 3, "num_buckets": 1}  # fmt: skip
    sizes = {"rows": 48 // CELL, "cell": CELL, "filters": 2, "embedding_dim": DEPTH}
    model = {
        "name": "encoder_decoder",
        "target_embedding_dim": DEPTH,
        "sources": {
            "source": {
                "input": {"name": "pixels", **sizes},
                "encoder": {"name": "grid", "rows": sizes["rows"], "num_layers": 1},
            }
        },
        "attention": {"name": "bahdanau", "attention_dim": DEPTH},
        "decoder": {"name": "luong", "hidden_dim": DEPTH, "bridge": "mean"},
    }
    return supervised_config(data, model)


def test_rectangles_and_double_stochasticity_teach_attention_to_a_picture(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(tmp_path))
    monkeypatch.setattr("attention_jax.data.builders.formulas._EVALUATION", 2)
    config = experiment()
    task, model, batch, arrays = first_batch(config, tmp_path)
    terms = config.objectives["supervised_alignment"], CoveragePenalty()

    def loss(params):
        output = model.apply(params, arrays)
        totals = [term.total(output, arrays) for term in terms]
        return totals[0], (totals, output.attention.weights)

    params = model.init(jax.random.key(0))
    gradient, (found, weights) = jax.jit(jax.grad(loss, has_aux=True))(params)

    weights, links = np.asarray(weights, np.float64), batch["links"]
    asked = links.any(-1)  # neither braces nor EOS
    assert 0 < asked.sum() < batch["target_mask"].sum()
    even = links[asked] / links[asked].sum(-1, keepdims=True)
    supervised = -(even * np.log(weights[asked] + 1e-9)).sum()
    received = (weights * batch["target_mask"][..., None]).sum(1)
    penalty = ((1 - received) ** 2)[batch["source_mask"]].sum()
    np.testing.assert_allclose(found, [supervised, penalty], rtol=1e-5)
    # What the rectangles say reaches the pixels.
    assert np.abs(gradient["source_convolution_0"]["kernel"]).max() > 0
