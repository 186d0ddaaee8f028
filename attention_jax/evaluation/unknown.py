"""Unknown words in outputs, as scorers see them: one token each, which no reference has.

A vocabulary writes `<unk>`, which a tokenizer takes for three words and chrF for five characters.
To a scorer it is one character that no text has, where a word or a part of one would stand, and
the same one every time: an output that says it twice repeats itself.
"""

from collections.abc import Iterable, Sequence

MARK = "<unk>"  # what people read
# Of a block that sacrebleu's `zh` takes for Chinese, so that each is a token there too; the other
# tokenizers take it for a letter. Unicode has assigned no character to it.
UNKNOWN = "\u2fdf"


def scorable(outputs: Iterable[str], references: Iterable[Iterable[str]]) -> list[str]:
    """Returns outputs as they are scored, unknown words as `UNKNOWN`.

    Outputs that were written with `UNKNOWN` have it already; those that are read from a file have
    `MARK` there. Where references spell that, it is a word of the text, and scored as it is.

    Args:
      outputs: Texts of a system.
      references: All references that they are compared with.
    """
    if any(MARK in reference for variants in references for reference in variants):
        return list(outputs)
    return [output.replace(MARK, UNKNOWN) for output in outputs]


def readable(outputs: Sequence[str]) -> list[str]:
    """Returns outputs as people read them, unknown words as `MARK`."""
    return [output.replace(UNKNOWN, MARK) for output in outputs]
