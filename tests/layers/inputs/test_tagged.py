"""Letters beside tags: against NumPy, whatever the order of the tags and their padding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.input import INPUTS, InputSizes
from attention_jax.layers.parameters import Initialization, draw

LETTERS = jnp.asarray([[5, 6, 2], [7, 2, 0]])
MASK = LETTERS > 0
TAGS = jnp.asarray([[8, 9, 4], [9, 0, 0]])


@pytest.fixture
def tagged():
    config = INPUTS.config("tagged")(embedding_dim=3)
    reading = INPUTS.find("tagged").build(config, InputSizes("source", 10))
    return reading, draw(reading.parameters, jax.random.key(0), Initialization())


def batch(tags=TAGS, mask=TAGS > 0):
    return {"source": LETTERS, "source_mask": MASK, "tags": tags, "tags_mask": mask}


def test_the_sum_of_the_tags_stands_beside_each_letter(tagged):
    reading, params = tagged
    table = np.asarray(params["embedding"], np.float64)
    embedded = reading.embed(params, batch())
    expected = np.zeros((2, 3, 6))
    expected[..., :3] = table[np.asarray(LETTERS)]
    expected[0, :, 3:] = table[[8, 9, 4]].sum(0)
    expected[1, :, 3:] = table[9]
    np.testing.assert_allclose(embedded.vectors, expected, rtol=1e-6, atol=1e-6)
    assert reading.depth == 6 and reading.vocabulary_size == 10
    assert embedded.is_word.tolist() == [[True, True, False], [True, False, False]]
    assert embedded.aux["source_ids"] is LETTERS
    assert reading.fields == ("source", "source_mask", "tags", "tags_mask")


def test_neither_the_order_of_tags_nor_their_padding_counts(tagged):
    reading, params = tagged
    found = reading.embed(params, batch()).vectors
    other = jnp.asarray([[4, 8, 9, 3], [9, 3, 3, 3]])
    again = reading.embed(params, batch(other, other > 3)).vectors
    np.testing.assert_allclose(found, again, rtol=1e-6)


def test_its_table_is_no_targets():
    config = INPUTS.config("tagged")()
    with pytest.raises(ValueError, match="tie_embeddings: expected 'none' or 'target' for sources"):
        INPUTS.find("tagged").build(config, InputSizes("source", 10, is_tied=True))
