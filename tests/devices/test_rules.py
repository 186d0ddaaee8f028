"""Rules place parameters by their logical axes, and all that belongs to a parameter beside it."""

import functools

import jax
import pytest
from jax.sharding import AbstractMesh, AxisType, PartitionSpec

from attention_jax.configuration import plain, typed
from attention_jax.devices.config import AXES, ShardingConfig
from attention_jax.devices.rules import mesh_axes, path_of, state_shardings
from attention_jax.errors import ConfigError
from attention_jax.layers.parameters import Parameter
from attention_jax.updates.averaging import MovingAverage
from attention_jax.updates.optimizers import Adam, build_optimizer
from attention_jax.updates.state import start_state
from tests.training.linear_model import LinearModel

PARAMETERS = {
    "decoder/cell/recurrent": Parameter.of("recurrent", hidden=64, gates=192),
    "decoder/cell/bias": Parameter.of("bias", gates=192),
    "decoder/readout/embedding": Parameter.of("kernel", embed=8, features=16),
    "encoder/kernel": Parameter.of("kernel", annotation=48, hidden=64),
    "odd": Parameter.of("kernel", input=33, context=35),
    "output": Parameter.of("embedding", vocab=40, features=64),
    "output_bias": Parameter.of("bias", vocab=40),
    "target_embedding": Parameter.of("word_embedding", vocab=40, embed=32),
}


def sizes(data=1, fsdp=1, tensor=1):
    return dict(zip(AXES, (data, fsdp, tensor), strict=True))


def axes_of(rules=(), **mesh):
    shapes = {path: parameter.shape for path, parameter in PARAMETERS.items()}
    axes = {path: parameter.axes for path, parameter in PARAMETERS.items()}
    return mesh_axes(shapes, axes, sizes(**mesh), rules)


def test_nothing_is_split_without_axes_to_split_it_over():
    assert set(axes_of(data=8).values()) == {()}
    assert set(axes_of([("gates", "tensor")], data=8).values()) == {()}


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


def test_tensor_splits_vocabularies_and_fsdp_the_rest():
    found = axes_of(fsdp=2, tensor=4)
    assert found["output"] == found["target_embedding"] == ("tensor", "fsdp")
    assert found["output_bias"] == ("tensor",)
    assert found["decoder/readout/embedding"] == ()
    assert found["decoder/cell/recurrent"] == (None, "fsdp")


def test_a_rule_splits_an_axis_of_every_parameter_that_has_it():
    found = axes_of([("gates", "tensor"), ("features", "fsdp")], fsdp=2, tensor=4)
    assert found["decoder/cell/recurrent"] == ("fsdp", "tensor")
    assert found["decoder/cell/bias"] == ("tensor",)
    assert found["decoder/readout/embedding"] == (None, "fsdp")  # however small
    assert found["output"] == ("tensor", "fsdp") and found["encoder/kernel"] == (None, "fsdp")


def test_the_first_rule_counts_where_two_split_a_parameter_over_the_same_axis():
    rules = [("features", "tensor"), ("vocab", "tensor")]
    assert axes_of(rules, tensor=4)["output"] == (None, "tensor")
    assert axes_of(rules[::-1], tensor=4)["output"] == ("tensor", None)
    assert axes_of(rules[:1], tensor=4)["output"] == (None, "tensor")  # before the default
    assert axes_of(rules, tensor=4)["output_bias"] == ("tensor",)


def test_an_axis_stays_whole_by_a_rule():
    found = axes_of([("vocab", None), ("hidden", None), ("features", "tensor")], fsdp=2, tensor=4)
    assert found["output_bias"] == () and found["output"] == (None, "tensor")
    assert found["target_embedding"] == (None, "fsdp")
    assert found["encoder/kernel"] == ("fsdp", None)


def test_what_a_rule_does_not_divide_stays_whole():
    found = axes_of([("features", "tensor")], tensor=32)
    assert found["output"] == (None, "tensor") and found["decoder/readout/embedding"] == ()


@pytest.mark.parametrize(
    ("rules", "mesh", "words"),
    [
        (
            [("cells", "tensor")], {"tensor": 2},
            "config.sharding.rules[0]: expected a logical axis of a parameter, one of annotation, "
            "context, embed, features, gates, hidden, input, vocab, found 'cells'",
        ),
        (
            [("vocab", None), ("context", "tensor")], {"tensor": 2},
            "rules[1]: expected tensor (2) to divide the axis 'context' of a parameter, found 35 "
            "in odd",
        ),
        (
            [("gates", "fsdp"), ("hidden", "tensor"), ("annotation", "tensor")],
            {"fsdp": 2, "tensor": 2},
            "rules[2]: expected an axis of a parameter that no rule before it splits over "
            "'tensor', found 'annotation'",
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
    axes = LinearModel().parameter_axes()
    shardings = state_shardings(shapes, axes, mesh, [("hidden", "tensor")])
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
    assert split["params/decoder/bias"] == PartitionSpec("tensor")  # entries of the vocabulary


def test_config_reads_back_with_its_rules():
    config = typed(ShardingConfig, {"tensor": 2, "rules": [["heads", "tensor"], ["vocab", None]]})
    assert config.rules == (("heads", "tensor"), ("vocab", None))
    assert typed(ShardingConfig, plain(config)) == config


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"data": 0}, "config.data: expected at least 1, or -1 for the rest, found 0"),
        ({"fsdp": -1}, "config.fsdp: expected -1 for one axis only, found it for data too"),
        ({"tensor": -2}, "config.tensor: expected at least -1, found -2"),
        ({"strategy": "pmap", "fsdp": 2}, "config.fsdp: expected 1 for strategy 'pmap'"),
        (
            {"strategy": "shard_map", "rules": [["heads", "data"]]},
            "config.rules: expected none for strategy 'shard_map'",
        ),
        (
            {"rules": [["output$", ["tensor", None]]]},
            "config.rules[0]: expected a logical axis and an axis of the mesh, such as ('heads', "
            "'tensor'), found ('output$', ['tensor', None])",
        ),
        ({"rules": [["heads", "model"]]}, "rules[0]: expected an axis of data, fsdp, tensor, foun"),
        (
            {"rules": [["heads", "fsdp"], ["vocab", None], ["heads", "tensor"]]},
            "config.rules[2]: expected one rule for 'heads', found two",
        ),
        ({"strategy": "jitt"}, "did you mean 'jit'"),
    ],
)
def test_config_names_what_is_wrong(fields, words):
    with pytest.raises(ConfigError) as error:
        typed(ShardingConfig, fields)
    assert words in str(error.value) and "\n" not in str(error.value)
