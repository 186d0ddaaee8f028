"""Any encoder with any decoder: it learns, it decodes, and padding changes nothing."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.layers.decoder import DECODERS
from attention_jax.layers.encoder import ENCODERS
from attention_jax.layers.parameters import Parameter
from attention_jax.models import MODELS, build_model
from attention_jax.objectives import build_objective
from attention_jax.search import search
from attention_jax.search.config import SearchConfig
from attention_jax.types import Call, SpecialIds
from tests.parameters import drawn
from tests.quick import quick_jit
from tests.sources import in_source
from tests.sums import places_of, short_sums

B, S, V, D = 2, 4, 7, 8
BEAM = SearchConfig(method="beam", beam_size=2, max_length_factor=1.0, max_length_constant=0)


def small(config):
    """The fields of a part, with all sizes small; no encoder need have a final state."""
    fields = {"name": config().name}
    for field in dataclasses.fields(config):
        if isinstance(field.default, int) and field.default > D and field.name != "max_positions":
            fields[field.name] = D
        elif field.name == "bridge":
            fields[field.name] = "mean"
    return fields


def build(encoder, decoder, /, **fields):
    attention = {"name": "bahdanau", "attention_dim": D}
    if decoder.endswith("transformer"):  # whose contexts are as deep as its embeddings
        attention = {"name": "multi_head", "num_heads": 2, "head_dim": 4, "score": attention}
    if decoder == "transducer":
        fields = {"readout": {"name": "marginal", "hidden_dim": D}, **fields}
    values = {
        "name": "encoder_decoder",
        "target_embedding_dim": D,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": D},
                "encoder": small(ENCODERS.config(encoder)),
            }
        },
        "attention": attention,
        "decoder": small(DECODERS.config(decoder)),
        **in_source(fields),
    }
    return build_model(typed(MODELS.config("encoder_decoder"), values, "config.model"), V, V)


def with_readout(name, decoder="luong"):
    """A model with a readout, and with what this cannot do without."""
    fields = {"readout": {"name": name}}
    if name == "marginal":
        decoder = "transducer"
    if name == "copynet" and decoder == "transformer":
        fields["readout"]["selective_read"] = False
    if name == "convolutional_copy":
        sizes = {"hidden_dim": 3, "channels": 4, "hidden_width": 2, "feature_width": 3}
        fields["attention"] = {"name": "convolutional", **sizes}
        if decoder == "transformer":  # which attends to what is written by another one
            own = {"name": "multi_head", "num_heads": 2, "head_dim": 4}
            fields["decoder"] = {**small(DECODERS.config(decoder)), "self_attention": own}
    return build("concatenation", decoder, **fields)


def batch():
    tokens = np.random.default_rng(0).integers(SpecialIds.COUNT, V, size=(B, S))
    mask = np.arange(S) < np.asarray([S, 2])[:, None]
    tokens = jnp.asarray(np.where(mask, tokens, SpecialIds.PAD), jnp.int32)
    mask = jnp.asarray(mask)
    return {"source": tokens, "source_mask": mask, "target": tokens, "target_mask": mask}


def with_nan_at_padding(params):
    """The embedding of padding is read wherever the source has none."""
    table = params["source_embedding"]
    return {**params, "source_embedding": table.at[SpecialIds.PAD].set(jnp.nan)}


PAIRS = [(encoder, decoder) for encoder in ENCODERS.names() for decoder in DECODERS.names()]
# Each encoder and each decoder computes with one of the others; all other pairs are traced.
COMPUTED = [
    pair for pair in PAIRS if pair[0] == "recurrent" or pair[1] == "conditional_gru"
]  # fmt: skip
COMPUTED.append(("self_attention", "transformer"))


@pytest.mark.parametrize(("encoder", "decoder"), [pair for pair in PAIRS if pair not in COMPUTED])
def test_any_encoder_fits_any_decoder(encoder, decoder):
    model = build(encoder, decoder)
    params = jax.eval_shape(model.init, jax.random.key(0))
    output = jax.eval_shape(model.apply, params, batch())
    slots = output.outputs["slots"].mask.shape[1]
    assert slots == S or not model.encoder.keeps_positions
    assert output.predictions.size == V and output.attention.weights.shape == (B, S, slots)
    start = functools.partial(model.start, max_length=S)
    memory, state = jax.eval_shape(start, params, batch())
    tokens = jax.ShapeDtypeStruct((B, 1), jnp.int32)
    predictions, weights, after = jax.eval_shape(model.step, params, memory, state, tokens)
    assert predictions.size == V and weights.shape == (B, 1, slots)
    assert jax.tree.map(jnp.shape, after) == jax.tree.map(jnp.shape, state)


@pytest.mark.parametrize(("encoder", "decoder"), COMPUTED)
def test_gradients_of_bfloat16_are_summed_in_float32(encoder, decoder):
    model, size, length = build(encoder, decoder, dtype="bfloat16"), 11, 13
    tokens = jax.ShapeDtypeStruct((size, length), jnp.int32)
    mask = jax.ShapeDtypeStruct((size, length), bool)
    batch = {"source": tokens, "source_mask": mask, "target": tokens, "target_mask": mask}

    def total(params, batch):
        return model.apply(params, batch).predictions.scores()[0].sum()

    gradient = jax.grad(total)
    params = jax.eval_shape(model.init, jax.random.key(0))
    assert short_sums(gradient, params, batch, sizes=(size, length)) == []


@pytest.mark.parametrize(("encoder", "decoder"), COMPUTED)
def test_any_encoder_serves_any_decoder(encoder, decoder):
    model, objective = build(encoder, decoder), build_objective({"nll": {}})

    @quick_jit
    def update_and_decode(params):
        def loss(params):
            return objective(model.apply(params, batch()), batch())[0]

        value, gradient = jax.value_and_grad(loss)(params)
        trained = jax.tree.map(lambda leaf, slope: leaf - 0.1 * slope, params, gradient)
        memory, state = model.start(params, batch(), S)
        step, lengths = functools.partial(model.step, params, memory), batch()["source_mask"].sum(1)
        found = search(step, state, BEAM, lengths, S)
        return trained, (value, found.log_probs, found.tokens)

    params = drawn(model, 1)
    trained, first = update_and_decode(params)
    hidden = update_and_decode(with_nan_at_padding(params))[1]
    assert update_and_decode(trained)[1][0] < first[0]
    assert np.isfinite(first[1]).all() and first[2].shape[:2] == (B, 1)
    for found, expected in zip(hidden, first, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def without_attention(**fields):
    """A Transformer whose source is one vector."""
    return build(
        "recurrent", "transformer",
        input={"embedding_dim": D},
        encoder={"name": "recurrent", "hidden_dim": D // 2},
        attention={"name": "none"},
        decoder={
            "name": "transformer", "num_layers": 1, "feed_forward_dim": D,
            "self_attention": {"name": "scaled_dot"}, **fields,
        },
    )  # fmt: skip


def test_a_transformer_without_attention_reads_the_final_states():
    """What stands for the source is the encoder's summary, whatever the mean annotation is."""
    model = without_attention()
    params = drawn(model)
    memory, _ = quick_jit(model.start, static_argnums=2)(params, batch(), S)
    (layer,) = memory.memory
    sources, _ = model.module.apply({"params": params}, batch(), method="_encode")
    encoded = sources["source"]
    np.testing.assert_allclose(layer.values[:, 0, 0], encoded.summary, rtol=1e-6)
    assert not np.allclose(encoded.summary, encoded.annotations.mean(1), atol=1e-3)


@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_a_transformer_without_attention_has_no_idle_parameters(norm_order):
    """What no query is made of is not normalised for it."""
    model = without_attention(norm_order=norm_order)

    @quick_jit
    def gradient(params):
        loss = build_objective({"nll": {}})
        return jax.grad(lambda params: loss(model.apply(params, batch()), batch())[0])(params)

    for path, leaf in jax.tree.leaves_with_path(gradient(drawn(model))):
        assert np.abs(leaf).max() > 1e-6, jax.tree_util.keystr(path)


@pytest.mark.parametrize(("encoder", "decoder"), COMPUTED)
def test_with_x64_everything_is_float64(encoder, decoder):
    """Parameters, the loss and its gradients, and a search, without anything shorter."""
    model, given = build(encoder, decoder), batch()
    objective = build_objective({"nll": {"label_smoothing": 0.1}, "coverage_penalty": {}})
    lengths = given["source_mask"].sum(-1)

    def loss(params, rng):
        return objective(model.apply(params, given, Call(True, rng)), given)[0]

    def translate(params):
        memory, state = model.start(params, given, S)
        return search(functools.partial(model.step, params, memory), state, BEAM, lengths, S)

    with jax.enable_x64(True):
        params = jax.eval_shape(model.init, jax.random.key(0))
        assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float64")}
        assert places_of(jnp.float32, jax.value_and_grad(loss), params, jax.random.key(0)) == []
        assert places_of(jnp.float32, translate, params) == []


def test_gradients_with_x64_have_the_digits_of_float64():
    """Against differences of the loss, whose error is some millionths of that in float32."""
    model, given = build("recurrent", "conditional_gru"), batch()
    objective = build_objective({"nll": {}})
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        params, direction = (
            jax.tree.map(lambda leaf: jnp.asarray(0.4 * rng.normal(size=leaf.shape)), shapes)
            for _ in range(2)
        )
        loss = quick_jit(lambda params: objective(model.apply(params, given), given)[0])
        ahead, behind = (
            loss(jax.tree.map(lambda at, to, by=by: at + by * to, params, direction))
            for by in (1e-5, -1e-5)
        )
        gradient = quick_jit(jax.grad(loss.__wrapped__))(params)
        slope = sum(
            (one * to).sum()
            for one, to in zip(
                jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True
            )
        )  # fmt: skip
        np.testing.assert_allclose(slope, (ahead - behind) / 2e-5, rtol=1e-8)


@pytest.mark.parametrize("name", [name for name in DECODERS.names() if "trans" not in name])
def test_no_source_context_is_concatenated_twice(name):
    """Each kernel that reads the context has a row for each of its values, and no more."""
    model = build("recurrent", name)
    depth = model.decoder.mechanism.context_dim
    is_parameter = lambda leaf: isinstance(leaf, Parameter)  # noqa: E731
    sizes = [
        size
        for parameter in jax.tree.leaves(model.decoder.parameters, is_leaf=is_parameter)
        for axis, size in zip(parameter.axes, parameter.shape, strict=True)
        if axis == "context"
    ]
    assert sizes and set(sizes) == {depth} == {model.encoder.output_dim}


@pytest.mark.parametrize("length", [1, S])
@pytest.mark.parametrize("name", DECODERS.names())
def test_a_mask_of_a_call_silences_attention(name, length):
    """Of a single target token, too, for which a decoder may take the way of a search."""
    model, path = build("concatenation", name), "decoder/attention"
    if name.endswith("transformer"):
        path = "decoder/layer_0/attention"
        model = build("concatenation", name, decoder={"name": name, "num_layers": 1})
    given = {side: array[:, :length] for side, array in batch().items()}
    call = Call(masks={path: np.zeros((1, 1, 1, 1), bool)})
    output = quick_jit(model.apply)(drawn(model, 1), given, call)
    assert not output.attention.weights.any()
