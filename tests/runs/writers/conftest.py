"""What tests of the writers share: an opening, and services that only remember."""

import sys
import types

import pytest

from attention_jax.runs.writers import Opening


@pytest.fixture
def opening(tmp_path):
    """Returns a function that makes the opening of a run."""

    def make(**fields) -> Opening:
        config = {"seed": 3, "model": {"name": "encoder_decoder", "decoder": {"hidden_dim": 8}}}
        return Opening(tmp_path, config, **fields)

    return make


@pytest.fixture
def install(monkeypatch):
    """Returns a function that puts modules in the place of packages."""

    def put(name: str, **content) -> None:
        module = types.ModuleType(name)
        module.__file__ = f"{name}.py"
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)

    return put
