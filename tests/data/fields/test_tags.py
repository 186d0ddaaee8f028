"""Tags as a field: ids of the source's vocabulary, of texts with outputs and without."""

import numpy as np
import pytest

from attention_jax.data.examples import Inputs
from attention_jax.data.fields.tags import FIELD
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.errors import DataError
from attention_jax.types import SpecialIds

TEXTS = ["ev\tN;PL", "at\tN", "n\tV;X;PL"]


def test_tags_are_collated_beside_their_mask():
    vocabulary = SymbolVocabulary.train("tags_apart", TEXTS[:2])
    inputs = Inputs(TEXTS, vocabulary, (FIELD,))
    noun, plural = vocabulary.ids_of([";N", ";PL"])
    assert inputs.own_lengths == {"tags": 8} and inputs.input_names == ["tags", "tags_mask"]
    batch = FIELD.collate(inputs.columns["tags"], np.array([2, 0, -1]), {"tags": 3})
    unknown = SpecialIds.UNK
    np.testing.assert_array_equal(
        batch["tags"], [[unknown, unknown, plural], [noun, plural, 0], [0, 0, 0]]
    )
    assert batch["tags_mask"].sum(-1).tolist() == [3, 2, 0]


def test_texts_without_tags_have_no_such_field():
    inputs = Inputs(["ev"], SymbolVocabulary.train("characters", ["ev"]), (FIELD,))
    with pytest.raises(DataError, match="expected sources with tags, .*, found characters"):
        inputs.columns  # noqa: B018


@pytest.mark.parametrize("where", ["before", "after"])
def test_tags_are_read_once(where):
    inputs = Inputs(TEXTS, SymbolVocabulary.train(f"tags_{where}", TEXTS), (FIELD,))
    message = f"config.data.tags: expected apart beside the input tagged, found {where}"
    with pytest.raises(DataError, match=message):
        inputs.columns  # noqa: B018
