"""Unknown words (UNK) in outputs: what scorers count as one token that no reference has.

A vocabulary writes `<unk>`, which tokenizers split into three words and chrF into five characters.
Scorers are given a single character instead that occurs in no text. It is the same one for every
unknown word, so an output that writes it twice counts as repeating itself.
"""

from collections.abc import Iterable, Sequence

MARK = "<unk>"  # what people read
# Unassigned in Unicode, so no text has it. Its block is one that sacrebleu's `zh` tokenizer splits
# into characters, so that each is a token there too; the other tokenizers take it for a letter.
UNKNOWN = "\u2fdf"


def scorable(outputs: Iterable[str], references: Iterable[Iterable[str]]) -> list[str]:
    """Unknown words: replaces each `MARK` by `UNKNOWN`, the form in which outputs are scored.

    Fresh outputs of a model contain `UNKNOWN` already, those that are read from a file `MARK`. If a
    reference contains `MARK` it is a word of the text, and outputs are scored as they are.
    """
    if any(MARK in reference for variants in references for reference in variants):
        return list(outputs)
    return [output.replace(MARK, UNKNOWN) for output in outputs]


def readable(outputs: Sequence[str]) -> list[str]:
    """Unknown words: replaces each `UNKNOWN` by `MARK`, the form that people read."""
    return [output.replace(UNKNOWN, MARK) for output in outputs]
