"""The example of a mechanism in CONTRIBUTING.md works as it stands there."""

import importlib
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers import mechanisms
from attention_jax.layers.attention import Attention
from attention_jax.layers.mechanism import MECHANISMS

NAME = "my_bilinear"


@pytest.fixture
def module(repository, tmp_path, monkeypatch):
    """The example in a file beside the mechanisms, as the page says to put it."""
    section = (repository / "CONTRIBUTING.md").read_text().partition("## Adding a mechanism")[2]
    text = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    (tmp_path / f"{NAME}.py").write_text(text)
    monkeypatch.setattr(mechanisms, "__path__", [*mechanisms.__path__, str(tmp_path)])
    full_name = f"{mechanisms.__name__}.{NAME}"
    yield importlib.import_module(full_name)
    del sys.modules[full_name]


def test_example_is_found_and_attends(module, rng):
    assert NAME in MECHANISMS.names()
    keys = jax.random.split(rng, 3)
    query, memory = jax.random.normal(keys[0], (2, 3, 4)), jax.random.normal(keys[1], (2, 5, 6))
    mask = jnp.arange(5) < jnp.array([5, 2])[:, None]
    attention = Attention(module.Config())
    (output, _), variables = attention.init_with_output(keys[2], query, memory, mask)
    (kernel,) = jax.tree.leaves(variables)
    scores = np.einsum("btq,qk,bsk->bts", query, kernel, memory)
    weights = np.where(mask[:, None], np.exp(scores), 0.0)
    weights /= weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(output.weights, weights, rtol=1e-5, atol=1e-6)
