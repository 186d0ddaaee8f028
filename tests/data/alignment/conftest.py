"""Small parallel corpora for the aligners."""

import pytest


@pytest.fixture
def toy():
    """Three pairs of which Model 1 learns what the words mean, worked out by hand."""
    pairs = [("das Haus", "the house"), ("das Buch", "the book"), ("ein Buch", "a book")]
    return [(source.split(), target.split()) for source, target in pairs]


@pytest.fixture
def made_up(numpy_rng):
    """Pairs of one to four words, words repeated within sentences too."""
    return [
        tuple(
            [f"{side}{number}" for number in numpy_rng.integers(5, size=numpy_rng.integers(1, 5))]
            for side in "fe"
        )
        for _ in range(12)
    ]


@pytest.fixture
def by_words():
    """Turns an array over the word pairs of a Bitext into {(f, e): value}; f is None for NULL."""

    def convert(bitext, pairs, values, null=True):
        found = {}
        for block in bitext.blocks:
            for pair, cells in zip(block.pairs, block.view(bitext.cells), strict=True):
                source, target = pairs[pair]
                for word, row in zip(target, cells, strict=True):
                    for state, cell in zip([*source, None] if null else source, row, strict=True):
                        assert found.setdefault((state, word), values[cell]) == values[cell]
        return found

    return convert
