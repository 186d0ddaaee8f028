"""Scripts that write no spaces between words, and how their characters are divided into words.

In Chinese and Japanese, every Han ideograph or kana is a word. In Thai, Lao, Khmer and Myanmar,
whose marks mean nothing alone, every cluster is one: a letter, its marks, and the letters written
below it. Real words would take a dictionary for each language. They consist of such clusters, and
an aligner links several clusters to one word as it does the parts of a compound. The exception are
texts given in words, between which somebody has put spaces.

In other scripts without spaces, such as Tibetan, Javanese or Tai Le, all text between spaces and
punctuation is one word.

Source:
  Unicode Standard Annex 29, section 3, on grapheme clusters.

Deviations:
  Letters written below others belong to the cluster, which the annex defines for other scripts.
"""

import re
from collections.abc import Iterable

from attention_jax.data.text.characters import COMBINING
from attention_jax.spaced_words import spaced_words

# Letters only: digits and punctuation of these scripts are treated like those of others.
_HAN = (
    "\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003fffd"
)
_KANA = (
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d"
    "\U0001aff0-\U0001afff\U0001b000-\U0001b16f"
)
_THAI = "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46"
_LAO = "\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u0edc-\u0edf"
_KHMER = "\u1780-\u17b3\u17d7\u17dc"
_MYANMAR = (
    "\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081"
    "\u108e\ua9e0-\ua9e4\ua9e6-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa76\uaa7a\uaa7e\uaa7f"
)
# To be used inside of brackets in a pattern.
LETTERS = f"{_HAN}{_KANA}{_THAI}{_LAO}{_KHMER}{_MYANMAR}"
_MARKS = f"{COMBINING}\u0e33\u0eb3\uff9e\uff9f"  # combining ones, and letters used like marks
_PUTS_BELOW = "\u1039\u17d2"  # signs in Myanmar and Khmer that put the next letter below
_MARKED = f"[{LETTERS}][{_MARKS}]*"
CLUSTER = f"{_MARKED}(?:(?<=[{_PUTS_BELOW}]){_MARKED})*"

_ANY = re.compile(f"[{LETTERS}]")
_NOT_HAN = re.compile(f"[{_KANA}{_THAI}{_LAO}{_KHMER}{_MYANMAR}]")
_CLUSTER = re.compile(CLUSTER)
# Words have about 1.5 clusters in Chinese, 2 in Japanese and 3 in Thai; clauses have many more.
_MAX_WORD_CLUSTERS = 5


def writes_no_spaces(text: str) -> bool:
    """Says whether a text contains letters of these scripts."""
    return _ANY.search(text) is not None


def are_chinese(texts: Iterable[str]) -> bool:
    """Says whether most texts in these scripts have ideographs alone, as Japanese seldom has."""
    alone = [_NOT_HAN.search(text) is None for text in texts if writes_no_spaces(text)]
    return 2 * sum(alone) > len(alone)


def are_given_in_words(texts: Iterable[str]) -> bool:
    """Word segmentation: says whether texts in these scripts come with spaces between their words.

    They do if at least every second such text has, on average, a space between two such letters,
    and if the text between spaces is as short as words are. So spaces around Latin words in Chinese
    are not counted, and those between the clauses of Thai, which are longer, do not suffice.
    """
    lines = chunks = clusters = beside = 0
    for text in texts:
        if not writes_no_spaces(text):
            continue
        are_such = [*map(writes_no_spaces, spaced_words(text))]
        lines += 1
        chunks += sum(are_such)
        clusters += len(_CLUSTER.findall(text))
        beside += sum(map(lambda one, other: one and other, are_such, are_such[1:]))
    return lines > 0 and 2 * beside >= lines and clusters <= _MAX_WORD_CLUSTERS * chunks
