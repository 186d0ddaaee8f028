"""Every parameter of every config has logical axes, which place it as its path did before."""

import importlib
import math
import pkgutil
import re

import jax
import pytest

import configs
from attention_jax.configuration import typed
from attention_jax.devices.config import AXES
from attention_jax.devices.rules import mesh_axes, path_of
from attention_jax.layers import parameters
from attention_jax.models import MODELS, build_model

CONFIGS = sorted(
    module.name for module in pkgutil.iter_modules(configs.__path__) if module.name != "common"
)
MESHES = [(1, 8, 1), (1, 1, 8), (2, 2, 2), (1, 2, 4), (1, 4, 1), (1, 1, 5)]
TABLE = re.compile(r"^((forward|reverse)/)?((\w+_)?embedding|output|output_bias)$")


def by_path(path, shape, sizes):
    """How parameters were placed without a rule when their paths decided it."""
    axes, tensor, fsdp = [None] * len(shape), sizes["tensor"], sizes["fsdp"]
    if tensor > 1 and shape and TABLE.search(path) and shape[0] % tensor == 0:
        axes[0] = "tensor"
    if fsdp > 1 and math.prod(shape) >= 1024:
        free = [i for i, size in enumerate(shape) if axes[i] is None and size % fsdp == 0]
        if free:
            axes[max(free, key=lambda i: shape[i])] = "fsdp"
    return tuple(axes) if any(axes) else ()


@pytest.mark.parametrize("name", CONFIGS)
def test_axes_are_those_of_every_parameter_and_place_it_as_its_path_did(name):
    values = importlib.import_module(f"configs.{name}").get_config("smoke").model.to_dict()
    model = build_model(typed(MODELS.config(values["name"]), values, "config.model"), 40, 40)
    leaves = jax.tree.leaves_with_path(jax.eval_shape(model.init, jax.random.key(0)))
    shapes = {path_of(path): leaf.shape for path, leaf in leaves}
    leaves = jax.tree.leaves_with_path(model.parameter_axes())
    axes = {path_of(path): tuple(leaf) for path, leaf in leaves}
    assert axes.keys() == shapes.keys()
    for path, shape in shapes.items():
        assert len(axes[path]) == len(shape) == len(set(axes[path])), path
        for axis in axes[path]:
            assert re.search(rf"\b{axis}\b", parameters.__doc__), f"{axis} is in no table"
    for mesh in MESHES:
        sizes = dict(zip(AXES, mesh, strict=True))
        expected = {path: by_path(path, shape, sizes) for path, shape in shapes.items()}
        assert any(expected.values()) and mesh_axes(shapes, axes, sizes) == expected
