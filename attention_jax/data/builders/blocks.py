"""Record format: the layout of examples in the records of a TFDS data set, the same for all.

An example is a source text with all accepted outputs. A record holds a block of examples, because
TFDS takes about 45 microseconds to write a record and 20 to read one, which for single dictionary
words would be far more than everything else.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

BLOCK_EXAMPLES = 256
_BETWEEN_REFERENCES = "\n"


class Example(NamedTuple):
    """A source text and the accepted outputs, the preferred one first."""

    source: str
    references: tuple[str, ...]


def block_features() -> Any:
    """Returns the TFDS features of a record: parallel lists of sources and of their references."""
    # Imported here because the names of data sets are found without TFDS, which takes a second.
    import tensorflow_datasets as tfds

    return tfds.features.FeaturesDict(
        {
            "sources": tfds.features.Sequence(tfds.features.Text()),
            "references": tfds.features.Sequence(tfds.features.Text()),
        }
    )


def to_blocks(examples: Iterable[Example]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields (key, record) pairs for TFDS, in the order of the examples."""
    examples = list(examples)
    for start in range(0, len(examples), BLOCK_EXAMPLES):
        block = examples[start : start + BLOCK_EXAMPLES]
        yield (
            start,
            {
                "sources": [example.source for example in block],
                "references": [_BETWEEN_REFERENCES.join(example.references) for example in block],
            },
        )


def from_blocks(records: Iterable[dict[str, Any]]) -> list[Example]:
    """Undoes `to_blocks`, for the records of a TFDS data source, whose texts are bytes."""
    return [
        Example(source.decode(), tuple(references.decode().split(_BETWEEN_REFERENCES)))
        for record in records
        for source, references in zip(record["sources"], record["references"], strict=True)
    ]


def grouped(pairs: Iterable[tuple[str, str]]) -> list[Example]:
    """Gathers the distinct outputs of every distinct source, in order of first appearance."""
    references: dict[str, dict[str, None]] = {}  # the inner ones are sets that keep their order
    for source, reference in pairs:
        references.setdefault(source, {})[reference] = None
    return [Example(source, tuple(accepted)) for source, accepted in references.items()]
