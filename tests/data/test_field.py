import numpy as np
import pytest

from attention_jax.data.field import SOURCE, Field

LENGTHS = {"S": 4, "T": 3, "F": 2}


def test_values_are_padded_to_the_right():
    field = Field(name="tag", axes=("S",), mask="tag_mask", padding=-1)
    batch = field.collate([[5, 6], [7], []], np.array([1, -1, 0]), LENGTHS)
    assert field.names == ("tag", "tag_mask")
    np.testing.assert_array_equal(batch["tag"], [[7, -1, -1, -1], [-1] * 4, [5, 6, -1, -1]])
    np.testing.assert_array_equal(batch["tag_mask"].sum(axis=1), [1, 0, 2])
    assert batch["tag"].dtype == np.int32 and batch["tag_mask"].dtype == bool


def test_values_have_as_many_axes_as_they_like():
    number = Field(name="weight", dtype=np.float32)
    batch = number.collate([0.5, 2.0], np.array([1, 0, -1]), LENGTHS)
    np.testing.assert_array_equal(batch["weight"], [2.0, 0.5, 0.0])
    frames = Field(name="frames", axes=("F", 3), dtype=np.float32)
    batch = frames.collate([np.ones((1, 3)), np.full((2, 3), 7)], np.array([0, 1]), LENGTHS)
    np.testing.assert_array_equal(batch["frames"][:, :, 0], [[1, 0], [7, 7]])


def test_a_mask_goes_along_an_axis():
    with pytest.raises(ValueError, match="field weight: expected an axis for the mask 'w'"):
        Field(name="weight", mask="w")


def test_a_source_is_known_before_the_output_is():
    assert SOURCE.is_input and SOURCE.names == ("source", "source_mask")
