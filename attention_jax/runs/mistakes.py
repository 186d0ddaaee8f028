"""Error messages for mistyped options: what was expected, and the nearest option that exists."""

import difflib
import re
import sys
from collections.abc import Collection, Iterator
from typing import Any

from absl import flags
from ml_collections import ConfigDict
from ml_collections.config_flags import tuple_parser

from attention_jax.errors import quoted

# Likeness of names is from 0 to 1; these are the least that counts, and what adds to it.
_CLOSE = 0.6
_SHARED_WORDS = 0.7  # likeness of `size` and `vocab_size`, though other names share more letters
_SAME_GROUP = 0.05
_HAS_WHAT_IS_BELOW = 0.15
_MOST_NAMED = 3
# Packages whose modules define the options of programs; libraries define some of their own.
_OURS = ("attention_jax.", "experiments.", "launch.")


def unknown_field(
    values: ConfigDict, root: str, group: str, name: str, below: str | None = None
) -> str:
    """Unknown field: returns the message, with the most similar fields of the whole config.

    Args:
      values: The whole config.
      root: Its name, such as `config`.
      group: Path of the group in which the field was looked for, such as `config.data`.
      name: Name of the field.
      below: If it was meant as a group, the name that was looked for inside of it.
    """
    fields = dict(_fields(values, root))
    scores = {
        (where, known): _likeness(name, known)
        + _SAME_GROUP * (where == group)
        + _HAS_WHAT_IS_BELOW * (below in inside)
        for (where, known), inside in fields.items()
    }
    best = max(scores.values())
    near = [
        repr(known) if where == group else f"--{where}.{known}"
        for (where, known), score in scores.items()
        if score == best > _CLOSE
    ]
    if 0 < len(near) <= _MOST_NAMED:
        hint = f"did you mean {' or '.join(near)}?"
    else:
        here = sorted(known for where, known in fields if where == group)
        hint = f"expected one of {', '.join(here)}"
    return f"--{group}.{name}: no such field; {hint}"


def illegal_value(error: flags.Error, flag_values: flags.FlagValues) -> str:
    """Illegal value: returns the message for a value that a flag refuses, or for another error."""
    message = " ".join(str(error).split())
    match = re.match(r"flag --([^=\s]+)=(.*?): ", message)
    if not (isinstance(error, flags.IllegalFlagValueError) and match and match[1] in flag_values):
        return message
    wanted = _wanted(flag_values[match[1]].parser)
    return f"--{match[1]}: expected {wanted}, found {quoted(match[2])}" if wanted else message


def unknown_option(name: str, flag_values: flags.FlagValues) -> str:
    """Unknown option: returns the message, with the most similar of the program's own options."""
    known = sorted(
        flag.name
        for module, defined in flag_values.flags_by_module_dict().items()
        if module.startswith(_OURS) or module == sys.argv[0]
        for flag in defined
        if "." not in flag.name  # fields of configs have messages of their own
    )
    near = difflib.get_close_matches(name, known, 1, _CLOSE)
    named = ", ".join(f"--{each}" for each in known)
    hint = f"did you mean --{near[0]}?" if near else f"expected one of {named}"
    return f"--{name}: no such option; {hint}"


def _fields(group: ConfigDict, where: str) -> Iterator[tuple[tuple[str, str], Collection[str]]]:
    """Yields every field below a group as ((path of its group, name), names inside of it)."""
    for name in group.keys():
        is_group = isinstance(group[name], ConfigDict)
        yield (where, name), group[name].keys() if is_group else ()
        if is_group:
            yield from _fields(group[name], f"{where}.{name}")


def _likeness(name: str, known: str) -> float:
    """Returns how similar a name is to a known one, from 0 to 1."""
    ratio = difflib.SequenceMatcher(None, name, known).ratio()
    words, known_words = set(name.split("_")), set(known.split("_"))
    # All words of the known name are in the mistyped one, and are at least half of its words.
    shares = known_words <= words and 2 * len(known_words) >= len(words)
    return max(ratio, _SHARED_WORDS) if shares else ratio


def _wanted(parser: Any) -> str:
    """Describes the values that a parser of flags accepts; empty if it is not known."""
    match parser:
        case flags.EnumParser():
            return f"one of {', '.join(parser.enum_values)}"
        case flags.BooleanParser():
            return "true or false"
        case tuple_parser.TupleParser():
            return "values such as ('a', 'b')"
        case flags.IntegerParser() | flags.FloatParser():
            kind = "a whole number" if isinstance(parser, flags.IntegerParser) else "a number"
            low, high = parser.lower_bound, parser.upper_bound
            if low is not None and high is not None:
                return f"{kind} from {low} to {high}"
            limits = [f"at least {low}"] if low is not None else []
            limits += [f"at most {high}"] if high is not None else []
            return " of ".join([kind, *limits])
    return ""
