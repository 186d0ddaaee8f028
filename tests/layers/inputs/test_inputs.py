"""Inputs: what they read, what they make of it, and that padding changes nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.errors import ConfigError
from attention_jax.layers.input import INPUTS, InputSizes
from attention_jax.layers.parameters import Initialization, draw
from attention_jax.types import Call, SpecialIds
from tests.input_fields import zero_fields

SIZES = InputSizes("speech", 9)
MASK = jnp.asarray([[True, True, True], [True, False, False]])


def build(name, sizes=SIZES, **fields):
    reading = INPUTS.find(name).build(INPUTS.config(name)(**fields), sizes)
    return reading, draw(reading.parameters, jax.random.key(0), Initialization())


@pytest.mark.parametrize("name", INPUTS.names())
def test_fields_become_vectors(name):
    reading, params = build(name)
    embedded = reading.embed(params, zero_fields(reading, 2, 3))
    assert embedded.vectors.shape == (2, 3, reading.depth)
    assert embedded.mask.shape == embedded.is_word.shape == (2, 3) and embedded.mask.all()


@pytest.mark.parametrize("name", INPUTS.names())
def test_dropout_is_in_training_only(name):
    reading, params = build(name, SIZES._replace(dropout=0.5))
    example = zero_fields(reading, 2, 3)
    field = reading.fields[0]
    example[field] = example[field] + 1
    whole = reading.embed(params, example).vectors
    dropped = reading.embed(params, example, Call(True, jax.random.key(0))).vectors
    is_kept = np.asarray(dropped != 0)
    assert 0 < is_kept.mean() < 1
    np.testing.assert_allclose(dropped[is_kept], 2 * whole[is_kept], rtol=1e-6)


def test_tokens_are_looked_up_and_their_end_is_no_word():
    reading, params = build("tokens", embedding_dim=4)
    ids = jnp.asarray([[5, 7, SpecialIds.EOS], [SpecialIds.EOS, 0, 0]])
    embedded = reading.embed(params, {"speech": ids, "speech_mask": MASK})
    np.testing.assert_array_equal(embedded.vectors, params["embedding"][ids])
    assert embedded.is_word.tolist() == [[True, True, False], [False] * 3]
    assert embedded.aux["source_ids"] is ids and reading.vocabulary_size == 9


def test_tokens_that_are_tied_have_no_table():
    reading, _ = build("tokens", SIZES._replace(is_tied=True))
    assert reading.parameters == {}


def test_frames_are_projected_and_all_of_them_are_words(numpy_rng):
    reading, params = build("frames", frame_dim=2, embedding_dim=4)
    frames = numpy_rng.normal(size=(2, 3, 2)).astype(np.float32)
    weights = params["projection"]
    expected = frames @ np.asarray(weights["kernel"]) + np.asarray(weights["bias"])
    frames[~np.asarray(MASK)] = np.nan
    embedded = reading.embed(params, {"speech": jnp.asarray(frames), "speech_mask": MASK})
    real = np.asarray(MASK)
    np.testing.assert_allclose(embedded.vectors[real], expected[real], rtol=1e-5, atol=1e-6)
    assert np.isfinite(embedded.vectors).all()
    np.testing.assert_array_equal(embedded.is_word, MASK)
    assert reading.vocabulary_size is None and embedded.aux == {}


def test_frames_of_another_depth_are_one_clear_line():
    reading, params = build("frames", frame_dim=3)
    message = "sources.speech.input.frame_dim: expected the depth of the frames, found 3"
    with pytest.raises(ConfigError, match=message):
        reading.embed(params, {"speech": jnp.zeros((2, 3, 2)), "speech_mask": MASK})


def test_pixels_of_a_cell_become_a_vector_and_padding_changes_nothing(numpy_rng):
    """A picture of two columns alone, and beside a column of padding whose pixels are anything."""
    reading, params = build("pixels", rows=2, cell=4, filters=3, embedding_dim=5)
    cells = numpy_rng.uniform(size=(1, 6, 16)).astype(np.float32)
    mask = jnp.arange(6)[None] < 4
    cells[:, 4:] = np.nan
    padded = reading.embed(params, {"speech": jnp.asarray(cells), "speech_mask": mask})
    alone = {"speech": jnp.asarray(cells[:, :4]), "speech_mask": mask[:, :4]}
    alone = reading.embed(params, alone)
    np.testing.assert_allclose(padded.vectors[:, :4], alone.vectors, rtol=1e-5, atol=1e-6)
    assert np.isfinite(padded.vectors).all() and not np.asarray(padded.vectors[:, 4:]).any()
    np.testing.assert_array_equal(padded.is_word, mask)
    # The last layer by hand, of what the first has made of all 8 x 8 pixels.
    first, last = (jax.tree.map(np.asarray, params[f"convolution_{each}"]) for each in (0, 1))
    picture = 2 * cells[0, :4].reshape(2, 2, 4, 4).swapaxes(1, 2).reshape(8, 8, 1) - 1
    hidden = np.maximum(_halved(picture, first), 0)
    expected = _halved(hidden, last).reshape(4, 5)
    expected = (expected - expected.mean(-1, keepdims=True)) / expected.std(-1, keepdims=True)
    np.testing.assert_allclose(alone.vectors[0], expected, rtol=1e-4, atol=1e-5)


def _halved(picture, weights):
    """A convolution of 3 x 3 places at every second place, in NumPy."""
    depth = picture.shape[-1]
    padded = np.pad(picture.astype(np.float64), ((0, 1), (0, 1), (0, 0)))
    kernel = weights["kernel"].reshape(3, 3, depth, -1)
    side = picture.shape[0] // 2
    found = np.zeros((side, side, kernel.shape[-1])) + weights["bias"]
    for x, y in np.ndindex(side, side):
        for u, v in np.ndindex(3, 3):
            found[x, y] += padded[2 * x + u, 2 * y + v] @ kernel[u, v]
    return found


def test_pixels_of_other_cells_are_one_clear_line():
    reading, params = build("pixels", cell=4)
    message = r"sources.speech.input: expected cells of 16 numbers, as cell=4 and channels=1 have"
    with pytest.raises(ConfigError, match=message):
        reading.embed(params, {"speech": jnp.zeros((2, 3, 64)), "speech_mask": MASK})
