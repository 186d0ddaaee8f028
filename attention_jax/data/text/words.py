"""Words of texts and of their pieces: what is linked by aligners, measured and shown.

White space separates words. Of what stands between, aligners take letters and punctuation apart,
while subwords are joined to all that stands there, `cars.` included. Where it has letters of a
script that writes no spaces, both follow one rule: each cluster of such letters is a word (see
`scripts`), and so are every run of other letters or digits and every punctuation character. There,
and for aligners, a space without width separates words too.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from attention_jax.data.text.characters import SEPARATORS, SPACE, run_of
from attention_jax.data.text.scripts import CLUSTER, LETTERS, writes_no_spaces
from attention_jax.data.text.spans import overlaps
from attention_jax.data.text.vocabulary import SPECIAL_TOKENS, tokens_in_text

_RUN = run_of(rf"[^\W{LETTERS}]")
_WORD = re.compile(rf"{CLUSTER}|{_RUN}|[^\w\s{SEPARATORS}]")
# Kinds of vocabularies in which the sign of a space is a character like others.
_WITHOUT_SIGN = ("words", "characters")
_STAND_IN = "\ufffc"  # one character, which is a word, for a special token


def words_of_text(text: str) -> list[str]:
    """Splits a text into the words and the punctuation that aligners link."""
    return _WORD.findall(text)


def words_of_pieces(
    pieces: Sequence[str], kind: str = "bpe"
) -> tuple[list[str], list[list[int]]]:
    """Joins subwords to words, and says which pieces each word has; other symbols stay apart.

    A subword of several clusters, as of Chinese, is a piece of several words. Where no piece has
    the sign of a space, as with characters and with words, each is a word by itself.

    Args:
      pieces: Of a vocabulary, without EOS.
      kind: That of the vocabulary.

    Returns:
      The words, and for each of them the indices of its pieces.
    """
    if kind in _WITHOUT_SIGN or not any(piece.startswith(SPACE) for piece in pieces):
        return list(pieces), [[place] for place in range(len(pieces))]
    words: list[str] = []
    members: list[list[int]] = []
    for places in _between_spaces(pieces):
        chunk = [pieces[place] for place in places]
        text = "".join(chunk)
        if writes_no_spaces(text):
            its_words, its_pieces = _clusters(chunk)
            words += its_words
            members += [[places[index] for index in found] for found in its_pieces]
        else:
            words.append(text.removeprefix(SPACE))
            members.append(places)
    return words, members


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
    pieces = vocabulary.tokens(ids) if text is None else tokens_in_text(vocabulary, ids, text)
    return words_of_pieces(pieces, vocabulary.kind)[1]


def _between_spaces(pieces: Sequence[str]) -> Iterator[list[int]]:
    """Yields the indices of the pieces that stand together."""
    places: list[int] = []
    for place, piece in enumerate(pieces):
        if places and piece.startswith(SPACE):
            yield places
            places = []
        places.append(place)
    if places:
        yield places


def _clusters(chunk: Sequence[str]) -> tuple[list[str], list[list[int]]]:
    """Returns the words of pieces that stand together, and the pieces of each."""
    surfaces = [
        _STAND_IN if piece in SPECIAL_TOKENS else piece.replace(SPACE, " ") for piece in chunk
    ]
    words = _WORD.findall("".join(surfaces))
    members = overlaps(words, surfaces)
    owners = {place: word for word, places in enumerate(members) for place in places}
    for place in range(len(chunk)):  # a piece of spaces goes with what is before it, or else after
        if place not in owners:
            owners[place] = owners.get(place - 1, 0)
            members[owners[place]].append(place)
    words = [
        chunk[places[0]] if word == _STAND_IN else word
        for word, places in zip(words, members, strict=True)
    ]
    return words, [sorted(places) for places in members]
