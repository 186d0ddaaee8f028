import pytest

from attention_jax.data.examples import Split
from attention_jax.data.text.vocabulary import SymbolVocabulary
from experiments.kit.joined_sentences import joined


@pytest.fixture
def split():
    number = 11
    vocabulary = SymbolVocabulary("words", ["source", "target"])
    return Split(
        sources=[f"source {index}." for index in range(number)],
        targets=[f"target {index}." for index in range(number)],
        references=[[f"target {index}.", "other"] for index in range(number)],
        numbers=list(range(number)),
        name="test",
        source_vocabulary=vocabulary,
        target_vocabulary=vocabulary,
    )


@pytest.mark.parametrize("number", [2, 3, 4])
def test_joined_takes_every_sentence_once(split, number):
    found = joined(split, number)
    assert found.name == f"joined_{number}"
    assert len(found) == len(split) // number
    parts = [f"{part}." for text in found.sources for part in text.removesuffix(".").split(". ")]
    assert len(parts) == len(set(parts)) == len(found) * number
    assert set(parts) <= set(split.sources)


def test_joined_keeps_sources_and_targets_together(split):
    found = joined(split, 3)
    for source, target, references in zip(
        found.sources, found.targets, found.references, strict=True
    ):
        assert target == source.replace("source", "target")
        assert references == [target]


def test_joined_is_the_same_every_time_and_no_order_of_the_file(split):
    assert joined(split, 2).sources == joined(split, 2).sources
    assert joined(split, 2).sources[0] != "source 0. source 1."
