"""Words of program code, and of text about it: names, numbers, operators and quoted strings.

A quoted string is one word, with its quotes and whatever it holds. What stands between words is
left out, so that code that was written with other spaces, or with a space after each word, consists
of the same ones.
"""

import re

_PREFIX = r"(?<!\w)[bru]{0,2}"
_LONG = r"'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\""
_SHORT = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_NUMBER = r"\d+\.\d*(?:e[+-]?\d+)?j?|\.\d+"
# The longest first: what is left of `**=` may not be taken for `**` and `=`.
_OPERATOR = (
    r"\*\*=|//=|<<=|>>=|\.\.\.|!=|==|<=|>=|<>|\*\*|//|<<|>>|[-+*/%&|^]=|->|[^\w\s]"
)
_WORD = re.compile(
    rf"{_PREFIX}(?:{_LONG}|{_SHORT})|{_NUMBER}|\w+|{_OPERATOR}", re.IGNORECASE
)


def code_words(text: str) -> list[str]:
    """Splits code, or text with code in it, into its words.

    For example, `re.match("a b",x)!=1` becomes `re`, `.`, `match`, `(`, `"a b"`, `,`, `x`, `)`,
    `!=`, `1`. An apostrophe that begins no string is a word by itself.
    """
    return _WORD.findall(text)


def spaced_code(text: str) -> str:
    """Normal form of code: its words, with one space between each two."""
    return " ".join(code_words(text))
