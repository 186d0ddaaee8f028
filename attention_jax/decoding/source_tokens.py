"""Tokens of sources: what the positions of each source of an example are called."""

from collections.abc import Sequence

from attention_jax.data.examples import Split
from attention_jax.data.field import SOURCE
from attention_jax.data.text.vocabulary import tokens_in_text


def text_of(split: Split, name: str, index: int) -> str:
    """Returns an example's source of a name as text; empty where it is none, such as a picture."""
    if name == SOURCE.name:
        return split.sources[index]
    return split.extras[name][index] if _is_text(split, name) else ""


def source_tokens(split: Split, name: str, index: int) -> Sequence[str]:
    """Tokens of a source, EOS last; the numbers of its positions where it is no text.

    Args:
      split: The examples.
      name: The field that the source is, `source` or the name of a further one.
      index: The example.
    """
    value = split.columns[name][index]
    if not _is_text(split, name):
        return [f"{place}" for place in range(len(value))]
    return tokens_in_text(split.source_vocabulary, value, text_of(split, name, index))


def _is_text(split: Split, name: str) -> bool:
    return any(field.is_text for field in split.fields if field.name == name)
