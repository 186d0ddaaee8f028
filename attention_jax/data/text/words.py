"""Words of texts and of their pieces: what is linked by aligners, measured and shown.

Spaces and tabs separate words, and to aligners other white space does, too. Of what stands between,
aligners take letters and punctuation apart, while subwords are joined to all that stands there,
`cars.` included. Where it has letters of a script that writes no spaces, both follow one rule: each
cluster of such letters is a word (see `scripts`), and so are every run of other letters or digits
and every punctuation character; but to subwords of a text that is given in words, with spaces
between them, these are its words. There, and for aligners, a space without width separates words
too.
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
_STAND_IN = "\ufffc"  # one character, which is a word, for a special token


def words_of_text(text: str) -> list[str]:
    """Splits a text into the words and the punctuation that aligners link."""
    return _WORD.findall(text)


def words_of_pieces(
    pieces: Sequence[str],
    kind: str = SUBWORDS,
    special: Collection[int] = (),
    *,
    given_words: bool = False,
) -> tuple[list[str], list[list[int]]]:
    """Joins subwords to words, and says which pieces each word has; other symbols stay apart.

    A subword of several clusters, as of Chinese, is a piece of several words. A piece of nothing
    but spaces goes with the word that it begins, or else with the one before it.

    Args:
      pieces: Of a vocabulary, without EOS.
      kind: That of the vocabulary.
      special: The indices of those that are special tokens, which a text may spell as well.
      given_words: Whether spaces separate the words of scripts that write none, too.

    Returns:
      The words, and for each of them the indices of its pieces. Of nothing but spaces they are one
      empty word.
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
    """Returns the pieces of each word of a source or of an output.

    Args:
      vocabulary: Of that side.
      ids: The source or the output, ending in EOS, which is left out.
      text: That of a source, which has the words of unknown pieces; in an output an unknown piece
        has none but itself.
    """
    ids = ids[:-1]
    pieces, special = vocabulary.tokens(ids), special_places(ids)
    if text is not None:
        tokens, pieces = pieces, tokens_in_text(vocabulary, ids, text)
        special = {place for place in special if pieces[place] == tokens[place]}
    return pieces_in_words(vocabulary, pieces, special)[1]


def pieces_in_words(
    vocabulary: Any, pieces: Sequence[str], special: Collection[int] = ()
) -> tuple[list[str], list[list[int]]]:
    """Applies `words_of_pieces` to pieces of a vocabulary, which says what its words are."""
    given = getattr(vocabulary, "given_words", False)  # one of symbols has no words
    return words_of_pieces(pieces, vocabulary.kind, special, given_words=given)


def special_places(ids: Iterable[SupportsIndex]) -> set[int]:
    """Finds the special tokens among ids."""
    return {place for place, index in enumerate(map(int, ids)) if index < SpecialIds.COUNT}


def _add_spaces(members: list[list[int]], pieces: Sequence[str]) -> None:
    """Adds pieces of nothing but spaces to the words that they begin, or else follow."""
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
    """Puts special tokens back where a character stood in for each of them."""
    tokens = iter(
        [
            pieces[place] if place in special else _STAND_IN
            for place, surface in enumerate(surfaces)
            for character in surface
            if character == _STAND_IN
        ]
    )
    return [re.sub(_STAND_IN, lambda match: next(tokens), word) for word in words]
