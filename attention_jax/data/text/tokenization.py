"""Tokenization into words and punctuation with joiners, and reversible detokenization.

Where a punctuation token had no space beside it, a joiner marks that side of it, as in
`Hello ￭, world ￭!`. Detokenization is therefore exact, except that any amount of white space
becomes one space. Combining marks stay with their letters. A zero-width space is a token of its
own, like punctuation: as white space it would come back as a visible space.

It is a simple tokenizer, the same for all languages; `isn't` becomes `isn ￭'￭ t`. For scripts
without spaces between words, subwords or characters serve better.
"""

import re

from attention_jax.data.text.characters import run_of

JOINER = "\uffed"
# A run of letters, digits and underscores, or a single other character that is no white space.
_TOKEN = re.compile(run_of(r"\w") + r"|[^\w\s]")
_WORD = re.compile(r"\w")
# Replaces a joiner that is in the text itself. It counts as white space, so no token contains it.
_OWN_JOINER = "\x1f"


def tokenize(text: str) -> list[str]:
    """Tokenization: splits a text into words and punctuation characters, marked with joiners.

    For example, `Hello, world! (No.)` becomes

      Hello  ￭,  world  ￭!  (￭  No  ￭.  ￭)
    """
    tokens: list[str] = []
    for chunk in text.split():
        pieces = _TOKEN.findall(chunk)
        for index, piece in enumerate(pieces):
            if _WORD.match(piece):
                tokens.append(piece)
                continue
            # Of two punctuation characters side by side, only the second is marked.
            after_something = index > 0
            before_word = index + 1 < len(pieces) and _WORD.match(pieces[index + 1])
            tokens.append(
                (JOINER if after_something else "")
                + piece.replace(JOINER, _OWN_JOINER)
                + (JOINER if before_word else "")
            )
    return tokens


def detokenize(tokens: list[str]) -> str:
    """Detokenization: joins tokens into text, undoing `tokenize`."""
    # A joiner removes the space beside it; one at either end of the text has none to remove.
    text = " ".join(tokens)
    return surface(text.replace(" " + JOINER, "").replace(JOINER + " ", ""))


def surface(token: str) -> str:
    """Returns the text of a token: without the joiners that mark it, `,` for `￭,`.

    A joiner that the text itself contains is restored.
    """
    return token.replace(JOINER, "").replace(_OWN_JOINER, JOINER)
