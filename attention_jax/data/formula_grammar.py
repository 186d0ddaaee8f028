"""Formulas drawn at random: their markup, and the order in which a renderer ships their parts.

A formula is a sum of terms; a term is a letter or digit, maybe with exponent and index, a fraction,
a root, or a formula in parentheses. Markup is symbols that spaces separate, in one spelling:
exponent before index, each in braces.
"""

import dataclasses
import random

LETTERS = tuple("abcdfghijkmnpqrstuvwxyz")
GREEK = tuple(
    f"\\{name}" for name in ("alpha", "beta", "gamma", "theta", "lambda", "mu", "pi", "sigma")
)
DIGITS = tuple("0123456789")
OPERATORS = ("+", "-", "=", "<", ">", "\\times")
_ATOMS = (*LETTERS, *GREEK, *DIGITS)
_MOST_TERMS = 4


@dataclasses.dataclass
class Formula:
    """Formula: its markup, and which symbol each part of its picture is of.

    Attributes:
      symbols: Of the markup, in order.
      glyphs: The number of the symbol that each glyph is of, in the order of their shipping.
      bars: The same of each bar, those of fractions and roots.
    """

    symbols: list[str] = dataclasses.field(default_factory=list)
    glyphs: list[int] = dataclasses.field(default_factory=list)
    bars: list[int] = dataclasses.field(default_factory=list)

    @property
    def markup(self) -> str:
        """The symbols as text."""
        return " ".join(self.symbols)

    def write(self, *symbols: str) -> None:
        """Adds symbols that leave no trace in the picture, such as braces."""
        self.symbols.extend(symbols)

    def draw(self, symbol: str) -> None:
        """Adds a symbol that is a glyph."""
        self.glyphs.append(len(self.symbols))
        self.symbols.append(symbol)


def draw_formulas(count: int, most_symbols: int, seed: int) -> list[Formula]:
    """Draws different formulas of at most so many symbols, the same on every call.

    Args:
      count: How many.
      most_symbols: Of the markup, braces among them.
      seed: Of the random numbers.
    """
    rng = random.Random(seed)
    found: dict[str, Formula] = {}  # a set that keeps its order
    while len(found) < count:
        formula = Formula()
        _sum(formula, rng, depth=0)
        if len(formula.symbols) <= most_symbols:
            found.setdefault(formula.markup, formula)
    return [*found.values()]


def _sum(formula: Formula, rng: random.Random, depth: int) -> None:
    terms = rng.randint(1 + (depth == 0), max(2, _MOST_TERMS - depth))
    for number in range(terms):
        if number:
            formula.draw(rng.choice(OPERATORS if depth == 0 else OPERATORS[:2]))
        _term(formula, rng, depth)


def _term(formula: Formula, rng: random.Random, depth: int) -> None:
    kind = rng.random()
    if depth or kind < 0.7:
        formula.draw(rng.choice(_ATOMS))
        _scripts(formula, rng, depth)
    elif kind < 0.82:
        _fraction(formula, rng, depth)
    elif kind < 0.92:
        _root(formula, rng, depth)
    else:
        formula.draw("(")
        _sum(formula, rng, depth + 1)
        formula.draw(")")


def _scripts(formula: Formula, rng: random.Random, depth: int) -> None:
    for sign, share in (("^", 0.25), ("_", 0.2)):
        if depth < 2 and rng.random() < share:
            formula.write(sign, "{")
            formula.draw(rng.choice(_ATOMS))
            formula.write("}")


def _fraction(formula: Formula, rng: random.Random, depth: int) -> None:
    bar = len(formula.symbols)
    formula.write("\\frac", "{")
    _sum(formula, rng, depth + 1)
    # A renderer ships the numerator, then the bar, then the denominator.
    formula.bars.append(bar)
    formula.write("}", "{")
    _sum(formula, rng, depth + 1)
    formula.write("}")


def _root(formula: Formula, rng: random.Random, depth: int) -> None:
    formula.bars.append(len(formula.symbols))
    formula.draw("\\sqrt")
    formula.write("{")
    _sum(formula, rng, depth + 1)
    formula.write("}")

