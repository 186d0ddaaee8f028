import numpy as np
import pytest

from attention_jax.data.builders.cmudict import Config as CmudictConfig
from attention_jax.data.examples import Inputs
from attention_jax.data.field import PROMPT, Field
from attention_jax.data.loading import build_task
from attention_jax.errors import DataError
from attention_jax.types import SpecialIds


@pytest.fixture(scope="module")
def pronunciation(tmp_path_factory):
    return build_task(CmudictConfig(), tmp_path_factory.mktemp("vocab"))


def test_samples_of_a_split_are_nested_and_in_order(pronunciation):
    split = pronunciation.split("test")
    small, large = split.sample(50), split.sample(500)
    assert set(small.sources) <= set(large.sources)
    assert small.sources == sorted(small.sources)
    assert len({word[0] for word in small.sources}) > 10
    assert split.sample(10**6) is split
    assert len(small.source_ids) == len(small.references) == 50


def test_inputs_have_no_outputs(pronunciation):
    vocabulary = pronunciation.source_vocabulary
    inputs = Inputs(["cat", ""], vocabulary)
    assert vocabulary.decode(inputs.source_ids[0]) == "cat"
    assert inputs.source_ids[1].tolist() == [SpecialIds.EOS]
    assert inputs.input_names == ["source", "source_mask"] and list(inputs.columns) == ["source"]
    assert inputs.lengths("S").tolist() == [4, 1] and inputs.lengths("T").tolist() == [1, 1]
    prompts = Inputs(["cat"], vocabulary, (PROMPT,))
    assert prompts.input_names == ["prompt", "prompt_mask"]
    np.testing.assert_array_equal(prompts.columns["prompt"][0], inputs.source_ids[0])


def test_a_field_belongs_to_its_example(pronunciation):
    """Also in a part of the examples; some fields are part of what tells the data from other."""
    rank = Field(name="rank", fingerprint=lambda value: str(value).encode())
    note = Field(name="note")
    split = pronunciation.split("test").select(range(4))
    ranked = split.with_field(rank, [3, 1, 4, 1])
    assert ranked.select([2, 0]).columns["rank"] == [4, 3]
    assert split.with_field(note, [3, 1, 4, 1]).content() == split.content()
    assert ranked.content() != split.content()
    assert ranked.content() != split.with_field(rank, [3, 1, 4, 2]).content()
    with pytest.raises(DataError, match="field 'rank': expected a value for each example"):
        split.with_field(rank).columns  # noqa: B018


def test_axes_of_a_field_s_own_are_as_long_as_its_longest_value(pronunciation):
    frames = Field(name="frames", axes=("F", 2), dtype=np.float32)
    split = pronunciation.split("test").select(range(3))
    values = [np.ones((length, 2)) for length in (3, 9, 1)]
    assert split.with_field(frames, values).own_lengths == {"F": 16}
    assert split.own_lengths == {}
