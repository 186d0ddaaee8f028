"""Refined attention over many slots: what windows cost, and what bfloat16 loses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.encoder import sequence
from attention_jax.layers.mechanism import MECHANISMS
from tests.refined_heads import D, built, drawn


def compiled_costs(mechanism, length):
    """Yields the operations and bytes of contexts, then those of their gradients."""
    shapes = {
        name: jax.ShapeDtypeStruct(p.shape, jnp.float32) for name, p in mechanism.parameters.items()
    }

    def total(params, x):
        memory = mechanism.make_memory(params, sequence(x, jnp.ones((1, length), bool)))
        return jnp.sum(mechanism.attend(params, x, memory)[0].context)

    x = jax.ShapeDtypeStruct((1, length, D), jnp.float32)
    for function in (total, jax.grad(total, (0, 1))):
        compiled = jax.jit(function).lower(shapes, x).compile()
        yield compiled.cost_analysis()["flops"], compiled.memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize("num_first", [0, 4])
def test_cost_and_memory_of_a_sliding_window_are_linear(num_first):
    """Forward and backward."""
    window = {"sliding_window": {"size": 16, "num_first": num_first}}
    _, mechanism = built("causal", refinements=window)
    short, long = (list(compiled_costs(mechanism, size)) for size in (128, 512))
    for (few, little), (many, much) in zip(short, long, strict=True):
        assert 3.5 < many / few < 4.5
        assert much / little < 4.5


def test_cost_and_memory_of_all_slots_are_not():
    _, mechanism = built("causal")
    short, long = (list(compiled_costs(mechanism, size)) for size in (128, 512))
    for (few, little), (many, much) in zip(short, long, strict=True):
        assert many / few > 6 and much / little > 6


def test_one_query_reads_its_window_of_a_cache():
    """What depends on the number of slots is their projection, four times as much."""
    costs = {}
    for window in ({"sliding_window": {"size": 16}}, {}):
        _, mechanism = built("causal", refinements=window)
        for size in (128, 512):
            x = jax.ShapeDtypeStruct((1, size, D), jnp.float32)
            params = {
                name: jax.ShapeDtypeStruct(p.shape, jnp.float32)
                for name, p in mechanism.parameters.items()
            }
            mask = jax.ShapeDtypeStruct((1, size), bool)
            memory = jax.eval_shape(mechanism.make_memory, params, sequence(x, mask))
            query = jax.ShapeDtypeStruct((1, 1, D), jnp.float32)

            def context(params, query, memory, mechanism=mechanism):
                positions = jnp.array([100])
                return mechanism.attend(params, query, memory, positions=positions)[0].context

            step = jax.jit(context).lower(params, query, memory).compile()
            costs[bool(window), size] = step.cost_analysis()["flops"]
    assert costs[True, 512] < 1.2 * costs[True, 128]
    assert costs[False, 512] > 2 * costs[False, 128]


def test_gradients_of_bfloat16_distances_over_many_slots_are_those_of_float32():
    """Almost all slots lie beyond the greatest distance; a sum of ones would end at 256."""
    length = 1500
    fields = {"relative_positions": {"max_distance": 1, "adds_values": False}}
    _, mechanism = built("self", refinements=fields)
    params, _, _, _ = drawn(mechanism, "self")
    x = np.random.default_rng(3).normal(1.0, 0.1, (1, length, D))
    low = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.bfloat16), (params, x))

    @jax.grad
    def gradient(params, x):
        memory = mechanism.make_memory(params, sequence(x, jnp.ones((1, length), bool)))
        return (mechanism.attend(params, x[:, :8], memory)[0].scores / length).sum()

    found = jax.jit(gradient)(*low)["distance_keys"]
    full = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), low)
    expected = jax.jit(gradient)(*full)["distance_keys"]
    assert found.dtype == jnp.bfloat16
    np.testing.assert_allclose(found.astype(jnp.float32), expected, rtol=0.05, atol=1e-3)


def test_local_p_places_windows_of_bfloat16_as_of_float32():
    """Which between 1,000 and 2,000 has no number that is not a multiple of eight."""
    length, rng = 1999, np.random.default_rng(3)
    mechanism = build_mechanism(MECHANISMS.config("local_p")(), D, D, D)
    params, _, _, _ = drawn(mechanism, "self")
    x = rng.normal(size=(1, length, D))
    low = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.bfloat16), (params, x))

    @jax.jit
    def center(params, x):
        memory = mechanism.make_memory(params, sequence(x, jnp.ones((1, length), bool)))
        return mechanism.attend(params, x[:, :16], memory)[0].aux["center"]

    full = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), low)
    np.testing.assert_allclose(center(*low), center(*full), atol=0.01)
