"""Optimisers against their equations in NumPy float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import plain, typed
from attention_jax.errors import ConfigError
from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.updates.optimizers import (
    SGD,
    Adadelta,
    Adam,
    AdamW,
    _matrices,
    build_optimizer,
    lookup,
)
from tests.conformance.battery import small_score

ALL = (Adam, AdamW, Adadelta, SGD)


def descend(config, gradients, params, learning_rates=None):
    """Returns the parameters after each gradient."""
    optimizer = build_optimizer(config)
    params = jax.tree.map(jnp.float32, params)
    state = optimizer.init(params)
    rates = learning_rates or [config.learning_rate] * len(gradients)
    path = []
    for gradient, rate in zip(gradients, rates, strict=True):
        gradient = jax.tree.map(jnp.float32, gradient)
        updates, state = optimizer.update(gradient, state, params, learning_rate=rate)
        params = jax.tree.map(jnp.add, params, updates)
        path.append(params)
    return path


def random_gradients(count=4):
    """Gradients of very different sizes, as only their ratios matter to some optimisers."""
    draw = np.random.default_rng(0)
    return [
        {"w": draw.normal(size=(2, 3)) / 4**index, "b": draw.normal(size=3) / 4**index}
        for index in range(count)
    ]


def start():
    return {"w": np.arange(6.0).reshape(2, 3), "b": np.ones(3)}


def assert_close(tree, expected):
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-6), tree, expected
    )


def adam_reference(params, gradients, rate, beta1, beta2, epsilon, decay=0.0):
    params = {name: value.copy() for name, value in params.items()}
    for name in params:
        m = v = 0.0
        for t, gradient in enumerate(gradients, start=1):
            m = beta1 * m + (1 - beta1) * gradient[name]
            v = beta2 * v + (1 - beta2) * gradient[name] ** 2
            update = (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + epsilon)
            update = update + (decay * params[name] if name == "w" else 0.0)
            params[name] = params[name] - rate * update
    return params


def test_adadelta_golden():
    config = Adadelta(clip_norm=0.0)
    first, second = descend(config, [{"x": 1.0}, {"x": 0.5}], {"x": 0.0})
    np.testing.assert_allclose(first["x"], -0.00447209123, rtol=1e-6)
    np.testing.assert_allclose(second["x"] - first["x"], -0.00288671286, rtol=1e-6)


def test_adam_matches_numpy():
    config = Adam(learning_rate=0.1, beta1=0.8, beta2=0.95, epsilon=1e-3, clip_norm=0.0)
    expected = adam_reference(start(), random_gradients(), 0.1, 0.8, 0.95, 1e-3)
    assert_close(descend(config, random_gradients(), start())[-1], expected)


def test_adamw_decays_matrices_only():
    config = AdamW(learning_rate=0.1, weight_decay=0.3, clip_norm=0.0)
    expected = adam_reference(start(), random_gradients(), 0.1, 0.9, 0.999, 1e-8, decay=0.3)
    assert_close(descend(config, random_gradients(), start())[-1], expected)


def parameters_of_heads(num_heads):
    """Those of heads with every score that heads can have, some with refinements."""
    scores = {name: small_score(name) for name in MECHANISMS.names()}
    fields = {name: {"score": score} for name, score in scores.items() if score}
    fields["refined"] = {"refinements": dict.fromkeys(("qk_norm", "relative_positions"), {})}
    fields["l2"] = {"refinements": {"qk_norm": {"norm": "l2"}, "attention_sink": {}}}
    cases = {}
    for name, more in fields.items():
        try:
            config = MECHANISMS.config("multi_head")(num_heads=num_heads, use_bias=True, **more)
            mechanism = build_mechanism(config, 6, 6, 6, place="self")
        except ValueError:  # no score of heads
            continue
        cases |= {(name, key): parameter for key, parameter in mechanism.parameters.items()}
    return cases


@pytest.mark.parametrize("num_heads", [1, 4])
def test_adamw_decays_no_vectors_of_heads(num_heads):
    """Biases, gains and the vectors of additive scores, by their roles."""
    tree, expected = {}, {}
    for (case, key), parameter in parameters_of_heads(num_heads).items():
        is_vector = parameter.role in ("bias", "scale", "attention_vector", "direction")
        tree.setdefault(case, {})[key] = np.ones(parameter.shape)
        expected.setdefault(case, {})[key] = not is_vector
    assert {"bahdanau", "luong_concat", "refined", "l2"} <= set(tree)
    assert _matrices(tree) == expected


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_matches_numpy(momentum):
    config = SGD(learning_rate=0.1, momentum=momentum, clip_norm=0.0)
    expected, velocity = start(), dict.fromkeys(start(), 0.0)
    for gradient in random_gradients():
        for name in expected:
            velocity[name] = momentum * velocity[name] + gradient[name]
            expected[name] = expected[name] - 0.1 * velocity[name]
    assert_close(descend(config, random_gradients(), start())[-1], expected)


@pytest.mark.parametrize(
    ("clip_norm", "expected"), [(5.0, [-3.0, -4.0]), (0.0, [-6.0, -8.0]), (10.5, [-6.0, -8.0])]
)
def test_gradient_is_clipped_by_its_global_norm(clip_norm, expected):
    config = SGD(clip_norm=clip_norm)
    gradient = {"a": jnp.array([6.0]), "b": jnp.array([8.0])}
    (params,) = descend(config, [gradient], {"a": jnp.zeros(1), "b": jnp.zeros(1)})
    np.testing.assert_allclose([params["a"][0], params["b"][0]], expected, rtol=1e-6)


@pytest.mark.parametrize("cls", ALL)
def test_learning_rate_is_given_at_every_step(cls):
    config = cls(learning_rate=7.0)
    still, moved = descend(config, random_gradients(2), start(), learning_rates=[0.0, 1.0])
    assert_close(still, start())
    assert np.abs(moved["w"] - start()["w"]).min() > 1e-4


@pytest.mark.parametrize(
    ("cls", "change"),
    [(cls, {"learning_rate": 0.5}) for cls in ALL]
    + [(cls, {"clip_norm": 0.1}) for cls in ALL]
    + [(cls, {"beta1": 0.5}) for cls in (Adam, AdamW)]
    + [(cls, {"beta2": 0.5}) for cls in (Adam, AdamW)]
    + [(cls, {"epsilon": 0.1}) for cls in (Adam, AdamW, Adadelta)]
    + [(AdamW, {"weight_decay": 0.5}), (Adadelta, {"rho": 0.5}), (SGD, {"momentum": 0.5})],
)
def test_every_field_changes_the_parameters(cls, change):
    params = descend(cls(), random_gradients(), start())[-1]
    changed = descend(cls(**change), random_gradients(), start())[-1]
    assert np.abs(params["w"] - changed["w"]).max() > 1e-6


@pytest.mark.parametrize("cls", ALL)
def test_lookup_finds_every_optimizer_by_its_name(cls):
    assert lookup(cls().name) is cls
    assert typed(cls, plain(cls())) == cls()


def test_lookup_lists_the_names():
    with pytest.raises(KeyError) as caught:
        lookup("adm")
    assert caught.value.args[0] == ["adadelta", "adam", "adamw", "sgd"]


def test_impossible_value_is_named():
    with pytest.raises(ConfigError, match="config.optimizer.beta2: expected less than 1"):
        typed(Adam, {"beta2": 1.0}, "config.optimizer")
