"""How parameters start, by role."""

import jax
import numpy as np
import pytest
from flax import linen as nn

from attention_jax.layers.cells import cell_parameters
from attention_jax.layers.parameters import Initialization, Parameter, declare, draw, project

ROLES = (
    "kernel",
    "recurrent",
    "embedding",
    "attention_kernel",
    "attention_vector",
    "bias",
    "forget_bias",
    "coverage_kernel",
)


def start(initialization, role, shape=(40, 160)):
    return np.asarray(initialization.initializer(role)(jax.random.key(0), shape))


@pytest.mark.parametrize(
    ("name", "deviations"),
    [
        ("default", (40**-0.5, 40**-0.5, 0.1, 40**-0.5, 40**-0.5, 0, 0, 0.01)),
        ("bahdanau2015", (0.01, 40**-0.5, 0.01, 0.001, 0, 0, 0, 0.001)),
        ("uniform", (0.1 / 3**0.5,) * 8),
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


def test_uniform_stays_within_its_scale():
    values = start(Initialization("uniform", scale=0.08), "kernel")
    assert np.abs(values).max() <= 0.08 and np.abs(values).max() > 0.079


def test_forget_bias_opens_the_forget_gate_only():
    tree = draw(cell_parameters("lstm", 3, 5), jax.random.key(0), Initialization(forget_bias=1.0))
    np.testing.assert_array_equal(tree["bias"], [0] * 5 + [1] * 5 + [0] * 10)
    uniform = start(Initialization("uniform", forget_bias=2.0), "forget_bias", (20,))
    assert uniform[5:10].min() > 1.8 and np.abs(np.delete(uniform, range(5, 10))).max() <= 0.1


def test_scale_belongs_to_uniform():
    with pytest.raises(ValueError, match="scale: expected only with the name 'uniform'"):
        Initialization(scale=0.5)


def test_draw_gives_every_parameter_a_key_of_its_own():
    tree = {"a": Parameter((3, 3)), "b": {"c": Parameter((3, 3))}}
    drawn = draw(tree, jax.random.key(0), Initialization())
    assert not np.allclose(drawn["a"], drawn["b"]["c"])
    again = draw(tree, jax.random.key(0), Initialization())
    np.testing.assert_array_equal(drawn["a"], again["a"])


class Holder(nn.Module):
    @nn.compact
    def __call__(self):
        tree = {
            "attention": {},
            "cell": {"input": Parameter((0, 4)), "bias": Parameter((4,), "bias")},
            "scalar": Parameter((2,)),
        }
        return declare(self, tree, Initialization())


def test_declare_leaves_out_what_has_no_elements():
    arrays, variables = Holder().init_with_output(jax.random.key(0))
    params = variables["params"]
    assert set(params) == {"cell", "scalar"} and set(params["cell"]) == {"bias"}
    assert arrays["attention"] == {} and "input" not in arrays["cell"]


def test_project_without_a_kernel_is_zero():
    values = np.ones((2, 3, 0), np.float32)
    assert project(jax.numpy.asarray(values), None).tolist() == [[[0], [0], [0]]] * 2
