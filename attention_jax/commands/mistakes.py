"""What a mistyped option is answered with: what was expected, and the nearest that exists."""

import difflib
import os
import re
import traceback
from collections.abc import Collection, Iterator
from typing import Any

from absl import flags
from ml_collections import ConfigDict
from ml_collections.config_flags import tuple_parser

from attention_jax.errors import quoted

# What every device's allocator says, and NumPy of arrays that no machine could hold.
_OUT_OF_MEMORY = re.compile("RESOURCE_EXHAUSTED|array is too big|Maximum allowed dimension")
_NO_BACKEND = re.compile("Unable to initialize backend|Unknown backend")
_JAX_BACKENDS, _JAX_SETTINGS = "jax/_src/xla_bridge.py", "jax/_src/config.py"
_CLOSE = 0.6
_SHARED_WORDS = 0.7  # what `size` is worth for `vocab_size`, however alike other names look
_SAME_GROUP = 0.05
_HAS_WHAT_IS_BELOW = 0.15
_MOST_NAMED = 3


def unknown_field(
    values: ConfigDict, root: str, group: str, name: str, below: str | None = None
) -> str:
    """Returns the message for a field that does not exist, with the nearest of the whole config.

    Args:
      values: The whole config.
      root: What it is called, such as `config`.
      group: The path of the group where the field was looked for, such as `config.data`.
      name: The field.
      below: What was looked for in it, where it is a group.
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
    """Returns the message for a flag whose value its parser refused, or that of another error."""
    message = " ".join(str(error).split())
    match = re.match(r"flag --([^=\s]+)=(.*?): ", message)
    if not (isinstance(error, flags.IllegalFlagValueError) and match and match[1] in flag_values):
        return message
    wanted = _wanted(flag_values[match[1]].parser)
    return f"--{match[1]}: expected {wanted}, found {quoted(match[2])}" if wanted else message


def of_the_machine(error: Exception) -> str | None:
    """Returns the message for an error of JAX that the environment or too little memory causes."""
    text = " ".join(str(error).split()).removesuffix(".")
    if _OUT_OF_MEMORY.search(text) or isinstance(error, MemoryError):
        return f"{text or 'out of memory'}; smaller batches, beams or models take less"
    raised_in = _raised_in(error)
    if _NO_BACKEND.search(text) or raised_in.endswith(_JAX_BACKENDS):
        asked = os.environ.get("JAX_PLATFORMS", "")
        reason = f" ({text})" if text else ""
        return f"JAX_PLATFORMS: expected devices of this machine, found {quoted(asked)}{reason}"
    if raised_in.endswith(_JAX_SETTINGS):
        return f"a variable JAX_... of the environment: {text}"
    return None


def _raised_in(error: BaseException) -> str:
    """Returns the file of the code that raised an error."""
    frames = traceback.extract_tb(error.__traceback__)
    return frames[-1].filename.replace(os.sep, "/") if frames else ""


def _fields(group: ConfigDict, where: str) -> Iterator[tuple[tuple[str, str], Collection[str]]]:
    """Yields every field and group below a group: (path of its group, name), names inside of it."""
    for name in group.keys():
        is_group = isinstance(group[name], ConfigDict)
        yield (where, name), group[name].keys() if is_group else ()
        if is_group:
            yield from _fields(group[name], f"{where}.{name}")


def _likeness(name: str, known: str) -> float:
    ratio = difflib.SequenceMatcher(None, name, known).ratio()
    words, known_words = set(name.split("_")), set(known.split("_"))
    shares = known_words <= words and 2 * len(known_words) >= len(words)
    return max(ratio, _SHARED_WORDS) if shares else ratio


def _wanted(parser: Any) -> str:
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
