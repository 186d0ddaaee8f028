"""Record format: the layout of examples in the records of a TFDS data set, the same for all.

An example is a source text with all accepted outputs. A record holds a block of examples, because
TFDS takes about 45 microseconds to write a record and 20 to read one, which for single dictionary
words would be far more than everything else.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

BLOCK_EXAMPLES = 256
_BETWEEN_REFERENCES = "\n"
_FURTHER = "further_"  # before the name of a source


class Example(NamedTuple):
    """A source text and the accepted outputs, the preferred one first."""

    source: str
    references: tuple[str, ...]


class ManySided(NamedTuple):
    """A source text, the accepted outputs, and the texts of further sources by their names."""

    source: str
    references: tuple[str, ...]
    further: Mapping[str, str]


def block_features(further: Sequence[str] = ()) -> Any:
    """Returns the TFDS features of a record: parallel lists of sources and of their references.

    Args:
      further: Names of further sources, each of which has a list of its own.
    """
    # Imported here because the names of data sets are found without TFDS, which takes a second.
    import tensorflow_datasets as tfds

    return tfds.features.FeaturesDict(
        {
            "sources": tfds.features.Sequence(tfds.features.Text()),
            "references": tfds.features.Sequence(tfds.features.Text()),
            **{_FURTHER + name: tfds.features.Sequence(tfds.features.Text()) for name in further},
        }
    )


def to_blocks(examples: Iterable[Example | ManySided]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields (key, record) pairs for TFDS, in the order of the examples."""
    examples = list(examples)
    for start in range(0, len(examples), BLOCK_EXAMPLES):
        block = examples[start : start + BLOCK_EXAMPLES]
        names = block[0].further if isinstance(block[0], ManySided) else ()
        yield (
            start,
            {
                "sources": [example.source for example in block],
                "references": [_BETWEEN_REFERENCES.join(example.references) for example in block],
                **{_FURTHER + name: [each.further[name] for each in block] for name in names},
            },
        )


def from_blocks(records: Iterable[dict[str, Any]]) -> list[Example | ManySided]:
    """Undoes `to_blocks`, for the records of a TFDS data source, whose texts are bytes."""
    found: list[Example | ManySided] = []
    for record in records:
        names = [key for key in record if key.startswith(_FURTHER)]
        further = zip(*(record[name] for name in names), strict=True)
        for source, references in zip(record["sources"], record["references"], strict=True):
            sides = source.decode(), tuple(references.decode().split(_BETWEEN_REFERENCES))
            if not names:
                found.append(Example(*sides))
                continue
            texts = zip(names, next(further), strict=True)
            others = {name.removeprefix(_FURTHER): text.decode() for name, text in texts}
            found.append(ManySided(*sides, others))
    return found


def grouped(pairs: Iterable[tuple[str, str]]) -> list[Example]:
    """Gathers the distinct outputs of every distinct source, in order of first appearance."""
    references: dict[str, dict[str, None]] = {}  # the inner ones are sets that keep their order
    for source, reference in pairs:
        references.setdefault(source, {})[reference] = None
    return [Example(source, tuple(accepted)) for source, accepted in references.items()]
