"""Word segmentation: the words of texts and of subwords, which are linked, measured and shown.

Words are separated by spaces and tabs, and for aligners by other white space too. There are two
rules for the text between spaces. Aligners divide it into words and punctuation; subwords are
joined to all of it, such as `cars.`.

Text in a script that writes no spaces between words is the exception (see `scripts`). There, both
rules are the same: every cluster of its letters is a word, and so is every run of other letters or
digits, and every punctuation character. But if somebody has put spaces between the words of such a
text, subwords are joined to these words. There, and for aligners, a zero-width space separates
words too.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, SupportsIndex

import numpy as np
from jaxtyping import Int

from attention_jax.data.text.characters import SEPARATORS, SPACE, run_of
from attention_jax.data.text.scripts import CLUSTER, LETTERS, writes_no_spaces
from attention_jax.data.text.spans import overlaps
from attention_jax.data.text.vocabulary import SUBWORDS, tokens_in_text
from attention_jax.spaced_words import spaced_words
from attention_jax.types import SpecialIds

_RUN = run_of(rf"[^\W{LETTERS}]")
_WORD = re.compile(rf"{CLUSTER}|{_RUN}|[^\w\s{SEPARATORS}]")
# A special token such as `<unk>` is replaced by this while words are found: a single character,
# which `_WORD` takes for a word.
_STAND_IN = "\ufffc"


def words_of_text(text: str) -> list[str]:
    """Word segmentation: splits a text into the words and the punctuation that aligners link."""
    return _WORD.findall(text)


def words_of_pieces(
    pieces: Sequence[str],
    kind: str = SUBWORDS,
    special: Collection[int] = (),
    *,
    given_words: bool = False,
) -> tuple[list[str], list[list[int]]]:
    """Subword-to-word map: joins subwords to words; symbols of other vocabularies are words.

    A subword of several clusters, as in Chinese, is a piece of several words. A piece of nothing
    but spaces belongs to the word that it begins, or else to the word before it.

    Args:
      pieces: Pieces of a vocabulary, without EOS.
      kind: Kind of the vocabulary.
      special: Indices of the pieces that are special tokens, since a text may spell one as well.
      given_words: Whether spaces separate words even in scripts that write none.

    Returns:
      The words, and for each of them the indices of its pieces. Pieces of nothing but spaces make
      one empty word.
    """
    if kind != SUBWORDS:
        return list(pieces), [[place] for place in range(len(pieces))]
    surfaces = [
        _STAND_IN if place in special else piece.replace(SPACE, " ")
        for place, piece in enumerate(pieces)
    ]
    is_cut = (lambda chunk: False) if given_words else writes_no_spaces
    words = [
        word
        for chunk in spaced_words("".join(surfaces))
        if chunk.strip(SEPARATORS)
        for word in (_WORD.findall(chunk) if is_cut(chunk) else [chunk])
    ]
    if not words:
        return ([""], [[*range(len(pieces))]]) if pieces else ([], [])
    members = overlaps(words, surfaces)
    _add_spaces(members, pieces)
    return _with_special(words, pieces, surfaces, special), members


def word_pieces(
    vocabulary: Any, ids: Sequence[int] | Int[np.ndarray, " N"], text: str | None = None
) -> list[list[int]]:
    """Subword-to-word map: returns the pieces of each word of a source or of an output.

    Args:
      vocabulary: Vocabulary of that side.
      ids: Ids of the source or output, ending in EOS, which is left out.
      text: Text of a source, which shows what unknown pieces are. Without it, as for an output, an
        unknown piece is a word of its own.

    Silent symbols, such as STEP, are pieces of no word.
    """
    ids = ids[:-1]
    pieces, special = vocabulary.tokens(ids), special_places(ids)
    if text is not None:
        tokens, pieces = pieces, tokens_in_text(vocabulary, ids, text)
        # A piece that the text has replaced is no special token any more.
        special = {place for place in special if pieces[place] == tokens[place]}
    silent = getattr(vocabulary, "silent_ids", ())
    unwritten = {place for place, index in enumerate(ids) if int(index) in silent}
    found = pieces_in_words(vocabulary, pieces, special)[1]
    return [places for places in found if not unwritten.issuperset(places)] if unwritten else found


def pieces_in_words(
    vocabulary: Any, pieces: Sequence[str], special: Collection[int] = ()
) -> tuple[list[str], list[list[int]]]:
    """Subword-to-word map: applies `words_of_pieces` to pieces of a vocabulary."""
    given = getattr(vocabulary, "given_words", False)  # a `SymbolVocabulary` has no such attribute
    return words_of_pieces(pieces, vocabulary.kind, special, given_words=given)


def special_places(ids: Iterable[SupportsIndex]) -> set[int]:
    """Returns the positions of special tokens among ids."""
    return {place for place, index in enumerate(map(int, ids)) if index < SpecialIds.COUNT}


def _add_spaces(members: list[list[int]], pieces: Sequence[str]) -> None:
    """Adds pieces of nothing but spaces to the words that they begin, or else follow."""
    # The first and the last word of which each piece is a part.
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for word, places in enumerate(members):
        for place in places:
            first.setdefault(place, word)
            last[place] = word
    for place, piece in enumerate(pieces):
        if place in last:
            continue
        following = "".join(pieces[place + 1 : place + 2])
        begins = piece.startswith(SPACE) and not following.startswith(SPACE)
        owner = first.get(place + 1) if begins else None
        last[place] = last.get(place - 1, 0) if owner is None else owner
        members[last[place]].append(place)
    for places in members:
        places.sort()


def _with_special(
    words: Sequence[str], pieces: Sequence[str], surfaces: Sequence[str], special: Collection[int]
) -> list[str]:
    """Puts special tokens back in the places of their stand-ins."""
    # A text may contain the character itself, which is then put back as it was.
    tokens = iter(
        [
            pieces[place] if place in special else _STAND_IN
            for place, surface in enumerate(surfaces)
            for character in surface
            if character == _STAND_IN
        ]
    )
    return [re.sub(_STAND_IN, lambda match: next(tokens), word) for word in words]
