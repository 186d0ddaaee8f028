"""Origins of outputs in words: the likelier way of each token, EOS left out."""

import numpy as np

from attention_jax.decoding.origins import Origins


def test_the_larger_share_is_named():
    """What is copied is one way, from however many positions; the best of them stands for it."""
    copied = np.array([[0.1, 0.0, 0.0], [0.1, 0.45, 0.25], [0.3, 0.3, 0.0], [0.0, 0.0, 0.0]])
    origins = Origins(1 - copied.sum(axis=-1), copied)
    assert str(origins) == "g:0.90 c1:0.80 c0:0.60"


def test_an_empty_output_has_no_words():
    assert str(Origins(np.ones(1), np.zeros((1, 2)))) == ""
