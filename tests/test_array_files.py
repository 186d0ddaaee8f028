"""NumPy archives: what is asked for is read, and anything else is one line."""

import io

import numpy as np
import pytest

from attention_jax.array_files import Form, read_arrays
from attention_jax.errors import DataError

FORMS = {"ids": Form("iu", 1), "probs": Form("f", 2)}
GOOD = {"ids": np.arange(3), "probs": np.ones((2, 2))}


def packed(**arrays):
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def single():
    content = io.BytesIO()
    np.save(content, np.arange(3))
    return content.getvalue()


def test_what_is_asked_for_is_read_and_the_rest_is_left_alone():
    found = read_arrays(packed(**GOOD, more=np.array([{}], object)), FORMS, "x")
    assert [*found] == ["ids", "probs"]
    np.testing.assert_array_equal(found["ids"], GOOD["ids"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "found no archive of NumPy's (No data left in file)"),
        (b"garbage", "found no archive of NumPy's"),
        (single(), "found no archive of NumPy's"),
        (packed(**GOOD)[:-30], "found no archive of NumPy's"),
        (packed(ids=np.arange(3)), "found nothing as 'probs'"),
        (packed(**{**GOOD, "ids": np.ones(3)}), "found float64 in place of whole numbers as 'ids'"),
        (packed(**{**GOOD, "ids": np.array(["a"])}), "found <U1 in place of whole numbers"),
        (packed(**{**GOOD, "ids": np.array([{}], object)}), "found no archive of NumPy's"),
        (packed(**{**GOOD, "probs": np.ones(2)}), "found 1 axes in place of 2 as 'probs'"),
        (packed(**{**GOOD, "probs": np.array([[1, np.nan]])}), "numbers that are not finite"),
    ],
)
def test_anything_else_is_a_line(content, words):
    with pytest.raises(DataError) as caught:
        read_arrays(content, FORMS, "FILE: expected a lexicon")
    assert str(caught.value).startswith("FILE: expected a lexicon, found ")
    assert words in str(caught.value)
