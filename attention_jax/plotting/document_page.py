"""Page of documents: an HTML file that colours words and sentences by their weights.

Nothing but a browser is needed. The darker a word, the larger its share of its sentence, relative
to the largest there; the longer the bar before a sentence, the larger its share of the document.
"""

import dataclasses
import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from attention_jax.plotting.figure import ATTENTION

LEVELS = 9  # shades beside none
DARKEST = 0.6  # opacity of the colour of attention, on which ink can still be read
_STYLE = """
body { font: 16px/1.5 Georgia, serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .3rem; }
.wrong { color: #b3261e; }
p { margin: 0; display: grid; grid-template-columns: 4rem 1fr; gap: .6rem; }
i { align-self: start; margin-top: .55rem; height: .5rem; background: ATTENTION;
  justify-self: end; }
b { font-weight: normal; border-radius: 2px; }
u { text-decoration: underline 2px #222; }
""".replace("ATTENTION", ATTENTION)


@dataclasses.dataclass(frozen=True)
class ShownSentence:
    """A sentence of the page.

    Attributes:
      words: Its words.
      weights: The weight of each word.
      share: The sentence's weight in the document.
      marked: Whether each word is underlined; empty for none.
    """

    words: Sequence[str]
    weights: Any
    share: float
    marked: Sequence[bool] = ()


@dataclasses.dataclass(frozen=True)
class ShownDocument:
    """A document of the page.

    Attributes:
      key: Its name, such as its number.
      told: The label that a model told.
      label: The right one.
      sentences: Its sentences.
    """

    key: str
    told: str
    label: str
    sentences: Sequence[ShownSentence]


def document_page(title: str, documents: Sequence[ShownDocument]) -> str:
    """Returns the page as HTML, which loads nothing.

    Args:
      title: Its title.
      documents: What it shows, in order.
    """
    shades = "".join(
        f".w{level} {{ background: {ATTENTION}{round(255 * DARKEST * level / LEVELS):02x}; }}\n"
        for level in range(1, LEVELS + 1)
    )
    right = sum(one.told == one.label for one in documents)
    body = "\n".join(map(_document, documents))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}{shades}</style>\n</head>\n"
        f"<body>\n<h1>{html.escape(title)}</h1>\n<p>{right} of {len(documents)} documents here "
        "are labelled rightly.</p>\n"
        f"{body}\n</body>\n</html>\n"
    )


def _document(one: ShownDocument) -> str:
    is_right = one.told == one.label
    verdict = html.escape(one.told) if is_right else (
        f'<span class="wrong">{html.escape(one.told)}, not {html.escape(one.label)}</span>'
    )
    most = max((sentence.share for sentence in one.sentences), default=0.0)
    rows = "\n".join(_sentence(sentence, most) for sentence in one.sentences)
    return f"<h2>{html.escape(one.key)}: {verdict}</h2>\n{rows}"


def _sentence(one: ShownSentence, most: float) -> str:
    weights = np.asarray(one.weights, float)
    largest = float(weights.max(initial=0.0)) or 1.0
    words = []
    for place, word in enumerate(one.words):
        text, level = html.escape(word), int(np.rint(LEVELS * weights[place] / largest))
        if place < len(one.marked) and one.marked[place]:
            text = f"<u>{text}</u>"
        words.append(f'<b class="w{level}">{text}</b>' if level else text)
    width = round(100 * one.share / most) if most > 0 else 0
    share = f"{100 * one.share:.1f} % of the document"
    bar = f'<i style="width: {width}%" title="{share}"></i>'
    return f'<p>{bar}<span>{" ".join(words)}</span></p>'
