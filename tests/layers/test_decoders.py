"""Decoders: one token at a time equals all at once, and the papers' equations in NumPy."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.decoder import DECODERS, DecoderConfig, DecoderSizes
from attention_jax.layers.encoders.recurrent import Config as EncoderConfig
from attention_jax.layers.encoders.recurrent import build as build_encoder
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.parameters import Initialization, draw
from attention_jax.layers.state_combination import STATE_COMBINATIONS
from attention_jax.types import Call

B, T, S, E, D = 2, 3, 4, 4, 6
LENGTHS = (4, 2)
BAHDANAU = MECHANISMS.config("bahdanau")(attention_dim=5)
LOCAL = MECHANISMS.config("local_m")(
    half_width=1, score=MECHANISMS.config("luong_general")()
)
TWO_HEADS = MECHANISMS.config("luong_general")(num_heads=2)
NONE = MECHANISMS.config("none")()
FIXED = MECHANISMS.config("none")(conditioning="initial_state")
RECURRENT = [name for name in DECODERS.names() if hasattr(DECODERS.config(name), "bridge")]
READING = [name for name in RECURRENT if name != "transducer"]  # what they have attended to


def small(name, **fields):
    """A small config; `copy` needs an encoder like the decoder, hence its cell and depth."""
    config = DECODERS.config(name)
    sizes = {"hidden_dim": D, "readout_dim": 5, "attentional_dim": 5}
    names = {field.name for field in dataclasses.fields(config)}
    return config(**{**{key: value for key, value in sizes.items() if key in names}, **fields})


def alternatives(name):
    """Yields (field, value) for every other choice, switch, second layer and dropout."""
    config = small(name)
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name in ("name", "alignment_head"):  # the latter has a test of its own
            continue
        if "choices" in field.metadata:
            for choice in field.metadata["choices"]:
                # Some bridges start from several sources' states, see test_bridges.py.
                if choice not in (value, *STATE_COMBINATIONS):
                    yield {field.name: choice}
        elif isinstance(value, bool):
            yield {field.name: not value}
        elif isinstance(value, int):
            yield {field.name: value + 1}
        elif isinstance(value, float):
            yield {field.name: 0.5}
        else:
            raise NotImplementedError(f"{field.name}: say what else it may be")


def with_layers(name, fields):
    """Adds the layers that some fields ask for: a second one, and in GNMT a third."""
    needs_layers = fields.get("residual") or fields.get("dropout")
    layers = {"num_layers": getattr(small(name), "num_layers", 1) + 1} if needs_layers else {}
    return small(name, **layers, **fields)


@functools.cache
def encoded_by(encoder):
    """Returns a source of which the second row is padded."""
    initialization, rng = Initialization("uniform", scale=0.7), np.random.default_rng(0)
    params = draw(encoder.parameters, jax.random.key(5), initialization)
    embedded = jnp.asarray(rng.normal(size=(B, S, 3)), jnp.float32)
    mask = jnp.arange(S) < jnp.asarray(LENGTHS)[:, None]
    return jax.jit(encoder.encode)(params, embedded, mask)


class Case:
    """A decoder with parameters, a source, targets, and what has been compiled for them."""

    def __init__(self, config, mechanism=BAHDANAU):
        cell, depth, layers = "gru", config.hidden_dim // 2, 1
        if config.bridge.startswith("copy"):
            cell, layers = config.cell, getattr(config, "num_layers", 1)
        if config.bridge == "copy_backward":
            depth = config.hidden_dim
        reading = EncoderConfig("recurrent", cell, depth, layers)
        self.encoder = build_encoder(reading, 3)
        sizes = DecoderSizes(E, {"source": self.encoder})
        self.decoder = DECODERS.find(config.name).build(config, sizes, mechanism)
        self.encoded = encoded_by(self.encoder)
        rng, initialization = np.random.default_rng(1), Initialization("uniform", scale=0.7)
        self.embedded = jnp.asarray(rng.normal(size=(B, T, E)), jnp.float32)
        self.params = draw(self.decoder.parameters, jax.random.key(6), initialization)

    def start(self, params, encoded):
        return self.decoder.start(params, {"source": encoded}, T)

    def run(self, params, encoded, embedded, **options):
        memory, state = self.start(params, encoded)
        features, attention, *_ = self.decoder.run(params, memory, state, embedded, **options)
        return features, attention.weights

    def stepwise(self, params, encoded, embedded):
        memory, state = self.start(params, encoded)

        def step(state, embedded):
            features, attended, state = self.decoder.step(params, memory, state, embedded)
            weights = attended.weights
            return state, (features, weights)

        _, outputs = jax.lax.scan(step, state, jnp.swapaxes(embedded, 0, 1))
        return jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), outputs)

    @functools.cached_property
    def training_features(self):
        """Features with dropout on."""
        run = functools.partial(self.run, call=Call(True, jax.random.key(0)))
        return jax.jit(run)(self.params, self.encoded, self.embedded)[0]

    @functools.cached_property
    def results(self):
        """Compiled together: (run, stepwise, gradients of what the run returns)."""

        def loss(params, encoded, embedded):
            found = self.run(params, encoded, embedded)
            return sum((part * jnp.cos(jnp.arange(part.size)).reshape(part.shape)).sum()
                       for part in found), found

        def everything(*arguments):
            gradients, run = jax.grad(loss, has_aux=True)(*arguments)
            return run, self.stepwise(*arguments), gradients

        return jax.jit(everything)(self.params, self.encoded, self.embedded)


@functools.cache
def base(name, layers=None):
    return Case(small(name) if layers is None else small(name, num_layers=layers))


CASES = {}
for _name in RECURRENT:
    CASES[_name] = functools.partial(base, _name)
    for _fields in alternatives(_name):
        _label, _value = next(iter(_fields.items()))
        is_order = isinstance(_value, str | bool) and _label != "bridge"
        if is_order or _label == "num_layers":
            CASES[f"{_name}-{_label}-{_value}"] = functools.partial(
                lambda name, fields: Case(with_layers(name, fields)), _name, _fields
            )
    CASES[f"{_name}-local"] = functools.partial(lambda name: Case(small(name), LOCAL), _name)
    CASES[f"{_name}-none"] = functools.partial(lambda name: Case(small(name), NONE), _name)
    CASES[f"{_name}-fixed"] = functools.partial(
        lambda name: Case(small(name, bridge="last"), FIXED), _name
    )
CASES["luong-no-feed-local"] = lambda: Case(small("luong", input_feeding=False), LOCAL)
CASES["luong-two-heads"] = lambda: Case(small("luong"), TWO_HEADS)


@pytest.mark.parametrize("build", CASES.values(), ids=CASES)
def test_one_token_at_a_time_equals_all_at_once_and_every_parameter_learns(build):
    case = build()
    run, stepwise, gradients = case.results
    assert run[0].shape == (B, T, case.decoder.feature_dim)
    for found, expected in zip(stepwise, run, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    for path, gradient in jax.tree.leaves_with_path(gradients):
        assert gradient.size == 0 or np.abs(gradient).max() > 1e-7, jax.tree_util.keystr(path)


CHANGES = [
    pytest.param(name, fields, id=f"{name}-{'-'.join(map(str, *fields.items()))}")
    for name in RECURRENT
    for fields in alternatives(name)
]


@pytest.mark.parametrize(("name", "fields"), CHANGES)
def test_every_field_changes_something(name, fields):
    """Another value means other parameters, or other features of the same parameters."""
    other = Case(with_layers(name, fields))
    layers = getattr(other.decoder.config, "num_layers", None)
    one = base(name, None if "num_layers" in fields else layers)
    if one.decoder.parameters == other.decoder.parameters:
        other.params = one.params
        assert not np.allclose(one.training_features, other.training_features, atol=1e-5)


@pytest.mark.parametrize("name", RECURRENT)
def test_one_head_may_stand_for_all(name):
    """In what is told of the attention, not in what is made of it."""
    mean, one = (Case(small(name, alignment_head=head), TWO_HEADS) for head in (None, 1))

    @jax.jit
    def outputs(params, encoded, embedded):
        of_mean = mean.decoder.run(params, *mean.start(params, encoded), embedded)
        of_one = one.decoder.run(params, *one.start(params, encoded), embedded)
        return of_mean[:2], of_one[:2], one.stepwise(params, encoded, embedded)

    (features, attention), (same, found), (_, stepwise) = outputs(
        mean.params, mean.encoded, mean.embedded
    )
    np.testing.assert_array_equal(same, features)
    heads = attention.aux["head_weights"]
    assert heads.shape == (B, T, 2, S)
    np.testing.assert_allclose(attention.weights, heads.mean(2), rtol=1e-6)
    assert not np.allclose(heads[:, :, 0], heads[:, :, 1], atol=1e-2)
    np.testing.assert_array_equal(found.weights, heads[:, :, 1])
    np.testing.assert_allclose(stepwise, heads[:, :, 1], rtol=1e-5, atol=1e-6)


def test_every_decoder_declares_the_head_that_stands_for_all_in_one_way():
    assert all(issubclass(DECODERS.config(name), DecoderConfig) for name in DECODERS.names())


@pytest.mark.parametrize(
    ("mechanism", "head", "message"),
    [(BAHDANAU, 0, "expected several heads"), (TWO_HEADS, 2, "expected less than .* 2 heads")],
)
def test_a_head_that_is_not_there_is_refused(mechanism, head, message):
    with pytest.raises(ValueError, match=f"decoder.alignment_head: {message}"):
        Case(small("luong", alignment_head=head), mechanism)


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_dropout_is_the_same_at_all_steps(name):
    """The recurrence of equal inputs is then the recurrence of one step function."""
    case = Case(small(name, recurrent_dropout=0.5))
    factors = case.decoder.dropout(Call(True, jax.random.key(0)), B, jnp.float32)
    leaves = jax.tree.leaves(factors)
    assert leaves and all(leaf.shape == (B, D) for leaf in leaves)
    kept = case.decoder.dropout(Call(False, jax.random.key(0)), B, jnp.float32)
    assert jax.tree.leaves(kept) == []


@pytest.mark.parametrize("name", RECURRENT)
def test_beams_decode_as_if_alone(name):
    """State with axes `B K` over a memory with axes `B 1`, at the second token."""
    case = base(name)
    memory, state = case.start(case.params, case.encoded)
    step = jax.jit(case.decoder.step)
    _, _, state = step(case.params, memory, state, case.embedded[:, 0])

    def asked(*arguments):
        features, attended, _ = step(case.params, *arguments)
        return features, attended.weights

    alone = [asked(memory, state, case.embedded[:, t]) for t in (1, 2)]
    shared = jax.tree.map(lambda leaf: leaf[:, None], memory)
    beams = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf], 1), state)
    found = asked(shared, beams, case.embedded[:, 1:])
    for together, *separate in zip(found, *alone, strict=True):
        np.testing.assert_allclose(together, np.stack(separate, 1), rtol=1e-5, atol=1e-6)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def additive(params, query, annotations, mask):
    hidden = np.tanh((query @ params["query_kernel"])[:, None] + annotations @ params["key_kernel"])
    scores = np.where(mask, hidden @ params["vector"], -np.inf)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    return np.einsum("bs,bsd->bd", weights, annotations), weights


def reset_before(params, state, gates):
    """z keeps the old state, which the paper writes as one minus its z."""
    reset, update, inner = np.split(params["recurrent"], 3, axis=1)
    r, z, n = np.split(gates, 3, axis=1)
    r, z = sigmoid(r + state @ reset), sigmoid(z + state @ update)
    return z * state + (1 - z) * np.tanh(n + (r * state) @ inner)


def bahdanau(variant, params, encoded, embedded):
    """Bahdanau et al. 2015, step by step; GroundHog's order is written as the program has it."""
    annotations, mask = np.asarray(encoded.annotations, float), np.asarray(encoded.mask)
    backward = np.asarray(encoded.finals[0]["backward"]["hidden"], float)
    bridge, cell, out = params["bridge"]["layer_0_hidden"], params["cell"], params["readout"]
    state = np.tanh(backward @ bridge["kernel"] + bridge["bias"])
    features, attention = [], []

    def update(state, word, context):
        gates = word @ cell["input"] + cell["bias"] + context @ cell["context"]
        return reset_before(cell, state, gates)

    for t in range(T):
        word = embedded[:, t]
        if variant == "groundhog" and t:
            state = update(state, word, context)  # noqa: F821  (of the step before)
        context, weights = additive(params["attention"], state, annotations, mask)
        read = state
        if variant != "groundhog":
            state = update(state, word, context)
        if variant == "main_text":
            read = state
        if variant == "groundhog" and t == 0:
            word = np.zeros_like(word)
        hidden = read @ out["state"] + word @ out["embedding"] + context @ out["context"]
        hidden = (hidden + out["bias"]).reshape(B, -1, 2)
        features.append(hidden.max(-1))
        attention.append(weights)
    return np.stack(features, 1), np.stack(attention, 1)


@pytest.mark.parametrize("variant", ["main_text", "appendix", "groundhog"])
def test_bahdanau_equals_the_paper(variant):
    case = Case(small("bahdanau", variant=variant))
    params = jax.tree.map(lambda leaf: np.asarray(leaf, float), case.params)
    expected = bahdanau(variant, params, case.encoded, np.asarray(case.embedded, float))
    found = jax.jit(case.run)(case.params, case.encoded, case.embedded)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_luong_without_what_is_fed_is_the_model_without_feeding():
    fed, plain = base("luong"), Case(small("luong", input_feeding=False))
    params = {**fed.params, "layer_0": dict(fed.params["layer_0"])}
    feed = params["layer_0"]["feed"]
    zeroed = {**params, "layer_0": {**params["layer_0"], "feed": jnp.zeros_like(feed)}}
    run = jax.jit(fed.run)(zeroed, fed.encoded, fed.embedded)
    del params["layer_0"]["feed"]
    expected = jax.jit(plain.run)(params, fed.encoded, fed.embedded)
    for found, wanted in zip(run, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", RECURRENT)
def test_none_is_attention_to_a_source_of_one_slot(name):
    """Everything else equal, a fixed vector is what is attended to when there is nothing else."""
    config = small(name, bridge="last")
    attending, fixed = Case(config), Case(config, NONE)
    encoded = attending.encoded
    single = dataclasses.replace(
        encoded, annotations=encoded.summary[:, None], mask=jnp.ones((B, 1), bool)
    )
    expected = jax.jit(attending.run)(attending.params, single, attending.embedded)
    params = {**attending.params, "attention": {}}
    found = jax.jit(fixed.run)(params, encoded, attending.embedded)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-6)


DROPPING = MECHANISMS.config("multi_head")(
    num_heads=2, head_dim=3, dropout=0.5, score=MECHANISMS.config("scaled_dot")()
)


@pytest.mark.parametrize(
    "config",
    [*map(small, READING), small("luong", input_feeding=False)],
    ids=[*READING, "luong-no-feed"],
)
def test_weights_are_dropped_in_training(config):
    case = Case(config, DROPPING)
    run = jax.jit(
        lambda seed: case.run(
            case.params, case.encoded, case.embedded, call=Call(True, jax.random.key(seed))
        )
    )
    plain = jax.jit(case.run)(case.params, case.encoded, case.embedded)
    (one, weights), (again, _), (other, _) = run(0), run(0), run(1)
    np.testing.assert_array_equal(one, again)
    for found in (one, other):
        assert not np.allclose(found, plain[0], atol=1e-3)
    assert not np.allclose(one, other, atol=1e-3)
    np.testing.assert_allclose(weights[:, 0].sum(-1), 1.0, rtol=1e-5)  # those reported are whole


def test_other_weights_are_dropped_at_every_step():
    """Steps that are equal but for what is dropped, for nothing recurs and words repeat."""
    case = Case(small("bahdanau", bridge="mean"), DROPPING)
    params = {**case.params, "cell": jax.tree.map(jnp.zeros_like, case.params["cell"])}
    params["bridge"] = jax.tree.map(jnp.zeros_like, params["bridge"])
    embedded = jnp.broadcast_to(case.embedded[:, :1], case.embedded.shape)
    run = functools.partial(jax.jit(case.run, static_argnames="train"), params, case.encoded)
    same, _ = run(embedded)
    dropped, _ = run(embedded, call=Call(True, jax.random.key(0)))
    np.testing.assert_allclose(same[:, 0], same[:, 1], atol=1e-6)
    assert not np.allclose(dropped[:, 0], dropped[:, 1], atol=1e-3)


def test_what_a_transducer_asks_changes_nothing_that_it_returns():
    """Nor does the source; of the target, it knows what the stack of cells has read."""
    case = base("transducer")
    features, weights = jax.jit(case.run)(case.params, case.encoded, case.embedded)
    tripled = jax.tree.map(lambda leaf: 3 * leaf, case.params["attention"])
    other = {**case.params, "attention": tripled}
    same, moved = jax.jit(case.run)(other, case.encoded, case.embedded)
    np.testing.assert_array_equal(same, features)
    assert not np.allclose(moved, weights, atol=1e-2)
    with pytest.raises(ValueError, match="attention.name: .* carries nothing .* 'coverage_vector'"):
        Case(small("transducer"), MECHANISMS.config("coverage_vector")(attention_dim=5))
