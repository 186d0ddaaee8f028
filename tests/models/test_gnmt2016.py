"""The config of GNMT: the paper's size, counted by hand, and that all its forms can be built."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.devices.rules import mesh_axes, path_of
from attention_jax.models import MODELS, build_model
from attention_jax.runs.size_of_text import USUAL, settled
from attention_jax.search import SearchConfig, search
from configs import common
from configs.gnmt2016 import get_config
from tests.parameters import drawn
from tests.quick import quick_jit

PIECES = 32_000
FORMS = (*common.DATA_SETS, "paper")


def model_of(argument, size):
    config = settled(get_config(argument), print, size=USUAL)
    model = typed(MODELS.config(config.model.name), config.model.to_dict(), "config.model")
    return build_model(model, size, size)


def shapes_of(argument, size):
    return jax.eval_shape(model_of(argument, size).init, jax.random.key(0))


@pytest.fixture(scope="module")
def paper():
    return shapes_of("paper", PIECES)


def test_paper_has_eight_layers_a_side_of_which_one_reads_both_ways(paper):
    upper = {f"layer_{layer}_forward" for layer in range(1, 8)}
    assert set(paper["encoder"]) == {"layer_0_forward", "layer_0_backward", *upper}
    layers = {f"layer_{layer}" for layer in range(8)}
    assert set(paper["decoder"]) == {"attention", *layers}  # a copied state needs no parameters
    assert paper["encoder"]["layer_1_forward"]["input"].shape == (2048, 4096)
    for layer in layers:
        for name in ("input", "context", "recurrent"):
            assert paper["decoder"][layer][name].shape == (1024, 4096)
    for table in ("source_embedding", "target_embedding", "output"):
        assert paper[table].shape == (PIECES, 1024)


def test_paper_has_281_million_parameters(paper):
    """Four gates of 1024 units, each with an input, a recurrent matrix and a bias."""
    gates = 4 * 1024
    lstm = (1024 + 1024) * gates + gates  # reads a layer, or a word
    lstm_of_two = (2048 + 1024) * gates + gates  # reads two such, side by side
    assert (lstm, lstm_of_two) == (8_392_704, 12_587_008)
    encoder = 2 * lstm + lstm_of_two + 6 * lstm  # both ways; over both; six more
    decoder = 8 * lstm_of_two  # each reads what is below and the context
    attention = 1024 * 1024 + 1024 * 1024 + 1024
    vocabulary = 3 * PIECES * 1024 + PIECES  # two embeddings, and the output with its bias
    assert (encoder, decoder, attention) == (79_728_640, 100_696_064, 2_098_176)
    total = sum(leaf.size for leaf in jax.tree.leaves(paper))
    assert total == encoder + decoder + attention + vocabulary == 280_858_880


def test_decodes_with_both_penalties():
    """Scores are those of eq. 14, from the log-probability and the attention of each output.

    Outputs are shorter than their sources, so that some word is left without its share.
    """
    config = get_config("smoke")
    for part in (config.model.sources.source.encoder, config.model.decoder):
        part.hidden_dim = 8
    config.model.attention.attention_dim = 8
    values = config.model.to_dict()
    model = build_model(typed(MODELS.config(values["name"]), values), 9, 9)
    params = drawn(model)
    searched = {**config.search.to_dict(), "beam_size": 3, "min_length_ratio": 0.5}
    searched = typed(SearchConfig, searched)
    batch = {
        "source": jnp.asarray([[4, 5, 6, 7, 2], [8, 4, 6, 2, 0]]),
        "source_mask": jnp.arange(5) < jnp.asarray([[5], [4]]),
    }

    def decode(params, batch, config):
        memory, state = model.start(params, batch, 3)
        step = functools.partial(model.step, params, memory)
        return search(step, state, config, batch["source_mask"].sum(-1), 3)

    found = quick_jit(functools.partial(decode, config=searched))(params, batch)
    for row, words in enumerate((4, 3)):  # EOS need not be attended to
        length = int(found.lengths[row, 0])
        coverage = np.asarray(found.weights)[row, 0, :length, :words].sum(0)
        penalty = 0.2 * np.log(np.minimum(coverage, 1)).sum()
        expected = found.log_probs[row, 0] / ((5 + length) / 6) ** 0.2 + penalty
        assert penalty < -0.01 and length > 1
        np.testing.assert_allclose(found.scores[row, 0], expected, rtol=1e-5)


@pytest.mark.parametrize("argument", FORMS)
def test_every_form_can_be_built_and_is_told_of_both_penalties(argument):
    shapes = shapes_of(argument, 40)
    layers = {"smoke": 3, "paper": 8}.get(argument, 4)
    assert f"layer_{layers - 1}" in shapes["decoder"] and f"layer_{layers}" not in shapes["decoder"]
    search = get_config(argument).search
    assert (search.length_normalization, search.length_alpha) == ("gnmt", 0.2)
    assert (search.coverage_penalty, search.coverage_beta) == ("gnmt", 0.2)


@pytest.mark.parametrize(("fsdp", "tensor"), [(1, 8), (8, 1), (2, 4)])
def test_paper_is_split_over_eight_devices_layer_by_layer(paper, fsdp, tensor):
    sizes = {"data": 1, "fsdp": fsdp, "tensor": tensor}
    rules = get_config("paper").sharding.rules
    shapes = {path_of(path): leaf.shape for path, leaf in jax.tree.leaves_with_path(paper)}
    logical = model_of("paper", PIECES).parameter_axes()
    logical = {path_of(path): tuple(leaf) for path, leaf in jax.tree.leaves_with_path(logical)}
    axes = mesh_axes(shapes, logical, sizes, rules)
    parts = {path: math.prod(sizes[axis] for axis in axes[path] if axis) for path in shapes}
    held = {path: math.prod(shape) // parts[path] for path, shape in shapes.items()}
    assert sum(held.values()) < 0.14 * 280_858_880
    if tensor == 8:
        whole = sum(held[path] for path in shapes if parts[path] == 1)
        assert whole == 2_098_176 + 17 * 4096  # attention and biases
