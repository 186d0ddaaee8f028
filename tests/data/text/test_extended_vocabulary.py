"""Ids beyond the vocabulary: a source's own words, each once, in sources, targets and outputs."""

import dataclasses

import numpy as np
import pytest

from attention_jax.data.config import DataConfig
from attention_jax.data.examples import Inputs, Split
from attention_jax.data.field import SOURCE, TARGET
from attention_jax.data.fields import extended_source, unknown_words
from attention_jax.data.pipeline import make_eval_batches
from attention_jax.data.text.extended_vocabulary import (
    check_can_copy,
    extended,
    own_words,
    source_in_outputs,
)
from attention_jax.data.text.subwords import SubwordVocabulary
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.decoding.output_text import OutputWriter
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.errors import DataError
from attention_jax.search import SearchConfig
from attention_jax.types import SpecialIds

EOS, UNK = SpecialIds.EOS, SpecialIds.UNK
SOURCES = SymbolVocabulary.train("symbols", ["call of with the"])
TARGETS = SymbolVocabulary.train("symbols", ["call ( )"])
V = TARGETS.size
TEXT = "call foo with bar foo </s>"
CALL, OPEN, CLOSE = TARGETS.ids_of(["call", "(", ")"])
COPYING = (SOURCE, TARGET, extended_source.FIELD, unknown_words.FIELD)


def split(sources, targets, fields=COPYING, vocabularies=(SOURCES, TARGETS)):
    return Split(
        sources=sources, targets=targets, references=[[text] for text in targets],
        numbers=list(range(len(sources))), name="train", source_vocabulary=vocabularies[0],
        target_vocabulary=vocabularies[1], fields=fields,
    )  # fmt: skip


def test_duplicates_share_an_id_and_other_words_do_not():
    """A known word has its own id; a text that spells an end does not end there."""
    assert own_words(SOURCES, TARGETS, TEXT) == ("foo", "with", "bar", "</s>")
    found = source_in_outputs(SOURCES, TARGETS, TEXT)
    assert found.tolist() == [CALL, V, V + 1, V + 2, V, V + 3, 0]
    assert source_in_outputs(SOURCES, TARGETS, "").tolist() == [0]


def test_the_same_id_is_another_word_beside_another_source():
    both = split(["call foo", "bar baz"], ["foo ( )", "baz baz"])
    assert both.own_words == [("foo",), ("bar", "baz")]
    assert [ids.tolist() for ids in both.target_ids] == [[V, OPEN, CLOSE, EOS], [V + 1, V + 1, EOS]]
    assert both.with_target_ids([np.array([V, EOS])] * 2).targets == ["foo", "bar"]


def test_gold_is_unknown_only_where_it_cannot_be_copied():
    one = split([TEXT], ["call bar ( foo ) qux"])
    assert one.target_ids[0].tolist() == [CALL, V + 2, OPEN, V, CLOSE, UNK, EOS]
    without = dataclasses.replace(one, fields=(SOURCE, TARGET))
    assert without.target_ids[0].tolist() == [CALL, UNK, OPEN, UNK, CLOSE, UNK, EOS]
    assert without.own_words == [()]


def test_batches_have_room_for_the_longest_list_of_words():
    both = split(["call foo", "call"], ["foo", "call"])
    (batch,) = make_eval_batches(both, DataConfig(eval_batch_size=4))
    row = batch["index"].tolist().index(0)
    assert batch["unknown_words"].shape == (4, 8) and batch["unknown_words"].sum() == 1
    assert batch["extended_source"][row, :3].tolist() == [CALL, V, 0]
    assert batch["target"][row, 0] == V
    assert {"extended_source", "unknown_words"} <= {*both.input_names}


def test_texts_to_be_searched_have_the_same_words():
    inputs = Inputs([TEXT], SOURCES, (SOURCE, *COPYING[2:]), target_vocabulary=TARGETS)
    assert inputs.own_words == [own_words(SOURCES, TARGETS, TEXT)]
    assert inputs.columns["extended_source"][0].tolist() == [CALL, V, V + 1, V + 2, V, V + 3, 0]


def test_copied_words_are_printed_and_unknown_is_not():
    """Only a word that was generated as unknown is one."""
    words = own_words(SOURCES, TARGETS, TEXT)
    hypothesis = Hypothesis(
        np.array([CALL, V + 2, OPEN, UNK, CLOSE, EOS], np.int32), -1.0, -1.0, np.eye(6, 7), words
    )
    writer = OutputWriter(SearchConfig(), SOURCES, TARGETS)
    assert writer(hypothesis, TEXT) == "call bar ( <unk> )"
    replacing = OutputWriter(SearchConfig(replace_unknown=True), SOURCES, TARGETS)
    assert replacing(hypothesis, TEXT) == "call bar ( bar )"
    assert hypothesis.vocabulary(TARGETS).tokens([V, UNK, EOS]) == ["foo", "<unk>", "</s>"]


def test_tags_are_no_part_of_an_output():
    sources = SymbolVocabulary.train("tags_after", ["ev\tN;PL"])
    letters = SymbolVocabulary.train("characters", ["evler"])
    (e,) = letters.ids_of("e")
    assert source_in_outputs(sources, letters, "eş\tN;PL").tolist() == [e, letters.size, 0, 0, 0]
    assert own_words(sources, letters, "eş\tN;PL") == ("ş",)
    assert extended(letters, ("ş",)).decode([e, letters.size]) == "eş"


def test_subwords_lack_nothing():
    """Of a vocabulary that both sides share, all pieces can be copied, and none is beyond it."""
    joint = SubwordVocabulary.train(["the house of the mouse", "a house"] * 4, 40)
    assert own_words(joint, joint, "the mouse") == () and extended(joint, ()) is joint
    ids = source_in_outputs(joint, joint, "the mouse")
    assert ids.tolist() == [*joint.encode("the mouse"), 0]
    both = split(["the mouse"], ["a house"], vocabularies=(joint, joint))
    (batch,) = make_eval_batches(both, DataConfig(eval_batch_size=1))
    assert batch["unknown_words"].shape == (1, 0)
    other = SubwordVocabulary.train(["the louse"] * 4, 20)
    shared = source_in_outputs(joint, other, "the mouse")
    pieces = dict(zip(joint.split("the mouse"), shared, strict=False))
    assert {piece for piece, id in pieces.items() if id} <= {*other.tokens(range(other.size))}


def test_what_cannot_be_a_symbol_of_outputs_is_not_copied():
    with pytest.raises(DataError, match="the same kind of symbols, .*, found characters and sym"):
        check_can_copy(SymbolVocabulary.train("characters", ["a"]), TARGETS)
    inputs = Inputs(["a"], SymbolVocabulary.train("characters", ["a"]), (extended_source.FIELD,),
                    target_vocabulary=TARGETS)  # fmt: skip
    with pytest.raises(DataError, match="found characters and symbols"):
        inputs.columns  # noqa: B018
