"""Attention over a source that is split over eight devices is that of one device."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh

from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.mechanisms.multi_head import Config
from attention_jax.ops.attend import AttentionSpec, attend, make_memory
from attention_jax.ops.normalizers import sparsemax_normalizer
from attention_jax.ops.positions import slot_offsets
from attention_jax.ops.scores import (
    additive_scores,
    dot_scores,
    location_scores,
    scaled_dot_scores,
)
from attention_jax.ops.sharded_attention import attend_sharded
from tests.simulated_devices import call_on_devices

B, T, S, D, DV = 3, 4, 32, 5, 6
AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit
# (score, queries, axes of the mesh, their type); one query takes another path of additive scores.
CASES = {
    "additive": ("additive", T, (8,), AUTO),
    "additive, one query": ("additive", 1, (8,), AUTO),
    "dot": ("dot", T, (8,), AUTO),
    "scaled_dot, beside data": ("scaled_dot", T, (4, 2), AUTO),
    "additive, explicit": ("additive", T, (8,), EXPLICIT),
    "scaled_dot, explicit, beside data": ("scaled_dot", T, (4, 2), EXPLICIT),
}


def spec_of(name):
    def score(params, query, memory, state, positions):
        if name == "additive":
            return additive_scores(query, memory.keys, params["vector"])
        return (dot_scores if name == "dot" else scaled_dot_scores)(query, memory.keys)

    return AttentionSpec(score)


def mesh_of(shape, axis_type=AUTO):
    devices = np.array(jax.devices()[: int(np.prod(shape))]).reshape(shape)
    names = ("sequence", "data")[: len(shape)]
    return Mesh(devices, names, axis_types=(axis_type,) * len(shape))


def draw(queries):
    """Arrays with large scores, NaN in padding, shards that are masked and a row that is."""
    rng = np.random.default_rng(0)
    query, keys, values = (
        rng.normal(size=shape).astype(np.float32) * scale
        for shape, scale in (((B, queries, D), 3), ((B, S, D), 3), ((B, S, DV), 1))
    )
    mask = np.arange(S) < np.array([S, 9, 0])[:, None]  # whole; most shards empty; nothing
    mask[1, :4] = False  # the first shard, too
    keys[~mask] = values[~mask] = np.nan
    allowed = rng.random((B, queries, S)) < 0.8
    allowed[0, 0] = False
    bias = rng.normal(size=(1, queries, S)).astype(np.float32)
    params = {"vector": rng.normal(size=D).astype(np.float32)}
    return params, query, keys, values, mask, allowed, bias


def measure(name):
    """Returns the outputs and gradients of a case, split and not."""
    score, queries, shape, axis_type = CASES[name]
    spec, mesh = spec_of(score), mesh_of(shape, axis_type)
    *learned, mask, allowed, bias = map(jnp.asarray, draw(queries)[1:])
    learned = (draw(queries)[0], *learned, bias)
    readout = np.random.default_rng(1).normal(size=(B, queries, DV)).astype(np.float32)

    def run(is_split, params, query, keys, values, bias):
        memory = make_memory(spec, params, keys, values, mask)
        if is_split:
            return attend_sharded(spec, params, query, memory, mesh, mask=allowed, bias=bias)
        return attend(spec, params, query, memory, mask=allowed, bias=bias)[0]

    found = []
    for is_split in (True, False):

        def loss(*learned, is_split=is_split):
            output = run(is_split, *learned)
            return (output.context * readout).sum() + (output.weights**2).sum(), output

        gradient, output = jax.jit(jax.grad(loss, argnums=range(5), has_aux=True))(*learned)
        if is_split:
            sizes = {shard.data.shape[-1] for shard in output.weights.addressable_shards}
            assert sizes == {S // shape[0]}, sizes
            eager = run(is_split, *learned)  # outside of `jit`, too
            np.testing.assert_allclose(eager.context, output.context, rtol=1e-5, atol=1e-6)
        found.append([np.asarray(leaf).tolist() for leaf in jax.tree.leaves((output, gradient))])
    return found


def keep_rows_apart():
    """Rows that lie on the devices of another explicit axis stay there."""
    mesh, spec = mesh_of((4, 2), EXPLICIT), spec_of("dot")
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    query, keys = (jax.device_put(jnp.ones((2, size, D)), rows) for size in (T, S))
    mask = jax.device_put(jnp.ones((2, S), bool), rows)
    memory = make_memory(spec, {}, keys, keys, mask)
    output = jax.jit(lambda query, memory: attend_sharded(spec, {}, query, memory, mesh))(
        query, memory
    )
    return [list(leaf.sharding.spec) for leaf in (output.context, output.weights)]


def measure_all():
    return {**{name: measure(name) for name in CASES}, "rows": keep_rows_apart()}


@pytest.fixture(scope="module")
def measured():
    return call_on_devices(8, "tests.ops.test_sharded_attention.measure_all")


@pytest.mark.parametrize("name", CASES)
def test_split_attention_is_that_of_one_device(measured, name):
    split, whole = measured[name]
    assert len(split) == len(whole) == 9
    for found, expected in zip(split, whole, strict=True):
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_rows_stay_on_the_devices_of_another_axis(measured):
    context, weights = measured["rows"]
    assert context[0] == weights[0] == "data" and weights[-1] == "sequence"


def test_positions_that_no_score_reads_are_taken():
    spec, query = spec_of("dot"), jnp.ones((1, 1, D))
    memory = memory_of(spec, positions=jnp.arange(S) + 5)
    found = attend_sharded(spec, {}, query, memory, mesh_of((1,)))
    np.testing.assert_allclose(found.weights, 1 / S, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_rows_without_a_slot_get_nothing(measured, name):
    context, weights = (np.array(leaf) for leaf in measured[name][0][:2])
    assert not context[2].any() and not weights[2].any() and not weights[0, 0].any()
    np.testing.assert_allclose(weights[1].sum(-1), 1.0, rtol=1e-6)
    assert not weights[1, :, :4].any() and not weights[1, :, 9:].any()


def memory_of(spec, slots=S, **aux):
    ones = jnp.ones((1, slots, D))
    return make_memory(spec, {}, ones, ones, jnp.ones((1, slots), bool), **aux)


def test_other_mechanisms_and_uneven_sources_are_refused():
    spec, query = spec_of("dot"), jnp.ones((1, 1, D))
    mesh = jax.sharding.AbstractMesh((8,), ("sequence",))
    with pytest.raises(ValueError, match="expected a multiple of 8 slots, .* found 33"):
        attend_sharded(spec, {}, query, memory_of(spec, 33), mesh)
    other = AttentionSpec(spec.score, normalizer=sparsemax_normalizer)
    for refused, memory in (
        (other, memory_of(spec)), (spec, memory_of(spec, places=jnp.ones((1, S)))),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="expected a softmax over all slots"):
            attend_sharded(refused, {}, query, memory, mesh)


def score_by_column(params, query, memory, state, positions):
    return location_scores(query, params["kernel"], memory.keys.shape[-2])


def score_by_distance(params, query, memory, state, positions):
    far = jnp.abs(slot_offsets(memory, positions)) * params["slope"]
    return dot_scores(query, memory.keys) - far


@pytest.mark.parametrize(
    ("score", "shapes"),
    [(score_by_column, {"kernel": (D, S)}), (score_by_distance, {"slope": ()})],
)
@pytest.mark.parametrize("is_compiled", [False, True])
def test_scores_of_places_are_refused(score, shapes, is_compiled):
    """Each device would take its slots for the first ones."""
    spec, query = AttentionSpec(score), jnp.ones((1, 1, D))
    mesh = jax.sharding.AbstractMesh((8,), ("sequence",))
    params = {name: jnp.zeros(shape) for name, shape in shapes.items()}

    def split(params):
        return attend_sharded(spec, params, query, memory_of(spec), mesh).context

    with pytest.raises(ValueError, match="depends on where a slot stands"):
        (jax.jit(split) if is_compiled else split)(params)


def head_of(**fields):
    """One head of a model, whose depth is not the model's."""
    mechanism = build_mechanism(Config(num_heads=1, head_dim=4, **fields), D, D, D, place="self")
    params = {name: jnp.ones(one.shape) for name, one in mechanism.parts.parameters.items()}
    return mechanism.parts.spec, params


def test_heads_that_project_their_queries_are_taken():
    spec, params = head_of()
    source = jax.random.normal(jax.random.key(0), (1, S, D))
    memory = make_memory(spec, params, source, source, jnp.ones((1, S), bool))
    found = attend_sharded(spec, params, source[:, :T], memory, mesh_of((1,)))
    expected, _ = attend(spec, params, source[:, :T], memory)
    np.testing.assert_allclose(found.context, expected.context, rtol=1e-5, atol=1e-6)


def test_scores_that_ask_which_head_they_are_of_are_refused():
    spec, params = head_of(refinements={"alibi": {}})
    source = jnp.ones((1, S, D))
    memory = make_memory(spec, params, source, source, jnp.ones((1, S), bool))
    with pytest.raises(ValueError, match="found one that asks which head it is of"):
        attend_sharded(spec, params, source[:, :T], memory, mesh_of((1,)))


def test_averages_that_read_places_are_refused():
    spec = dataclasses.replace(spec_of("dot"), average=lambda *_: None)
    mesh = jax.sharding.AbstractMesh((8,), ("sequence",))
    with pytest.raises(ValueError, match="depends on where a slot stands"):
        attend_sharded(spec, {}, jnp.ones((1, 1, D)), memory_of(spec), mesh)
