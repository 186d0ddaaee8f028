"""Models as functions of embedded sources, and what their slots add to contexts, by NumPy."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.analysis.attribution import prediction
from attention_jax.errors import ConfigError
from attention_jax.models.ensemble import Ensemble, name_of
from attention_jax.ops import input_times_gradient, integrated_gradients, occlusion
from attention_jax.types import AttributableModel, Call
from tests.models import tiny_transformer
from tests.models.test_bidirectional import batch, build, started
from tests.parameters import drawn


@functools.cache
def cases():
    """Models of one kind each, with parameters and a batch."""
    one, both = build("encoder_decoder"), started()
    joined = Ensemble((one, one))
    params = {name_of(m): drawn(one, m) for m in range(2)}
    transformer, _ = tiny_transformer.started()
    return {
        "encoder_decoder": (one, drawn(one, 1), batch()),
        "bidirectional": (*both, batch()),
        "ensemble": (joined, params, batch()),
        "transformer": (transformer, drawn(transformer, 1, 1.0), tiny_transformer.batch()),
    }


def along(embedded, position, part):
    """Makes the vectors of one position longer by a part."""
    return {path: each.at[:, position].multiply(1 + part) for path, each in embedded.items()}


@pytest.mark.parametrize("name", ["bidirectional", "ensemble"])
def test_what_is_embedded_may_stand_in_place_of_itself(name):
    model, params, data = cases()[name]
    assert isinstance(model, AttributableModel)
    target = data["target"]

    @jax.jit
    def compute(params, data):
        function, embedded = prediction(model, params, data)
        plain = model.apply(params, data).predictions.log_prob(target)
        return plain, function(embedded), function(along(embedded, 0, 1.0))

    plain, found, moved = compute(params, data)
    np.testing.assert_allclose(found, plain, rtol=1e-5, atol=1e-6)
    assert np.abs(moved - found)[0].max() > 1e-3


@pytest.mark.parametrize("name", ["encoder_decoder", "transformer"])
def test_input_times_gradient_is_a_finite_difference(name):
    model, params, data = cases()[name]
    function, embedded = prediction(model, params, data)
    found = np.asarray(jax.jit(lambda e: input_times_gradient(function, e))(embedded))
    assert found.shape == (*data["target"].shape, data["source"].shape[1])
    function, step = jax.jit(function), 0.02
    for position in range(found.shape[-1]):
        ahead, behind = (
            np.asarray(function(along(embedded, position, each)), np.float64)
            for each in (step, -step)
        )
        error = found[..., position] - (ahead - behind) / (2 * step)
        assert np.abs(error).max() < 0.02 * np.abs(found[..., position]).max()
    padding = ~np.broadcast_to(np.asarray(data["source_mask"])[:, None], found.shape)
    assert padding.any() and not found[padding].any()


def test_integrated_gradients_are_complete_and_occlusion_is_what_is_lost():
    model, params, data = cases()["encoder_decoder"]
    function, embedded = prediction(model, params, data)
    compute = lambda e: (integrated_gradients(function, e), occlusion(function, e))  # noqa: E731
    integrated, lost = jax.jit(compute)(embedded)
    function = jax.jit(function)
    whole = np.asarray(function(embedded), np.float64)
    gained = whole - np.asarray(function(jax.tree.map(jnp.zeros_like, embedded)), np.float64)
    assert np.abs(gained).max() > 0.1
    # Not to more digits: maxout has kinks, across which no rule of a few points is exact.
    np.testing.assert_allclose(integrated.sum(-1), gained, rtol=2e-2, atol=1e-4)
    for position in range(lost.shape[-1]):
        without = np.asarray(function(along(embedded, position, -1.0)), np.float64)
        np.testing.assert_allclose(lost[..., position], whole - without, rtol=1e-3, atol=1e-5)


def test_value_norms_of_one_head_are_weights_times_lengths():
    model, params, data = cases()["encoder_decoder"]
    norms, output, memory = computed(model, params, data)
    weights = np.asarray(output.attention.weights, np.float64)
    lengths = np.linalg.norm(np.asarray(memory.values[:, 0], np.float64), axis=-1)
    np.testing.assert_allclose(norms, weights * lengths[:, None], rtol=1e-4, atol=1e-6)
    both, params = started()
    found = jax.jit(both.value_norms)(params, data)
    np.testing.assert_allclose(found, computed(model, params["forward"], data)[0])


def computed(model, params, data):
    """Value norms, the output that they are of, and the memory, compiled together."""

    @jax.jit
    def compute(params):
        norms, output = model.value_norms(params, data), model.apply(params, data)
        memory = model.start(params, data, 0)[0].memory
        return norms, output.attention, output.outputs, memory

    norms, attention, outputs, memory = compute(params)
    return np.asarray(norms), types.SimpleNamespace(attention=attention, outputs=outputs), memory


def test_value_norms_of_an_ensemble_are_the_mean():
    ensemble, params, data = cases()["ensemble"]
    one = ensemble.members[0]
    compute = lambda p: (ensemble.value_norms(p, data),  # noqa: E731
                         [one.value_norms(p[name_of(m)], data) for m in range(2)])  # fmt: skip
    found, alone = jax.jit(compute)(params)
    np.testing.assert_allclose(found, np.mean(alone, 0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("decoder", "layer", "heads"),
    [({}, 0, {}),
     ({"alignment_layer": 1, "alignment_head": 1}, 1,
      {"num_heads": 4, "num_memory_heads": 2, "use_bias": True})],
)  # fmt: skip
def test_value_norms_of_several_heads_are_of_their_sum(decoder, layer, heads):
    model, params = tiny_transformer.started(decoder=decoder, attention=heads)
    data = tiny_transformer.batch()
    norms, output, memory = computed(model, params, data)
    output = output.outputs[f"decoder/layer_{layer}/attention"]
    weights = np.asarray(output.aux["head_weights"], np.float64)  # B T H S
    values = np.asarray(memory[layer].values[:, 0], np.float64)
    own = params["decoder"][f"layer_{layer}"]["attention"]
    kernel = np.asarray(own["output_kernel"], np.float64)  # H Dv D
    group = len(kernel) // values.shape[1]
    added = np.stack([values[:, h // group] @ kernel[h] for h in range(len(kernel))])  # H B S D
    expected = np.linalg.norm(np.einsum("bths,hbsd->btsd", weights, added), axis=-1)
    np.testing.assert_allclose(norms, expected, rtol=1e-3, atol=1e-5)
    # All slots together are the context, but for what no slot adds.
    context = np.einsum("bths,hbsd->btd", weights, added) + np.asarray(own.get("output_bias", 0.0))
    np.testing.assert_allclose(output.context, context, rtol=1e-3, atol=1e-5)


def test_value_norms_are_refused_where_contexts_are_no_averages_of_one_source():
    decoder = {"name": "merged_transformer"}
    model, params = tiny_transformer.started(decoder=decoder)
    with pytest.raises(ConfigError, match="one source, whose values it averages, .* found Flat"):
        jax.eval_shape(model.value_norms, params, tiny_transformer.batch())


def test_a_part_of_the_model_finds_what_is_embedded_under_its_own_path():
    vectors = jnp.ones((1, 2, 3))
    call = Call(embedded={"member_1/encoder/input": vectors})
    assert not call.within("member_0").embedded
    assert call.within("member_1").within("encoder").embedded == {"input": vectors}
