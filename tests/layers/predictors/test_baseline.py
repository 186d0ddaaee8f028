"""The learnt baseline against NumPy float64; what it learns stays its own."""

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.layers.encoder import Encoded
from attention_jax.layers.predictors import baseline

RNG = np.random.default_rng(0)
ANNOTATIONS = RNG.normal(size=(3, 4, 5))
MASK = np.arange(4) < np.asarray([[4], [2], [0]])


def predictor():
    made = baseline.build(baseline.Config(hidden_dim=6), 5)
    shapes = {name: parameter.shape for name, parameter in made.parameters.items()}
    return made, {name: RNG.normal(size=shape) for name, shape in shapes.items()}


def predict(made, params, annotations):
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), params)
    return made.predict(params, Encoded(jnp.asarray(annotations, float), jnp.asarray(MASK)))


def test_one_number_of_the_mean_of_the_real_annotations():
    made, params = predictor()
    mean = (ANNOTATIONS * MASK[..., None]).sum(1) / np.maximum(MASK.sum(1), 1)[:, None]
    hidden = np.tanh(mean @ params["hidden"] + params["hidden_bias"])
    expected = (hidden @ params["output"] + params["output_bias"])[:, 0]
    padded = np.where(MASK[..., None], ANNOTATIONS, np.nan)
    np.testing.assert_allclose(predict(made, params, padded), expected, rtol=1e-5)


def test_the_encoder_does_not_learn_from_it():
    made, params = predictor()

    def total(params, annotations):
        return predict(made, params, annotations).sum()

    of_params, of_annotations = jax.grad(total, argnums=(0, 1))(
        jax.tree.map(jnp.asarray, params), jnp.asarray(ANNOTATIONS, float)
    )
    assert all(leaf.any() for leaf in jax.tree.leaves(of_params)) and not of_annotations.any()
