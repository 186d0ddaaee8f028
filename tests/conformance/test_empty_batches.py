"""A batch without rows, without target words or without source words, in every part found by name.

Shapes alone are looked at, and that values and gradients exist: nothing is computed.
"""

import jax
import jax.numpy as jnp
import pytest

from attention_jax.layers.decoder import DECODERS
from attention_jax.layers.encoder import ENCODERS
from attention_jax.layers.readout import READOUTS
from tests.conformance.test_rows_alone import X, batch
from tests.models.test_encoders_with_decoders import V, build, with_readout

EMPTY = {"rows": 0, "target words": 1, "source words": 2}
AXES = {"source": (0, 2), "target": (0, 1), "links": (0, 1, 2), "tags": (0,)}
AXES |= {"lexicon": (0, 2), "lexicon_probs": (0, 2)}
AXES |= {"extended_source": (0, 2), "unknown_words": (0,)}


def emptied(what):
    """Returns the batch of `test_rows_alone` with an axis of nothing."""
    given = {}
    for name, array in batch().items():
        axes = AXES[name.removesuffix("_mask")]
        given[name] = array
        if EMPTY[what] in axes:
            given[name] = jax.lax.slice_in_dim(array, 0, 0, axis=axes.index(EMPTY[what]))
    return given


def check(model, what):
    def loss(params, given):
        output = model.apply(params, given)
        log_probs = output.predictions.log_probs()
        nll = output.predictions.cross_entropy(given["target"], given["target_mask"]).sum()
        return nll, (log_probs, output.attention.weights)

    given, params = emptied(what), jax.eval_shape(model.init, jax.random.key(0))
    value_and_gradient = jax.value_and_grad(loss, has_aux=True)
    (_, (log_probs, weights)), gradient = jax.eval_shape(value_and_gradient, params, given)
    further = X if "unknown_words" in model.fields else 0
    assert log_probs.shape == (*given["target"].shape, V + further)
    assert weights.shape[:-1] == given["target"].shape
    assert weights.shape[-1] == given["source"].shape[1] or not model.encoder.keeps_positions
    assert jax.tree.map(jnp.shape, gradient) == jax.tree.map(jnp.shape, params)


@pytest.mark.parametrize("what", EMPTY)
@pytest.mark.parametrize("name", ENCODERS.names())
def test_encoder(name, what):
    check(build(name, "conditional_gru"), what)


@pytest.mark.parametrize("what", EMPTY)
@pytest.mark.parametrize("name", DECODERS.names())
def test_decoder(name, what):
    check(build("concatenation", name), what)


@pytest.mark.parametrize("what", EMPTY)
@pytest.mark.parametrize("name", READOUTS.names())
def test_readout(name, what):
    check(with_readout(name), what)
