"""The Transformer's weights under CTranslate2's names, and its outputs where it is installed."""

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.positions import sinusoidal_positions
from experiments.benchmarks.speed.ctranslate2_model import weights_of, words_of
from experiments.benchmarks.speed.project_model import (
    batch_of,
    draw_parameters,
    make_beam_search,
    model_of,
)
from experiments.benchmarks.speed.project_worker import exchanged, save_parameters
from experiments.benchmarks.speed.workloads import Sentences, TransformerSizes, sinusoids

SIZES = TransformerSizes(vocabulary=60, depth=16, width=24, heads=4, layers=2)
WIDTH, LENGTH, LONGEST = 3, 8, 20

SCRIPT = """
import json, sys
from experiments.benchmarks.speed.ctranslate2_worker import beam
task = json.loads(sys.argv[1])
work, ready = beam(task)
print(json.dumps([ready, work()]))
"""


@pytest.fixture(scope="module")
def parameters():
    return draw_parameters(model_of(SIZES), end_bias=-15.0)


@pytest.fixture(scope="module")
def weights(parameters):
    return weights_of(exchanged(parameters), SIZES)


def test_every_parameter_has_one_place(parameters, weights):
    """But for positions, which nobody learns, and the bias of the keys, which is zero."""
    count = sum(array.size for array in exchanged(parameters).values())
    attentions = 3 * SIZES.layers
    codes = sum(array.size for name, array in weights.items() if "encodings" in name)
    assert sum(array.size for array in weights.values()) - codes == count + 16 * attentions
    assert {array.dtype for array in weights.values()} == {np.dtype("float32")}


def test_projections_that_read_the_same_are_stacked(parameters, weights, numpy_rng):
    ours = exchanged(parameters)
    vectors = numpy_rng.normal(size=(5, SIZES.depth)).astype(np.float32)
    for name, stacks in {"self_attention": [("query", "key", "value")],
                         "attention": [("query",), ("key", "value")]}.items():  # fmt: skip
        for number, parts in enumerate(stacks):
            place = f"decoder.layer.1.{name}.linear.{number}"
            found = vectors @ weights[f"{place}.weight"].T + weights[f"{place}.bias"]
            for part, found_part in zip(parts, np.split(found, len(parts), axis=1), strict=True):
                kernel = ours[f"decoder.layer_1.{name}.{part}_projection"]  # H D D/H
                bias = ours.get(f"decoder.layer_1.{name}.{part}_bias", np.zeros((4, 4)))
                expected = np.einsum("td,hde->the", vectors, kernel) + bias
                rows = expected.reshape(5, -1)
                np.testing.assert_allclose(found_part, rows, rtol=1e-4, atol=1e-5)
    kernel = ours["encoder.layer_0.self_attention.output_kernel"]  # H D/H D
    expected = np.einsum("the,hed->td", vectors.reshape(5, 4, 4), kernel)
    found = vectors @ weights["encoder.layer.0.self_attention.linear.1.weight"].T
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert weights["decoder.layer.0.ffn.linear_0.weight"].shape == (SIZES.width, SIZES.depth)


def test_words_stand_for_ids():
    assert words_of(6) == ["<pad>", "<s>", "</s>", "<unk>", "w4", "w5"]


def test_sinusoids_are_those_of_the_project():
    expected = sinusoidal_positions(jnp.arange(9), 6)
    np.testing.assert_allclose(sinusoids(9, 6), expected, rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def python():
    python = os.environ.get("CTRANSLATE2_PYTHON", "")
    if not python and importlib.util.find_spec("ctranslate2") is None:
        pytest.skip("needs CTranslate2: not installed, and CTRANSLATE2_PYTHON is not set")
    return python or sys.executable


def in_ctranslate2(python, folder, params, longest, **further):
    """(what the project found, what the worker tells, what CTranslate2 found)."""
    sentences = Sentences.random(4, LENGTH, LENGTH, SIZES.vocabulary)
    sentences.save(folder / "sentences.npz")
    save_parameters(params, folder / "parameters.npz")
    found = make_beam_search(model_of(SIZES), WIDTH, LENGTH, longest, LENGTH)(
        params, batch_of(sentences)
    )
    np.save(folder / "hypotheses.npy", found.tokens)
    task = {
        "sizes": dataclasses.asdict(SIZES), "parameters": f"{folder}/parameters.npz", "threads": 1,
        "data": f"{folder}/sentences.npz", "width": WIDTH, "shortest": LENGTH, "longest": longest,
        **further,
    }  # fmt: skip
    command = [python, "-c", SCRIPT, json.dumps(task)]
    done = subprocess.run(command, check=True, timeout=120, capture_output=True, text=True)
    return found, *json.loads(done.stdout)


def test_outputs_are_equal(python, tmp_path, parameters):
    found, ready, outputs = in_ctranslate2(python, tmp_path, parameters, LENGTH, compute="float32")
    np.testing.assert_allclose(ready["check"], found.log_probs, rtol=1e-5)
    # Its last step writes a word where ours writes EOS.
    assert {len(output) for each in outputs for output in each} == {LENGTH}


def test_outputs_that_end_by_themselves_have_the_same_length_and_probability(python, tmp_path):
    params = draw_parameters(model_of(SIZES), end_bias=15.0)
    found, ready, outputs = in_ctranslate2(
        python, tmp_path, params, LONGEST, compute="float32",
        hypotheses=str(tmp_path / "hypotheses.npy"),
    )  # fmt: skip
    np.testing.assert_allclose(ready["check"], found.log_probs, rtol=1e-5)
    assert {len(output) for each in outputs for output in each} == {LENGTH - 1}


def test_int8_computes_something_else_and_is_not_held_to_it(python, tmp_path, parameters):
    _, ready, outputs = in_ctranslate2(python, tmp_path, parameters, LENGTH, compute="int8")
    assert "check" not in ready and len(outputs) == 4
