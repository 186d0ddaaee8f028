"""An encoder that halves the number of slots, as a file of an extension."""

import contextlib
import importlib

import pytest

from attention_jax.discovery import VARIABLE

_PACKAGE = "attention_jax.layers.encoders"
_TEXT = '''
"""A pyramid: two neighbouring vectors make one slot.

  h_j = tanh([x_2j; x_2j+1] W + b)
"""

import dataclasses

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.encoder import Encoded, SequenceEncoder
from attention_jax.layers.parameters import affine
from attention_jax.ops.masks import zero_padding
from attention_jax.types import Call

PAPER = "Chan, Jaitly, Le and Vinyals (2016), section 3.1, without its recurrence"


@dataclasses.dataclass(frozen=True)
class Config:
    name: str = setting("halving")
    hidden_dim: int = setting(16, at_least=1)


def build(config, input_dim, attention=None):
    return Pyramid(input_dim, config.hidden_dim)


@dataclasses.dataclass(frozen=True)
class Pyramid(SequenceEncoder):
    input_dim: int
    output_dim: int
    keeps_positions = False

    @property
    def parameters(self):
        return {"merge": affine(input=2 * self.input_dim, annotation=self.output_dim)}

    def encode(self, params, embedded, mask, call=Call()):
        odd = embedded.shape[1] % 2
        vectors = jnp.pad(zero_padding(embedded, mask), ((0, 0), (0, odd), (0, 0)))
        real = jnp.pad(mask, ((0, 0), (0, odd))).reshape(len(mask), -1, 2)
        pairs = vectors.reshape(*real.shape[:2], -1)
        merged = jnp.tanh(pairs @ params["merge"]["kernel"] + params["merge"]["bias"])
        first = jnp.broadcast_to(2 * jnp.arange(real.shape[1]), real.shape[:2])
        spans = jnp.stack([first, first + real.sum(-1)], axis=-1)
        return Encoded(zero_padding(merged, real.any(-1)), real.any(-1), spans=spans)
'''


@contextlib.contextmanager
def pyramid_in(folder):
    """Makes `halving` one of the encoders, for a while; `pyramid` is the example of the docs."""
    file = folder / "layers" / "encoders" / "halving.py"
    file.parent.mkdir(parents=True)
    file.write_text(_TEXT)
    package = importlib.import_module(_PACKAGE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(folder))
        patch.setattr(package, "__path__", list(package.__path__))
        yield
