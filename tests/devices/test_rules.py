"""Rules place parameters by their paths, and all that belongs to a parameter beside it."""

import functools

import jax
import pytest
from jax.sharding import AbstractMesh, AxisType, PartitionSpec

from attention_jax.configuration import plain, typed
from attention_jax.devices.config import AXES, ShardingConfig
from attention_jax.devices.rules import parameter_axes, path_of, state_shardings
from attention_jax.errors import ConfigError
from attention_jax.updates.averaging import MovingAverage
from attention_jax.updates.optimizers import Adam, build_optimizer
from attention_jax.updates.state import start_state
from tests.training.linear_model import LinearModel

SHAPES = {
    "decoder/cell/recurrent": (64, 192),
    "decoder/cell/bias": (192,),
    "decoder/readout/embedding": (8, 16),
    "encoder/kernel": (48, 64),
    "odd": (33, 35),
    "output": (40, 64),
    "output_bias": (40,),
    "target_embedding": (40, 32),
}


def sizes(data=1, fsdp=1, tensor=1):
    return dict(zip(AXES, (data, fsdp, tensor), strict=True))


def axes_of(rules=(), **mesh):
    return parameter_axes(SHAPES, sizes(**mesh), rules)


def test_nothing_is_split_without_axes_to_split_it_over():
    assert set(axes_of(data=8).values()) == {()}


def test_fsdp_splits_the_largest_dimension_of_large_parameters():
    assert axes_of(fsdp=8) == {
        "decoder/cell/recurrent": (None, "fsdp"),
        "decoder/cell/bias": (),
        "decoder/readout/embedding": (),
        "encoder/kernel": (None, "fsdp"),
        "odd": (),
        "output": (None, "fsdp"),
        "output_bias": (),
        "target_embedding": ("fsdp", None),
    }


def test_tensor_splits_the_tables_of_vocabularies_and_fsdp_the_rest():
    found = axes_of(fsdp=2, tensor=4)
    assert found["output"] == found["target_embedding"] == ("tensor", "fsdp")
    assert found["output_bias"] == ("tensor",)
    assert found["decoder/readout/embedding"] == ()
    assert found["decoder/cell/recurrent"] == (None, "fsdp")


@pytest.mark.parametrize(
    ("path", "is_table"),
    [
        ("embedding", True),
        ("source_embedding", True),
        ("forward/source_embedding", True),
        ("forward/output", True),
        ("reverse/target_embedding", True),
        ("reverse/output", True),
        ("reverse/output_bias", True),
        ("output_projection", False),
        ("decoder/layer_0/feed_forward/output", False),
        ("reverse/encoder/layer_0/feed_forward/output_bias", False),
        ("decoder/layer_0/attention/output_bias", False),
    ],
)
def test_only_tables_of_vocabularies_are_split_over_tensor(path, is_table):
    found = parameter_axes({"output": (40, 64), path: (40, 24)}, sizes(tensor=4))
    assert found[path] == (("tensor", None) if is_table else ())


def test_rules_come_first_in_their_order():
    rules = (("cell", (None,)), ("recurrent|output$", ("tensor", "fsdp")))
    found = axes_of(rules, fsdp=2, tensor=4)
    assert found["decoder/cell/recurrent"] == (None,)
    assert found["output"] == ("tensor", "fsdp")
    assert found["target_embedding"] == ("tensor", "fsdp")


@pytest.mark.parametrize(
    ("rules", "mesh", "words"),
    [
        (
            [("cells", ("tensor",))], {"tensor": 2},
            "rules[0]: expected a pattern that is found in the path of a parameter that no rule "
            "before it names, such as decoder/cell/recurrent, found 'cells'",
        ),
        (
            [("cell", (None,)), ("cell/bias", ("fsdp",))], {"fsdp": 2},
            "rules[1]: expected a pattern that is found in",
        ),
        ([("", (None,)), ("x", ())], {}, "and all were named before, found 'x'"),
        (
            [("odd", (None, "tensor"))], {"tensor": 2},
            "expected tensor (2) to divide dimension 1 of odd of shape [33, 35], found 35",
        ),
        (
            [("cell", (None, "fsdp"))], {"fsdp": 2},
            "rules[0]: expected at most 1 axes for decoder/cell/bias of shape [192], found 2",
        ),
        ([], {"tensor": 3}, "config.sharding.tensor: expected a size that divides a dimension"),
        ([], {"fsdp": 13}, "config.sharding.fsdp: expected a size that divides a dimension"),
    ],
)  # fmt: skip
def test_rules_that_do_not_fit_are_refused(rules, mesh, words):
    with pytest.raises(ConfigError) as error:
        axes_of(rules, **mesh)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_moments_and_average_lie_where_their_parameter_does():
    start = functools.partial(
        start_state, LinearModel(), build_optimizer(Adam()), averaging=MovingAverage()
    )
    mesh = AbstractMesh((1, 1, 3), AXES, axis_types=(AxisType.Auto,) * 3)
    shapes = jax.eval_shape(start, jax.random.key(0))
    shardings = state_shardings(shapes, mesh, [("^decoder/target", (None, "tensor"))])
    split = {
        path_of(path): sharding.spec
        for path, sharding in jax.tree.leaves_with_path(shardings)
        if sharding.spec != PartitionSpec()
    }
    kept = ("params", "optimizer/1/mu", "optimizer/1/nu", "average")
    assert {path for path in split if path.endswith("target")} == {
        f"{tree}/decoder/target" for tree in kept
    }
    assert split["optimizer/1/mu/decoder/target"] == PartitionSpec(None, "tensor")
    assert split["optimizer/1/mu/output"] == split["params/output"]
    assert split["params/output"] == PartitionSpec("tensor", None)


def test_config_reads_back_with_its_rules():
    config = typed(ShardingConfig, {"tensor": 2, "rules": [["output$", ["tensor", None]]]})
    assert config.rules == (("output$", ("tensor", None)),)
    assert typed(ShardingConfig, plain(config)) == config


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"data": 0}, "config.data: expected at least 1, or -1 for the rest, found 0"),
        ({"fsdp": -1}, "config.fsdp: expected -1 for one axis only, found it for data too"),
        ({"tensor": -2}, "config.tensor: expected at least -1, found -2"),
        ({"strategy": "pmap", "fsdp": 2}, "config.fsdp: expected 1 for strategy 'pmap'"),
        (
            {"strategy": "shard_map", "rules": [["a", ["data"]]]},
            "config.rules: expected none for strategy 'shard_map'",
        ),
        ({"rules": [["(", []]]}, "config.rules[0]: expected a regular expression, found '('"),
        ({"rules": [["a", ["model"]]]}, "rules[0]: expected axes of data, fsdp, tensor, found 'mo"),
        ({"rules": [["a", ["fsdp", "fsdp"]]]}, "rules[0]: expected an axis once"),
        ({"strategy": "jitt"}, "did you mean 'jit'"),
    ],
)
def test_config_names_what_is_wrong(fields, words):
    with pytest.raises(ConfigError) as error:
        typed(ShardingConfig, fields)
    assert words in str(error.value) and "\n" not in str(error.value)
