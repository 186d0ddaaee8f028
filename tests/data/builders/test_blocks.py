from attention_jax.data.builders.blocks import (
    BLOCK_EXAMPLES,
    Example,
    from_blocks,
    grouped,
    to_blocks,
)


def _as_read_back(records):
    """What TFDS returns for a written record: bytes instead of strings."""
    for _, record in records:
        yield {name: [text.encode() for text in texts] for name, texts in record.items()}


def test_from_blocks_undoes_to_blocks():
    examples = [
        Example(f"source {number} ü", tuple(f"r{number}.{k}" for k in range(1 + number % 3)))
        for number in range(2 * BLOCK_EXAMPLES + 7)
    ]
    records = list(to_blocks(examples))
    assert [len(record["sources"]) for _, record in records] == [BLOCK_EXAMPLES] * 2 + [7]
    assert from_blocks(_as_read_back(records)) == examples


def test_to_blocks_keys_are_distinct():
    keys = [key for key, _ in to_blocks([Example("a", ("b",))] * (3 * BLOCK_EXAMPLES))]
    assert len(set(keys)) == len(keys) == 3


def test_grouped_gathers_distinct_references_in_order():
    pairs = [("a", "1"), ("b", "2"), ("a", "3"), ("a", "1")]
    assert grouped(pairs) == [Example("a", ("1", "3")), Example("b", ("2",))]
