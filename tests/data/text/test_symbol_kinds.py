"""Symbols by kind: tags that are no letters, and STEPs that no text has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_jax.data.text.storage import load_vocabulary
from attention_jax.data.text.symbol_kinds import KINDS, STEP, WITH_STEPS, is_tag, tag_symbols
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.data.text.words import word_pieces
from attention_jax.types import SpecialIds

TEXT = "N V\tN;V.PTCP;1"  # of letters that are tags, too
letters = st.text(st.characters(blacklist_characters="\t", blacklist_categories=["Cs"]), min_size=1)
tags = st.lists(
    st.text(
        st.characters(blacklist_characters="\t;", blacklist_categories=["Cs"]), min_size=1
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize(
    ("kind", "symbols"),
    [
        ("tags_before", [";N", ";V.PTCP", ";1", "N", " ", "V"]),
        ("tags_after", ["N", " ", "V", ";N", ";V.PTCP", ";1"]),
        ("tags_apart", ["N", " ", "V"]),
    ],
)
def test_tags_are_whole_symbols(kind, symbols):
    vocabulary = SymbolVocabulary.train(kind, [TEXT])
    assert vocabulary.split(TEXT) == vocabulary.surfaces(TEXT) == symbols
    assert vocabulary.size == SpecialIds.COUNT + 6  # of each kind: tags that are apart, too
    assert vocabulary.tokens(vocabulary.encode(TEXT)) == symbols
    assert SpecialIds.UNK not in vocabulary.ids_of([*symbols, *tag_symbols(TEXT)])
    whole = TEXT if kind != "tags_apart" else "N V"
    assert vocabulary.decode(vocabulary.encode(TEXT)) == whole


def test_letters_are_read_in_parts():
    """Jamo of Hangul, a letter and its accent; however a text is written, it is read alike."""
    vocabulary = SymbolVocabulary.train("letter_parts", ["한글", "été"])
    assert vocabulary.split("한글") == ["ᄒ", "ᅡ", "ᆫ", "ᄀ", "ᅳ", "ᆯ"]
    assert vocabulary.split("été") == vocabulary.split("e\u0301te\u0301") == [*"e\u0301te\u0301"]
    assert vocabulary.size == SpecialIds.COUNT + 6 + 3
    assert vocabulary.decode(vocabulary.encode("한글")) == "한글"
    assert SpecialIds.UNK not in vocabulary.encode("흔할")  # syllables that were never seen


def test_letters_stand_before_their_parts():
    """What has no parts stands once, and an unknown syllable has parts that are known."""
    vocabulary = SymbolVocabulary.train("letters_and_parts", ["한글", "été"])
    assert vocabulary.split("한글") == ["한", "ᄒ", "ᅡ", "ᆫ", "글", "ᄀ", "ᅳ", "ᆯ"]
    assert vocabulary.split("e\u0301te\u0301") == ["é", "e", "\u0301", "t", "é", "e", "\u0301"]
    assert vocabulary.size == SpecialIds.COUNT + 8 + 4
    for text in ("한글", "été"):
        assert vocabulary.decode(vocabulary.encode(text)) == text
    ids = vocabulary.encode("흔")
    assert [one == SpecialIds.UNK for one in ids] == [True, False, False, False]


@given(lemma=letters, tags=tags, kind=st.sampled_from(["tags_before", "tags_after", "tags_apart"]))
def test_no_tag_is_a_letter(lemma, tags, kind):
    text = f"{lemma}\t{';'.join(tags)}"
    assert tag_symbols(text) == [f";{tag}" for tag in tags]
    assert not any(map(is_tag, lemma)) and all(map(is_tag, tag_symbols(text)))
    vocabulary = SymbolVocabulary.train(kind, [text])
    assert not {*vocabulary.ids_of(lemma)} & {*vocabulary.ids_of(tag_symbols(text))}
    assert SpecialIds.UNK not in vocabulary.ids_of([*lemma, *tag_symbols(text)])
    whole = lemma if kind == "tags_apart" else text
    assert vocabulary.decode([*vocabulary.encode(text), SpecialIds.EOS]) == whole


@pytest.mark.parametrize(("plain", "kind"), WITH_STEPS.items())
def test_a_step_leaves_no_trace_in_a_text(plain, kind, tmp_path):
    text = "a b <step>"  # which a text may spell
    vocabulary = SymbolVocabulary.train(kind, [text])
    vocabulary.save(tmp_path)
    vocabulary = load_vocabulary(tmp_path)
    (step,) = vocabulary.silent_ids
    assert step == SpecialIds.COUNT and vocabulary.tokens([step]) == [STEP]
    ids = vocabulary.encode(text)
    assert step not in ids and SpecialIds.UNK not in ids
    actions = [step, *(action for each in ids for action in (each, step)), SpecialIds.EOS]
    assert vocabulary.decode(actions) == SymbolVocabulary.train(plain, [text]).decode(
        SymbolVocabulary.train(plain, [text]).encode(text)
    )
    assert word_pieces(vocabulary, actions) == [[2 * place + 1] for place in range(len(ids))]


def test_an_unknown_symbol_keeps_its_place_among_steps():
    vocabulary = SymbolVocabulary.train("character_actions", ["ab"])
    (step,) = vocabulary.silent_ids
    ids = [step, SpecialIds.UNK, step, *vocabulary.encode("b")]
    assert vocabulary.decode(ids, unknown=["x"]) == "xb"
    assert vocabulary.decode(ids) == "<unk>b"


def test_kinds_without_steps_have_no_silent_symbols():
    silent = {kind for kind, parts in KINDS.items() if parts.silent}
    assert silent == set(WITH_STEPS.values())
    assert not SymbolVocabulary.train("characters", ["ab"]).silent_ids
