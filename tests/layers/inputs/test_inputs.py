"""Inputs: what they read, what they make of it, and that padding changes nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.errors import ConfigError
from attention_jax.layers.input import INPUTS, InputSizes
from attention_jax.layers.parameters import Initialization, draw
from attention_jax.types import Call, SpecialIds

SIZES = InputSizes("speech", 9)
MASK = jnp.asarray([[True, True, True], [True, False, False]])


def build(name, sizes=SIZES, **fields):
    reading = INPUTS.find(name).build(INPUTS.config(name)(**fields), sizes)
    return reading, draw(reading.parameters, jax.random.key(0), Initialization())


@pytest.mark.parametrize("name", INPUTS.names())
def test_an_example_has_the_fields_and_gives_vectors(name):
    reading, params = build(name)
    example = reading.example(2, 3)
    assert set(example) == set(reading.fields)
    embedded = reading.embed(params, example)
    assert embedded.vectors.shape == (2, 3, reading.depth)
    assert embedded.mask.shape == embedded.is_word.shape == (2, 3) and embedded.mask.all()


@pytest.mark.parametrize("name", INPUTS.names())
def test_dropout_is_in_training_only(name):
    reading, params = build(name, SIZES._replace(dropout=0.5))
    example = {**reading.example(2, 3)}
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
