"""Symbols of a text, by kind: words, letters, what spaces separate, and letters beside tags.

Kinds of `tags_...` are of texts `LEMMA<TAB>TAG;TAG`, whose tags are whole symbols: `;V` is one and
the letter `V` another, for a tag's symbol begins with the semicolon that separates tags and has at
least two characters. They differ in which symbols a text is read as: those of `tags_before` and
`tags_after` are beside the letters, and `tags_apart` has the letters alone, with the tags in the
same vocabulary.

Of `code`, symbols are names, numbers, operators and quoted strings, which a space is put between.
Texts of `names` name what is read, such as the file of a picture, and have no symbols.

Kinds of actions have symbols that no text has, which are written between others and leave no trace
in it: `STEP`.

Symbols of `letter_parts` are what letters are composed of, by Unicode's canonical decomposition
(NFD): syllables of Hangul of jamo, and a letter with an accent of both. Of `letters_and_parts`, a
letter that is composed of others stands before its parts.

Documents are read sentence by sentence (`sentence_symbols`), and a label is one symbol, whatever it
is written with (`labels`).
"""

import unicodedata
from collections.abc import Callable, Mapping
from typing import NamedTuple

from attention_jax.data.text import tokenization
from attention_jax.data.text.code import code_words
from attention_jax.spaced_words import spaced_words

STEP = "<step>"
SENTENCE_BREAK = "\u2028"  # Unicode's line separator, between two sentences of a document
BETWEEN_COLUMNS, BETWEEN_TAGS = "\t", ";"


class SymbolKind(NamedTuple):
    """How texts of a kind are cut into symbols, and made of them.

    Attributes:
      split: From a text to the symbol of each of its ids.
      join: From symbols to a text.
      surface: What a symbol has of its text.
      silent: Symbols that no text has; they have the first ids after the special ones.
      further: From a text to symbols that it has beside those of its ids.
    """

    split: Callable[[str], list[str]]
    join: Callable[[list[str]], str]
    surface: Callable[[str], str] = str
    silent: tuple[str, ...] = ()
    further: Callable[[str], list[str]] = lambda text: []


def letters(text: str) -> list[str]:
    """Returns the letters of the lemma of a text with tags, or of a text without."""
    return list(text.partition(BETWEEN_COLUMNS)[0])


def _letter_parts(text: str) -> list[str]:
    return list(unicodedata.normalize("NFD", text))


def _letters_and_parts(text: str) -> list[str]:
    symbols = []
    for letter in unicodedata.normalize("NFC", text):
        parts = _letter_parts(letter)
        symbols += parts if parts == [letter] else [letter, *parts]
    return symbols


def _composed_once(symbols: list[str]) -> str:
    return _composed([symbol for symbol in symbols if _letter_parts(symbol) == [symbol]])


def _composed(parts: list[str]) -> str:
    return unicodedata.normalize("NFC", "".join(parts))


def tag_symbols(text: str) -> list[str]:
    """Returns the symbols of the tags of a text."""
    _, _, tags = text.partition(BETWEEN_COLUMNS)
    return [f"{BETWEEN_TAGS}{tag}" for tag in tags.split(BETWEEN_TAGS) if tag]


def is_tag(symbol: str) -> bool:
    """Whether a symbol of a kind with tags is one."""
    return len(symbol) > len(BETWEEN_TAGS) and symbol.startswith(BETWEEN_TAGS)


def _symbols_of_sentences(text: str) -> list[str]:
    return [symbol for sentence in text.split(SENTENCE_BREAK) for symbol in spaced_words(sentence)]


def _with_tags(symbols: list[str]) -> str:
    lemma = "".join(symbol for symbol in symbols if not is_tag(symbol))
    tags = "".join(filter(is_tag, symbols)).removeprefix(BETWEEN_TAGS)
    return f"{lemma}{BETWEEN_COLUMNS}{tags}" if tags else lemma


_WORDS = SymbolKind(tokenization.tokenize, tokenization.detokenize, tokenization.surface)
_CHARACTERS = SymbolKind(list, "".join)
_SPACED = SymbolKind(spaced_words, " ".join)
_CODE = SymbolKind(code_words, " ".join)

KINDS: Mapping[str, SymbolKind] = {
    "words": _WORDS,
    "characters": _CHARACTERS,
    "letter_parts": SymbolKind(_letter_parts, _composed),
    "letters_and_parts": SymbolKind(_letters_and_parts, _composed_once),
    "symbols": _SPACED,
    "code": _CODE,
    "word_actions": _WORDS._replace(silent=(STEP,)),
    "character_actions": _CHARACTERS._replace(silent=(STEP,)),
    "symbol_actions": _SPACED._replace(silent=(STEP,)),
    "sentence_symbols": SymbolKind(_symbols_of_sentences, " ".join),
    "labels": SymbolKind(lambda text: [text] if text else [], "".join),
    "tags_before": SymbolKind(lambda text: [*tag_symbols(text), *letters(text)], _with_tags),
    "tags_after": SymbolKind(lambda text: [*letters(text), *tag_symbols(text)], _with_tags),
    "tags_apart": SymbolKind(letters, _with_tags, further=tag_symbols),
    "names": SymbolKind(lambda text: [], "".join),
}
# Whose symbols are known as soon as a character of a text is there.
BY_CHARACTER = ("characters", "letter_parts", "letters_and_parts")
WITH_STEPS = {
    "words": "word_actions", "characters": "character_actions", "symbols": "symbol_actions",
}  # fmt: skip
