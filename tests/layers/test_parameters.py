"""How parameters start, by role."""

import dataclasses

import jax
import numpy as np
import pytest
from flax import linen as nn
from flax.errors import ScopeParamShapeError
from jax.sharding import PartitionSpec

from attention_jax.layers import parameters
from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.cells import cell_parameters
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.parameters import (
    Initialization,
    Parameter,
    affine,
    declare,
    draw,
    logical_axes,
    project,
    shared_names,
)

ROLES = (
    "kernel",
    "recurrent",
    "word_embedding",
    "embedding",
    "attention_kernel",
    "attention_vector",
    "bias",
    "forget_bias",
    "coverage_kernel",
)

INITIALIZATIONS = ("default", "bahdanau2015", "xavier", "uniform")


def start(initialization, role, shape=(40, 160)):
    return np.asarray(initialization.initializer(role)(jax.random.key(0), shape))


@pytest.mark.parametrize(
    ("name", "deviations"),
    [
        ("default", (40**-0.5, 40**-0.5, 0.1, 0.1, 40**-0.5, 160**-0.5, 0, 0, 0.01)),
        ("bahdanau2015", (0.01, 40**-0.5, 0.01, 0.01, 0.001, 0, 0, 0, 0.001)),
        ("uniform", (0.1 / 3**0.5,) * 9),
    ],
)
def test_roles_start_with_their_deviation(name, deviations):
    for role, deviation in zip(ROLES, deviations, strict=True):
        values = start(Initialization(name), role)
        assert values.dtype == np.float32
        np.testing.assert_allclose(values.std(), deviation, rtol=0.05, err_msg=role)


@pytest.mark.parametrize("name", ["default", "bahdanau2015"])
def test_recurrent_matrices_are_orthogonal_one_for_each_gate(name):
    gates = np.split(start(Initialization(name), "recurrent"), 4, axis=1)
    for gate in gates:
        np.testing.assert_allclose(gate.T @ gate, np.eye(40), atol=1e-5)
    assert not np.allclose(gates[0], gates[1])


@pytest.mark.parametrize("name", INITIALIZATIONS)
@pytest.mark.parametrize("mechanism", MECHANISMS.names())
def test_heads_start_as_one_does(mechanism, name):
    """Each head's arrays are of the size that they have in a mechanism of a single head."""
    config = MECHANISMS.config(mechanism)
    if "num_heads" not in {field.name for field in dataclasses.fields(config)}:
        pytest.skip(f"{mechanism} has no heads")
    given = {"source_vocabulary_size": 40, "word_dim": 32}
    drawn = {
        heads: draw(
            build_mechanism(config(num_heads=heads), 64, 64, 64, **given).parameters,
            jax.random.key(0), Initialization(name),
        )
        for heads in (1, 2)
    }  # fmt: skip
    if mechanism == "multi_head":  # whose kernels for one head are drawn for all side by side
        assert drawn[2]["query_projection"].shape[0] == 2
        return
    for leaf, value in drawn[1].items():
        both = np.asarray(drawn[2][leaf])
        assert both.ndim == value.ndim + 1
        assert np.ptp(value) == 0 or not np.array_equal(*both)
        if leaf.endswith("_recurrent") and name != "uniform":
            for gate in np.split(both[0], both.shape[-1] // both.shape[-2], axis=-1):
                np.testing.assert_allclose(gate.T @ gate, np.eye(len(gate)), atol=1e-5)


@pytest.mark.parametrize("name", ["default", "xavier"])
@pytest.mark.parametrize("score", ["bahdanau", "luong_concat"])
def test_vectors_of_heads_are_as_long_as_of_one(score, name):
    score = MECHANISMS.config(score)(attention_dim=256)
    config = MECHANISMS.config("multi_head")(num_heads=4, score=score)
    mechanism = build_mechanism(config, 32, 32, 32)
    vectors = draw(mechanism.parameters, jax.random.key(0), Initialization(name))["vector"]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=0.2)


@pytest.mark.parametrize("num_heads", [1, 4])
def test_score_matrices_of_heads_start_as_that_of_one(num_heads):
    """Each reads its own head; the heads' projections lie side by side over one input."""
    score = MECHANISMS.config("bahdanau")(attention_dim=64)
    config = MECHANISMS.config("multi_head")(num_heads=num_heads, head_dim=32, score=score)
    params = draw(
        build_mechanism(config, 48, 48, 48).parameters, jax.random.key(0),
        Initialization("xavier"),
    )  # fmt: skip
    for name, fans in (("key_kernel", 32 + 64), ("key_projection", 48 + num_heads * 32)):
        limit = np.sqrt(6 / fans)
        assert 0.98 * limit < np.abs(params[name]).max() <= limit


def test_uniform_stays_within_its_scale():
    values = start(Initialization("uniform", scale=0.08), "kernel")
    assert np.abs(values).max() <= 0.08 and np.abs(values).max() > 0.079


def test_forget_bias_opens_the_forget_gate_only():
    tree = draw(cell_parameters("lstm", 3, 5), jax.random.key(0), Initialization(forget_bias=1.0))
    np.testing.assert_array_equal(tree["bias"], [0] * 5 + [1] * 5 + [0] * 10)
    uniform = start(Initialization("uniform", forget_bias=2.0), "forget_bias", (20,))
    assert uniform[5:10].min() > 1.8 and np.abs(np.delete(uniform, range(5, 10))).max() <= 0.1


@pytest.mark.parametrize(("field", "owner"), [("scale", "uniform"), ("embedding_scale", "default")])
def test_a_scale_belongs_to_one_initialization(field, owner):
    for name in set(INITIALIZATIONS) - {owner}:
        with pytest.raises(ValueError, match=f"^{field}: expected only with the name '{owner}'"):
            Initialization(name, **{field: 0.5})
    assert getattr(Initialization(owner, **{field: 0.5}), field) == 0.5


def test_embedding_scale_is_of_word_embeddings_alone():
    for role in ROLES:
        one, other = (start(Initialization(embedding_scale=scale), role) for scale in (0.1, 0.5))
        expected = 5 * one if role == "word_embedding" else one
        np.testing.assert_allclose(other, expected, rtol=1e-6)


def test_draw_gives_every_parameter_a_key_of_its_own():
    square = Parameter.of("kernel", hidden=3, gates=3)
    tree = {"a": square, "b": {"c": square}}
    drawn = draw(tree, jax.random.key(0), Initialization())
    assert not np.allclose(drawn["a"], drawn["b"]["c"])
    again = draw(tree, jax.random.key(0), Initialization())
    np.testing.assert_array_equal(drawn["a"], again["a"])


def test_each_dimension_has_an_axis():
    matrix = Parameter.of("kernel", input=2, hidden=3)
    assert (matrix.shape, matrix.axes) == ((2, 3), ("input", "hidden"))
    assert matrix.stacked(4, "heads") == Parameter.of("kernel", heads=4, input=2, hidden=3)
    assert logical_axes({"a": affine(input=2, hidden=3), "b": {"c": Parameter.of("bias")}}) == {
        "a": {"kernel": PartitionSpec("input", "hidden"), "bias": PartitionSpec("hidden")},
        "b": {"c": PartitionSpec()},
    }
    with pytest.raises(ValueError, match="^axes: expected one for each dimension of .2, 3., found"):
        Parameter((2, 3), ("input",), "kernel")


def test_what_is_shared_is_known_by_name_and_stays_so():
    plain = Parameter.of("kernel", input=2, output=3)
    both = plain.shared("heads", "layers")
    assert both.stacked(4, "heads").shared_by == both.starting_at(0.0).shared_by == both.shared_by
    tree = {"plain": plain, "heads": plain.shared("heads"), "both": both, "inner": {"both": both}}
    assert shared_names(tree, "heads") == {"heads", "both"}
    assert shared_names(tree, "layers") == {"both"}
    with pytest.raises(ValueError, match="^shared_by: expected heads or layers, found rows"):
        plain.shared("rows")


class Holder(nn.Module):
    @nn.compact
    def __call__(self):
        tree = {
            "attention": {},
            "cell": {
                "input": Parameter.of("kernel", input=0, gates=4),
                "bias": Parameter.of("bias", gates=4),
            },
            "scalar": Parameter.of("kernel", hidden=2),
        }
        return declare(self, tree, Initialization())


def test_declare_leaves_out_what_has_no_elements():
    arrays, variables = Holder().init_with_output(jax.random.key(0))
    params = variables["params"]
    assert set(params) == {"cell", "scalar"} and set(params["cell"]) == {"bias"}
    assert arrays["attention"] == {} and "input" not in arrays["cell"]


def test_what_is_read_is_not_drawn_and_has_its_shape(monkeypatch):
    variables = Holder().init(jax.random.key(0))
    monkeypatch.setattr(parameters, "draw", None)
    arrays = jax.eval_shape(Holder().apply, variables)
    assert arrays["cell"]["bias"].shape == (4,) and arrays["scalar"].shape == (2,)
    variables["params"]["scalar"] = np.zeros(3)
    with pytest.raises(ScopeParamShapeError, match=r"scalar.*\(2,\)|\(2,\).*scalar"):
        Holder().apply(variables)


def test_project_without_a_kernel_is_zero():
    values = np.ones((2, 3, 0), np.float32)
    assert project(jax.numpy.asarray(values), None).tolist() == [[[0], [0], [0]]] * 2
