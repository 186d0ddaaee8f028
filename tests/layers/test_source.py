"""Sources: names of their parameters, what their slots stand for, and their order."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.encoder import ENCODERS, Encoded, SequenceEncoder
from attention_jax.layers.input import INPUTS, InputSizes
from attention_jax.layers.parameters import Initialization, draw
from attention_jax.layers.source import Source, SourceConfig, checked_sources
from attention_jax.types import Call, SpecialIds

IDS = jnp.asarray([[4, 5, SpecialIds.EOS], [4, SpecialIds.EOS, 0]])
MASK = jnp.asarray([[True, True, True], [True, True, False]])
WORDS = [[True, True, False], [True, False, False]]


def build(name="source", is_tied=False, dropout=0.0):
    config = SourceConfig(
        INPUTS.config("tokens")(embedding_dim=4), ENCODERS.config("concatenation")()
    )
    return Source.build(config, InputSizes(name, 7, is_tied, dropout), None)


def encode(source, read=None, call=Call(), tables=None):
    if tables is None:
        tables = draw(source.tables, jax.random.key(0), Initialization())
    batch = {source.name: IDS, f"{source.name}_mask": MASK}
    keep = lambda vectors, mask, call: Encoded(vectors, mask)  # noqa: E731
    return source.encode(tables, read or keep, batch, call)


def test_parameters_of_the_only_source_keep_the_names_that_they_always_had():
    source, other = build(), build("image")
    assert (source.encoder_name, set(source.tables)) == ("encoder", {"source_embedding"})
    assert (other.encoder_name, set(other.tables)) == ("encoder_image", {"image_embedding"})


def test_a_source_that_is_tied_reads_the_target_embedding():
    source, table = build(is_tied=True), jnp.arange(28.0).reshape(7, 4)
    assert source.tables == {}
    encoded, _ = encode(source, tables={"target_embedding": table})
    np.testing.assert_array_equal(encoded.annotations, table[IDS])


def test_slots_are_tokens_where_an_encoder_keeps_positions():
    encoded, slots = encode(build())
    assert slots.spans is None and slots.is_word.tolist() == WORDS
    np.testing.assert_array_equal(slots.mask, MASK)
    np.testing.assert_array_equal(encoded.aux["source_ids"], IDS)


class Merging(SequenceEncoder):
    """Stands for an encoder that merges what it reads; tests say what it returns."""

    keeps_positions = False
    parameters = {}  # noqa: RUF012

    def encode(self, params, embedded, mask, call=Call()):
        raise NotImplementedError


def test_slots_that_are_no_tokens_have_to_say_what_they_stand_for():
    source = dataclasses.replace(build(), encoder=Merging())
    assert source.slot_vocabulary_size is None and build().slot_vocabulary_size == 7
    with pytest.raises(ValueError, match="Merging: expected spans .*, found none"):
        encode(source)
    mask = jnp.asarray([[True, True], [True, False]])
    spans = jnp.asarray([[[0, 1], [1, 3]], [[0, 2], [2, 2]]])
    encoded, slots = encode(
        source, lambda vectors, *_: Encoded(vectors[:, :2], mask, spans=spans)
    )
    assert slots.is_word.tolist() == [[True, True], [True, False]]
    assert encoded.aux == {} and slots.spans is spans


def test_input_and_encoder_have_keys_of_their_own():
    kept = []
    source = build(dropout=0.5)
    call = Call(True, jax.random.key(3))
    encode(source, lambda *arguments: kept.append(arguments[2]) or Encoded(*arguments[:2]), call)
    assert kept[0].train
    assert (jax.random.key_data(kept[0].rng) == jax.random.key_data(call.fold(1).rng)).all()


@pytest.mark.parametrize("name", ["target", "output", "a-b", ""])
def test_names_that_do_not_serve_are_refused(name):
    with pytest.raises(ValueError, match=f"sources.{name}: expected a name"):
        checked_sources({name: SourceConfig()})
    assert checked_sources({"image": SourceConfig()}) == {"image": SourceConfig()}


def test_the_plain_source_comes_first_in_whatever_order_a_config_has_them():
    configs = {name: SourceConfig() for name in ("again", "source", "above")}
    assert list(checked_sources(configs)) == ["source", "above", "again"]
