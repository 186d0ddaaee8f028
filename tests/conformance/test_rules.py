"""The rules of the battery: each has a test and a part that keeps it, and says what is broken."""

import dataclasses
import inspect

import jax
import pytest

from attention_jax.configuration import setting
from attention_jax.layers.attention import Attention
from attention_jax.layers.mechanism import MechanismConfig, MechanismParts
from attention_jax.layers.parameters import Initialization, Parameter, draw
from attention_jax.ops.attend import AttentionSpec
from attention_jax.ops.summation import upcast
from tests.conformance import (
    test_calls,
    test_depths,
    test_fewer_slots,
    test_mechanisms,
    test_objectives,
    test_rows_alone,
)
from tests.conformance.battery import build_case, inputs
from tests.conformance.conftest import RULES, broken
from tests.layers.test_parameters import INITIALIZATIONS


@dataclasses.dataclass(frozen=True)
class Config(MechanismConfig):
    """Dot products over a learnt temperature, of a file as mechanisms have one."""

    name: str = setting("tempered")
    num_heads: int = setting(1, at_least=1)
    role: str = setting("scale")
    is_added: bool = setting(False)
    start: float = setting(1.0)


def build(config, query_dim, key_dim):
    temperature = Parameter((), (), config.role).starting_at(config.start)
    score = _added_to if config.is_added else _score
    return MechanismParts(AttentionSpec(score), {"temperature": temperature})


def _score(params, query, memory, state, positions):
    return upcast(params["temperature"]) * (query @ memory.keys.mT)


def _added_to(params, query, memory, state, positions):
    return upcast(params["temperature"]) + query @ memory.keys.mT


def test_each_has_a_test_and_a_part_that_keeps_it(repository):
    files = (test_calls, test_depths, test_fewer_slots, test_mechanisms, test_objectives,
             test_rows_alone)  # fmt: skip
    tests = {name: test for file in files for name, test in inspect.getmembers(file)
             if name.startswith("test_") and callable(test)}  # fmt: skip
    assert set(RULES) <= set(tests)
    # What is tried on every mechanism, one's own among them.
    of_any = {name for name, test in tests.items() if "case" in inspect.signature(test).parameters}
    assert of_any - set(RULES) == {"test_each_head_may_have_a_bias_and_a_mask_of_its_own"}
    for _, kept_by in RULES.values():
        assert (repository / "attention_jax" / f"{kept_by}.py").exists(), kept_by


@pytest.mark.parametrize("num_heads", [1, 2])
@pytest.mark.parametrize("role", ["scale", "attention_vector"])
def test_scalar_parameters_pass(role, num_heads):
    case = build_case(Config(num_heads=num_heads, role=role))
    test_mechanisms.test_every_parameter_learns(case)
    test_mechanisms.test_gradients_of_bfloat16_are_summed_in_float32(case)
    (query, keys, _, mask), layer = inputs(), Attention(case.config)
    shapes = jax.eval_shape(layer.init, jax.random.key(0), query, keys, mask)
    assert shapes["params"]["temperature"].shape == (() if num_heads == 1 else (2,))


def test_what_a_softmax_takes_away_does_not_learn():
    """Its gradient is zero but for rounding."""
    with pytest.raises(AssertionError, match="temperature does not: its gradient is .e-0[6-9]"):
        test_mechanisms.test_every_parameter_learns(build_case(Config(is_added=True)))


def test_a_field_may_say_what_a_parameter_starts_from():
    cases = [build_case(Config(start=start)) for start in (1.0, 3.0)]
    assert cases[0].starts == {"temperature": 1.0}
    assert cases[1].starts == {"temperature": 3.0}


@pytest.mark.parametrize("name", INITIALIZATIONS)
@pytest.mark.parametrize("role", ["kernel", "embedding", "attention_kernel", "mixing", "bias"])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_small_parameters_start_from_numbers(name, role, shape):
    tree = {"only": Parameter(shape, ("hidden",) * len(shape), role)}
    drawn = draw(tree, jax.random.key(0), Initialization(name))["only"]
    assert drawn.shape == shape and abs(drawn).max() < 5


def test_parameters_of_other_roles_and_dimensions_are_refused():
    with pytest.raises(ValueError, match="role: expected one of kernel, .*, found 'temperature'"):
        Parameter((), (), "temperature")
    with pytest.raises(ValueError, match=r"role: expected 2 dimensions or more for 'recurrent'"):
        Parameter((3,), ("hidden",), "recurrent")


def test_a_broken_rule_is_one_line():
    """Dots of queries and keys of two depths, which `build` should have refused."""
    test, case = "test_queries_and_keys_of_two_depths_are_compared_or_refused", build_case(Config())
    with pytest.raises(TypeError) as found:
        getattr(test_depths, test)(case)
    line = broken(test, case.name, found.value)
    assert line.startswith("tempered-scale: queries and keys of two depths are compared, or")
    assert "attention_jax/layers/mechanisms/luong_dot.py (TypeError: " in line and "\n" not in line
