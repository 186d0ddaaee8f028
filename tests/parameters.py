"""Parameters of models under test."""

import jax
import jax.numpy as jnp
import numpy as np


def drawn(model, seed=0, scale=0.4):
    """Draws parameters by NumPy, which compiles nothing; scales and biases are as random as all."""
    rng, shapes = np.random.default_rng(seed), jax.eval_shape(model.init, jax.random.key(0))
    return jax.tree.map(
        lambda leaf: jnp.asarray(scale * rng.normal(size=leaf.shape), leaf.dtype), shapes
    )


def carried_over(params, drawn):
    """Returns `drawn` with the numbers of `params` wherever both have one.

    A leaf is one of the other's at the same path; of different sizes, they share a corner. Outputs
    of the two trees then differ by what the models make of them, and by what one has more.
    """
    known = {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree.leaves_with_path(params)}

    def carry(path, leaf):
        old = known.get(jax.tree_util.keystr(path))
        if old is None or old.ndim != leaf.ndim:
            return leaf
        corner, carried = tuple(map(slice, np.minimum(old.shape, leaf.shape))), np.array(leaf)
        carried[corner] = np.asarray(old)[corner]
        return jnp.asarray(carried)

    return jax.tree.map_with_path(carry, drawn)
