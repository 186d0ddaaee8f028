"""Words among tokens, and attention between them."""

import dataclasses
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.data.text.byte_pairs import BytePairVocabulary
from attention_jax.decoding.forced_decoding import ForcedAttention, forced_attention, has_heads
from attention_jax.decoding.word_units import (
    forced_words,
    in_words,
    split_words,
    tokens_of_words,
)
from attention_jax.errors import UserError
from attention_jax.layers.mechanisms import multi_head
from attention_jax.runs.load import TrainedRun, shift_of_heads
from tests.training.untrained import untrained, untrained_run, write_text


@pytest.fixture(scope="module")
def subwords(tmp_path_factory):
    """A run on subwords with two heads, and its test split."""
    folder = tmp_path_factory.mktemp("run")
    run, task = untrained_run(folder / "two", *write_text(folder), kind="bpe", num_heads=2)
    return run, task.split("test").select(range(6))


def test_words_may_be_written_with_entities_where_the_text_is_and_where_it_is_not(subwords):
    vocabulary = subwords[1].source_vocabulary
    for text, words in (
        ("the &apos; new", ["The", "&apos;", "new"]),
        ("the ' new", ["the", "&apos;", "New"]),
        ("the-new", ["the", "@-@", "new"]),
    ):
        assert len(tokens_of_words(vocabulary, text, words)) == 3
    with pytest.raises(ValueError, match="expected the text"):
        tokens_of_words(vocabulary, "the new", ["the", "old"])


def test_words_of_a_split_are_those_given_those_of_the_text_or_of_the_vocabulary(subwords):
    _, split = subwords
    text = split.sources[0]
    apart = text.replace(".", " .").upper().split()
    assert split_words(split).sources[0] == text.split()  # as subwords begin words
    assert split_words(split, required=[0]).sources[0] == text.split()
    given = [apart, *(one.split() for one in split.sources[1:])]
    assert split_words(split, given, required=[0]).sources[0] == apart
    wrong = [["nothing"], *given[1:]]
    assert split_words(split, wrong).sources[0] == text.split()
    with pytest.raises(UserError, match="--alignment: words of pair 0: expected the text"):
        split_words(split, wrong, required=[0])


def test_tokens_of_words_undo_entities_and_case(subwords):
    vocabulary = subwords[0].source_vocabulary
    tokens = tokens_of_words(
        vocabulary, "the cat & a-dog", ["THE", "cat", "&amp;", "a", "@-@", "dog"]
    )
    assert tokens[0][0] == 0 and len(tokens) == 6
    # A sigma that ends a word is another letter, and a piece may end where the word does not.
    assert len(tokens_of_words(vocabulary, "ΟΔΟΣΑ", ["οδοσα"])) == 1
    assert len(tokens_of_words(vocabulary, "οδος", ["ΟΔΟΣ"])) == 1


def test_forced_attention_is_that_of_the_model_with_the_heads_mean(subwords):
    run, split = subwords
    assert has_heads(run, split)
    found = forced_attention(run, split)
    attend = jax.jit(lambda params, batch: run.model.apply(params, batch).attention.weights)
    for index, forced in enumerate(found[:2]):
        source, target = split.source_ids[index][None], split.target_ids[index][None]
        batch = {
            "source": source,
            "source_mask": np.ones_like(source, bool),
            "target": target,
            "target_mask": np.ones_like(target, bool),
        }
        batch = {name: jnp.asarray(array) for name, array in batch.items()}
        weights = attend(run.params, batch)[0]
        np.testing.assert_allclose(forced.weights, weights, atol=1e-3)
        assert forced.heads.shape == (2, *forced.weights.shape)
        np.testing.assert_allclose(forced.heads.mean(axis=0), forced.weights, atol=1e-6)
        np.testing.assert_allclose(forced.heads.sum(axis=-1), 1, atol=1e-5)
        assert np.abs(forced.heads[0] - forced.heads[1]).max() > 1e-3


def test_forced_attention_of_outputs_is_that_of_their_ids(subwords):
    run, split = subwords
    ids = [np.append(each[::-1][1:], 2).astype(np.int32) for each in split.target_ids]
    written = split.with_target_ids(ids)
    assert written.target_ids == ids and written.sources == split.sources
    assert [len(forced.weights) for forced in forced_attention(run, written)] == [*map(len, ids)]
    assert split.target_ids is not ids  # the split itself is as it was


def test_forced_words_merge_weights_and_heads_alike(subwords):
    run, split = subwords
    words = split_words(split)
    for index, found in enumerate(forced_words(run, split, words)):
        shape = (len(words.targets[index]), len(words.sources[index]))
        assert [each.weights.shape for each in (found, *found.heads)] == [shape] * 3
        np.testing.assert_allclose(found.weights.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("has_aligner", [False, True])
def test_heads_are_shifted_with_the_links_unless_an_aligner_says_these(subwords, has_aligner):
    run, split = subwords
    words, forced = split_words(split), forced_attention(run, split)
    shift = shift_of_heads(Mock(spec=TrainedRun, has_aligner=has_aligner), 1)
    plain, moved = (in_words(forced, split, words, 1, each)[0] for each in (0, 1))
    found = in_words(forced, split, words, 1, shift)[0].linking
    expected = (plain if has_aligner else moved).linking
    np.testing.assert_array_equal(found.words.weights, moved.linking.words.weights)
    for head, (mine, other) in enumerate(zip(found.heads, expected.heads, strict=True)):
        np.testing.assert_array_equal(mine.weights, other.weights)
        as_it_is = np.array_equal(mine.weights, plain.heads[head].weights)
        assert as_it_is == has_aligner


def test_one_head_is_no_heads(tmp_path):
    run, task = untrained_run(tmp_path / "run", *write_text(tmp_path))
    split = task.split("test").select([0, 1])
    assert not has_heads(run, split)
    assert [forced.heads for forced in forced_attention(run, split)] == [None, None]
    # Which has an axis of heads all the same.
    attention = multi_head.Config(num_heads=1, head_dim=8)
    model = dataclasses.replace(run.config.model, attention=attention)
    run, _ = untrained(dataclasses.replace(run.config, model=model), tmp_path / "multi_head")
    assert not has_heads(run, split)
    assert [forced.heads for forced in forced_attention(run, split)] == [None, None]


def test_a_symbol_with_which_all_texts_begin_is_of_no_word_and_keeps_its_place(subwords):
    vocabulary = BytePairVocabulary(["<s>", "\u0120", *"abcd"], [], opening="<s>")
    split = dataclasses.replace(
        subwords[1].select([0]), sources=["a bc"], targets=["cd b"],
        source_vocabulary=vocabulary, target_vocabulary=vocabulary,
    )  # fmt: skip
    assert len(split.source_ids[0]) == len(split.target_ids[0]) == 6
    weights = np.zeros((6, 6))
    # <s> a space b c EOS, and of the target <s> c d space b EOS
    weights[[0, 1, 2, 3, 4, 5], [0, 3, 4, 0, 1, 5]] = 1.0
    words = split_words(split)
    assert (words.sources, words.targets) == ([["a", "bc"]], [["cd", "b"]])
    (found,) = in_words([ForcedAttention(weights, None)], split, words)
    np.testing.assert_allclose(found.weights, [[0, 1], [1, 0]], atol=1e-6)
