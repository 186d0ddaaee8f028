"""The encoder-decoder as a whole, with recurrent parts."""

import ast
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import plain, typed
from attention_jax.errors import ConfigError
from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.encoder import sequence
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.models import MODELS, build_model
from attention_jax.models.encoder_decoder import Config
from attention_jax.objectives import build_objective
from attention_jax.types import Call
from tests.parameters import drawn
from tests.sources import in_source

B, S, T, V = 3, 5, 4, 9
BASE = {
    "target_embedding_dim": 4,
    "sources": {
        "source": {
            "input": {"embedding_dim": 4},
            "encoder": {"hidden_dim": 3},
        }
    },
    "attention": {"name": "bahdanau", "attention_dim": 5},
    "decoder": {"name": "conditional_gru", "hidden_dim": 6, "readout_dim": 5},
    "initialization": {"name": "uniform", "scale": 0.5},
}
DECODERS = {
    "bahdanau": {"name": "bahdanau", "hidden_dim": 6, "readout_dim": 5, "variant": "groundhog"},
    "conditional_gru": BASE["decoder"],
    "luong": {"name": "luong", "hidden_dim": 6, "attentional_dim": 5},
}


def merged(base, changes):
    """Returns nested mappings with some entries changed; a `name` starts afresh."""
    result = dict(base)
    for key, value in changes.items():
        is_group = isinstance(value, dict) and "name" not in value
        result[key] = merged(result.get(key, {}), value) if is_group else value
    return result


def build(source_size=V, target_size=V, **changes):
    """Builds the model with other fields, those of its source given as `input` and `encoder`."""
    values = merged(BASE, in_source(changes))
    config = typed(MODELS.config("encoder_decoder"), values, "config.model")
    return build_model(config, source_size, target_size)


def batch():
    rng = np.random.default_rng(0)
    lengths = jnp.asarray([5, 3, 0])[:, None]
    return {
        "source": jnp.asarray(rng.integers(4, V, size=(B, S)), jnp.int32),
        "source_mask": jnp.arange(S) < lengths,
        "target": jnp.asarray(rng.integers(4, V, size=(B, T)), jnp.int32),
        "target_mask": jnp.ones((B, T), bool),
    }


@functools.cache
def started(decoder="conditional_gru"):
    """A model with its parameters and its logits for the batch."""
    model = build(decoder=DECODERS[decoder])
    params = drawn(model, 1)
    return model, params, jax.jit(model.apply)(params, batch())


def test_parameters_are_drawn_without_running_the_model(monkeypatch):
    """Which would be traced for nothing whenever a run starts or is loaded."""
    model = build()
    expected = jax.jit(model.init)(jax.random.key(0))
    for part in (model.encoder, model.decoder):
        for name in ("encode", "start", "run"):
            monkeypatch.setattr(type(part), name, None, raising=False)
    found = jax.jit(model.init)(jax.random.key(0))
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(params, state, gates):
    r, z, n = np.split(gates, 3)
    recurrent = np.split(state @ params["recurrent"], 3)
    r, z = sigmoid(r + recurrent[0]), sigmoid(z + recurrent[1])
    return z * state + (1 - z) * np.tanh(n + r * (recurrent[2] + params["candidate_bias"]))


def forward(params, source, target):
    """One sentence through the model, as a person would write it down."""
    embedded = params["source_embedding"][source]
    readings = []
    for reading in ("forward", "backward"):
        weights = params["encoder"][f"layer_0_{reading}"]
        state, states = np.zeros(3), []
        for word in embedded if reading == "forward" else embedded[::-1]:
            state = gru(weights, state, word @ weights["input"] + weights["bias"])
            states.append(state)
        readings.append(states if reading == "forward" else states[::-1])
    annotations = np.concatenate(readings, -1)
    decoder = params["decoder"]
    bridge, attention = decoder["bridge"]["layer_0_hidden"], decoder["attention"]
    first, second, readout = decoder["first"], decoder["second"], decoder["readout"]
    state = np.tanh(annotations.mean(0) @ bridge["kernel"] + bridge["bias"])
    logits, alignment = [], []
    for previous in [1, *target[:-1]]:
        word = params["target_embedding"][previous]
        half = gru(first, state, word @ first["input"] + first["bias"])
        hidden = np.tanh(half @ attention["query_kernel"] + annotations @ attention["key_kernel"])
        weights = np.exp(hidden @ attention["vector"])
        weights /= weights.sum()
        context = weights @ annotations
        state = gru(second, half, context @ second["input"] + second["bias"])
        features = np.tanh(
            state @ readout["state"]
            + word @ readout["embedding"]
            + context @ readout["context"]
            + readout["bias"]
        )
        logits.append(params["output"] @ features + params["output_bias"])
        alignment.append(weights)
    return np.asarray(logits), np.asarray(alignment)


def test_apply_equals_a_forward_pass_in_numpy():
    _, params, output = started()
    params = jax.tree.map(lambda leaf: np.asarray(leaf, float), params)
    for row, length in enumerate((5, 3)):
        source, target = (np.asarray(batch()[side])[row] for side in ("source", "target"))
        logits, weights = forward(params, source[:length], target)
        np.testing.assert_allclose(output.predictions.logits[row], logits, rtol=1e-4, atol=1e-5)
        found = output.attention.weights[row]
        np.testing.assert_allclose(found[:, :length], weights, rtol=1e-4, atol=1e-6)
        assert np.all(found[:, length:] == 0)


def test_row_without_source_is_finite():
    output = started()[2]
    assert np.isfinite(output.predictions.logits).all() and np.all(output.attention.weights[2] == 0)


@pytest.mark.parametrize("decoder", DECODERS)
def test_step_equals_apply(decoder):
    """Two hypotheses a row, fed with the same target: each step gives what `apply` gave."""
    model, params, output = started(decoder)
    sources = {name: batch()[name] for name in ("source", "source_mask")}
    memory, state = jax.jit(model.start, static_argnums=2)(params, sources, T)
    leading = {leaf.shape[:2] for leaf in jax.tree.leaves((memory, state))}
    assert leading == {(B, 1)}
    state = jax.tree.map(lambda leaf: jnp.repeat(leaf, 2, 1), state)
    step, target = jax.jit(model.step), batch()["target"]
    previous = jnp.ones((B,), jnp.int32)
    for t in range(T):
        predictions, weights, state = step(params, memory, state, jnp.stack([previous] * 2, 1))
        logits = predictions.logits
        assert logits.dtype == weights.dtype == jnp.float32
        for beam in (0, 1):
            for found, expected in (
                (logits, output.predictions.logits),
                (weights, output.attention.weights),
            ):
                np.testing.assert_allclose(found[:, beam], expected[:, t], rtol=1e-4, atol=1e-5)
        previous = target[:, t]


def test_parameters_are_built_without_data():
    model, params, _ = started()
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    assert jax.tree.structure(shapes) == jax.tree.structure(params)
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(shapes))
    assert shapes["source_embedding"].shape == (V, 4) and shapes["output"].shape == (V, 5)


@pytest.mark.parametrize("conditioning", ["every_step", "initial_state"])
@pytest.mark.parametrize("decoder", DECODERS)
def test_no_parameter_is_empty(decoder, conditioning):
    """Checkpoints cannot hold arrays without elements."""
    model = build(
        attention={"name": "none", "conditioning": conditioning},
        decoder={**DECODERS[decoder], "bridge": "last"},
    )
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    assert all(leaf.size for leaf in jax.tree.leaves(shapes))
    assert "attention" not in shapes["decoder"] and "alignment" not in model.provides
    assert "alignment" in started()[0].provides


CHANGES = [
    {"input": {"embedding_dim": 5}},
    {"target_embedding_dim": 5},
    {"encoder": {"cell": "gru_reset_before"}},
    {"encoder": {"hidden_dim": 4}},
    {"encoder": {"num_layers": 2}},
    {"encoder": {"direction": "forward"}},
    {"encoder": {"num_layers": 2, "bidirectional_layers": 1}},
    {"encoder": {"num_layers": 2, "residual": True}},
    {"encoder": {"num_layers": 2, "dropout": 0.5}},
    {"encoder": {"recurrent_dropout": 0.5}},
    {"attention": {"name": "luong_general"}},
    {"decoder": DECODERS["luong"]},
    {"embedding_dropout": 0.5},
    {"output_dropout": 0.5},
    {"scheduled_sampling": 0.9},
    {"tie_embeddings": "target"},
    {"tie_embeddings": "all"},
    {"initialization": {"name": "uniform", "scale": 0.4}},
    {"initialization": {"name": "default"}},
    {"initialization": {"name": "default", "embedding_scale": 0.3}},
    {"encoder": {"cell": "lstm"}, "initialization": {"forget_bias": 1.0}},
    {"predictors": {"fertility": {"hidden_dim": 3}}},
    {"aligner": {"name": "module"}},
    {"aligner": {"name": "full_context"}},
    {"dtype": "bfloat16"},
]


def test_every_field_is_changed():
    """Fields of attention and decoder are changed one by one beside their own tests."""
    source = Config().sources["source"]
    for group, cls in ((None, Config), ("input", type(source.input)),
                       ("encoder", type(source.encoder)),
                       ("initialization", type(Config().initialization))):  # fmt: skip
        changed = {
            field
            for change in CHANGES
            for field in (in_source(change) if group is None else change.get(group, {}))
        }
        # The readout has no other choice yet.
        assert changed >= {field.name for field in dataclasses.fields(cls)} - {"name", "readout"}


def training_logits(model, params):
    apply = functools.partial(model.apply, call=Call(True, jax.random.key(0)))
    return jax.jit(apply)(params, batch()).predictions.logits


@functools.cache
def before_change(changes):
    """Returns a model as it was before its last change, its parameters and training logits."""
    model = build(**ast.literal_eval(changes))
    params = drawn(model, 1)
    return model, params, training_logits(model, params)


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_every_field_changes_something(change):
    """The last field changed means other parameters, other initial values, or other logits."""
    group, value = list(change.items())[-1]
    if isinstance(value, dict) and len(value) > 1:
        before = {group: dict(list(value.items())[:-1])}
    else:
        before = {key: change[key] for key in list(change)[:-1]}
    models = before_change(repr(before))[0], build(**change)
    shapes = [jax.eval_shape(model.init, jax.random.key(0)) for model in models]
    if jax.tree.map(lambda x: x.shape, shapes[0]) != jax.tree.map(lambda x: x.shape, shapes[1]):
        return
    params = before_change(repr(before))[1]
    if group == "initialization":
        found = [jax.jit(model.init)(jax.random.key(1)) for model in models]
    else:
        found = before_change(repr(before))[2], training_logits(models[1], params)
    pairs = zip(jax.tree.leaves(found[0]), jax.tree.leaves(found[1]), strict=True)
    assert not all(np.allclose(one, other, atol=1e-5, rtol=0) for one, other in pairs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoder": {"hiden_dim": 3}}, "sources.source.encoder.hiden_dim: no such field; did you"),
        ({"attention": {"name": "luong"}}, "config.model.attention.name: expected one of bahdanau"),
        ({"decoder": {"name": "loung"}}, r"found 'loung' \(did you mean 'luong'\?\)"),
        (
            {"attention": {"name": "luong_dot"}, "encoder": {"hidden_dim": 4}},
            "config.model.attention: .* one depth for luong_dot, found 6 and 8",
        ),
        (
            {"attention": {"name": "bahdanau", "num_heads": 4}},
            "config.model.attention.num_heads: expected a divisor of the query depth 6, found 4",
        ),
        (
            {"decoder": {"name": "bahdanau"}, "encoder": {"direction": "forward"}},
            "config.model.decoder.bridge: expected a top encoder layer that reads backward",
        ),
        (
            {"attention": {"name": "none", "conditioning": "initial_state"},
             "decoder": {"name": "luong", "bridge": "zero"}},
            "config.model.decoder.bridge: expected one that hands over .* found 'zero'",
        ),
        (
            {"attention": {"name": "none", "conditioning": "initial_state"},
             "decoder": {"name": "gnmt", "variant": "gnmt_v2"}},
            "config.model.decoder.variant: expected 'paper' where .* found 'gnmt_v2'",
        ),
        ({"initialization": {"forget_bias": 1.0}}, "initialization.forget_bias: .* with an lstm"),
        ({"tie_embeddings": "all", "input": {"embedding_dim": 5}}, "embeddings of one depth for"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_one_clear_line(change, message):
    with pytest.raises(ConfigError, match=message) as caught:
        build(**change)
    assert "\n" not in str(caught.value)


def test_tying_all_needs_a_joint_vocabulary():
    with pytest.raises(ConfigError, match="joint vocabulary for 'all', found 9 source and 7"):
        build(9, 7, tie_embeddings="all")


@pytest.mark.parametrize("features", [4, 5])
@pytest.mark.parametrize("tying", ["target", "all"])
def test_tied_embeddings_are_one_table(tying, features):
    model = build(tie_embeddings=tying, decoder={"readout_dim": features})
    params = drawn(model)
    assert "output" not in params and ("source_embedding" in params) == (tying == "target")
    assert ("output_projection" in params) == (features != 4)
    unseen = 4 + int(np.argmin(np.bincount(np.ravel(batch()["target"]), minlength=V)[4:]))
    moved = {**params, "target_embedding": params["target_embedding"].at[unseen].add(1.0)}
    apply = jax.jit(model.apply)
    one = {**batch(), "target": jnp.full((B, T), 4 if unseen != 4 else 5, jnp.int32)}
    difference = apply(moved, one).predictions.logits - apply(params, one).predictions.logits
    assert np.abs(difference[..., unseen]).min() > 0


def test_bfloat16_keeps_parameters_and_logits_in_float32():
    model, (_, params, expected) = build(dtype="bfloat16"), started()
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(shapes))
    output = jax.jit(model.apply)(params, batch())
    assert output.predictions.logits.dtype == output.attention.weights.dtype == jnp.float32
    assert output.attention.context.dtype == jnp.bfloat16
    assert np.abs(output.predictions.logits - expected.predictions.logits).max() < 0.1
    gradients = jax.eval_shape(
        jax.grad(lambda params: model.apply(params, batch()).predictions.logits.sum()), params
    )
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(gradients))
    _, state = jax.eval_shape(functools.partial(model.start, max_length=T), params, batch())
    assert state.decoder["carry"]["hidden"].dtype == jnp.bfloat16


def test_bahdanau2015_starts_uniform_and_moves_the_vector_first():
    """With v_a = 0 all scores are 0: uniform weights, and no gradient for W_a and U_a yet."""
    model = build(
        initialization={"name": "bahdanau2015", "scale": 0.1}, decoder={"name": "bahdanau"}
    )
    params = jax.jit(model.init)(jax.random.key(0))
    one = jax.tree.map(lambda leaf: leaf[:2], batch())

    def loss(params):
        output = model.apply(params, one)
        scores = jax.nn.log_softmax(output.predictions.logits)
        return -jnp.take_along_axis(scores, one["target"][..., None], -1).sum(), output

    gradients, output = jax.jit(jax.grad(loss, has_aux=True))(params)
    mask = np.asarray(one["source_mask"], np.float32)[:, None]
    uniform = np.broadcast_to(mask / mask.sum(-1, keepdims=True), output.attention.weights.shape)
    np.testing.assert_array_equal(output.attention.weights, uniform)
    attention = gradients["decoder"]["attention"]
    assert not attention["query_kernel"].any() and not attention["key_kernel"].any()
    assert np.abs(attention["vector"]).max() > 0


def test_embedding_scale_is_of_what_reads_words():
    one, other = (
        jax.jit(build(initialization={"name": "default", "embedding_scale": scale}).init)(
            jax.random.key(2)
        )
        for scale in (0.1, 0.5)
    )
    for table in ("source_embedding", "target_embedding"):
        assert np.std(one[table]) > 0
        one[table] = 5 * one[table]
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-6), one, other)


def test_fertility_is_predicted_from_the_annotations():
    model, (_, params, plain) = build(predictors={"fertility": {"hidden_dim": 3}}), started()
    own = drawn(model, 2)
    assert set(own) - set(params) == {"fertility"}
    own = {**params, "fertility": own["fertility"]}
    output = jax.jit(model.apply)(own, batch())
    np.testing.assert_allclose(
        output.predictions.logits, plain.predictions.logits, rtol=1e-6, atol=1e-6
    )
    assert set(output.outputs) - set(plain.outputs) == {"fertility"}
    objective = build_objective({"nll": {}, "global_fertility": {}})
    objective.check(model)

    def loss(params):
        return objective(model.apply(params, batch()), batch())[0]

    gradients = jax.jit(jax.grad(loss))(own)
    for path, leaf in jax.tree.leaves_with_path(gradients):
        assert np.abs(leaf).max() > 1e-8, jax.tree_util.keystr(path)


@pytest.mark.parametrize("name", ["local_m", "local_p"])
def test_local_attention_costs_the_same_however_long_the_source(name):
    def flops(config, size):
        mechanism = build_mechanism(config, 32, 32, 32)
        shape = jax.ShapeDtypeStruct
        params = {
            key: shape(parameter.shape, jnp.float32)
            for key, parameter in mechanism.parameters.items()
        }
        source = sequence(shape((1, size, 32), jnp.float32), shape((1, size), bool))
        memory = jax.eval_shape(mechanism.make_memory, params, source)
        attend = jax.jit(lambda *arguments: mechanism.attend(*arguments)[0].context)
        query = shape((1, 1, 32), jnp.float32)
        return attend.lower(params, query, memory).compile().cost_analysis()["flops"]

    local = MECHANISMS.config(name)(half_width=3)
    everywhere = local.score
    short, long = flops(local, 64), flops(local, 1024)
    assert long - short < 3 * (1024 - 64)  # nothing but the mask is touched, not the depth
    assert flops(everywhere, 1024) - flops(everywhere, 64) > 32 * (1024 - 64)


def test_config_survives_a_round_trip():
    assert MODELS.names() == [
        "bidirectional", "classifier", "encoder_decoder", "language_model", "rationalizer",
        "recurrent_language_model",
    ]  # fmt: skip
    config = started()[0].config
    assert typed(Config, plain(config)) == config
