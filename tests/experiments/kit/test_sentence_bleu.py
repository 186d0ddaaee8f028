import numpy as np
import pytest
import sacrebleu

from attention_jax.errors import RunDirectoryError
from attention_jax.sweeps.kept_files import kept_arrays
from experiments.kit import sentence_bleu
from experiments.kit.sentence_bleu import SentenceBleu

WORDS = "der ein Hund Mann läuft sieht rot groß auf mit".split()


def make_sentences(numpy_rng, number=60):
    lengths = numpy_rng.integers(4, 12, number)
    return [" ".join(numpy_rng.choice(WORDS, length)) for length in lengths]


def corrupt(numpy_rng, sentences, rate):
    return [
        " ".join(
            str(numpy_rng.choice(WORDS)) if numpy_rng.random() < rate else word
            for word in sentence.split()
        )
        for sentence in sentences
    ]


@pytest.fixture
def references(numpy_rng):
    return make_sentences(numpy_rng)


@pytest.fixture
def system(numpy_rng, references):
    """Makes a system that gets a share of the words wrong; every call is another seed."""

    def make(rate):
        outputs = corrupt(numpy_rng, references, rate)
        return SentenceBleu.of(references, outputs, [[text] for text in references])

    return make


def test_bleu_is_that_of_the_corpus(numpy_rng, references):
    outputs = corrupt(numpy_rng, references, 0.3)
    found = SentenceBleu.of(references, outputs, [[text] for text in references])
    expected = sacrebleu.corpus_bleu(outputs, [references]).score
    assert found.bleu == pytest.approx(expected, abs=1e-9)


def test_select_takes_sources_of_these_lengths(system):
    chosen = system(0.2).select(5, 7)
    assert set(chosen.words) == {5, 6, 7}
    assert len(chosen.counts) == len(chosen.words)
    everything = system(0.2)
    assert len(everything.select(1, None).words) == len(everything.words)


def test_save_and_load_return_the_same(tmp_path, system):
    splits = {"test": system(0.3), "joined_2": system(0.6).select(5, 7)}
    path = tmp_path / sentence_bleu.FILE
    sentence_bleu.save(path, splits)
    for name, expected in splits.items():
        found = sentence_bleu.from_arrays(kept_arrays(path, "counts"), name, "run")
        np.testing.assert_array_equal(found.words, expected.words)
        np.testing.assert_array_equal(found.counts, expected.counts)


def test_a_split_that_is_missing_is_one_line(system):
    found = sentence_bleu.arrays({"test": system(0.3)})
    with pytest.raises(RunDirectoryError, match="a/seed0: expected the counts of 'joined_9'"):
        sentence_bleu.from_arrays(found, "joined_9", "a/seed0")


def test_concatenated_has_all_sentences(system):
    first, second = system(0.1), system(0.5)
    both = SentenceBleu.concatenated([first, second])
    assert len(both.words) == 120
    assert second.bleu < both.bleu < first.bleu


def test_by_length_covers_all_lengths(system):
    seeds = [system(0.3) for _ in range(2)]
    buckets = sentence_bleu.by_length(seeds, (3, 6, 9))
    assert [bucket.label for bucket in buckets] == ["4-6", "7-9", ">9"]
    assert sum(bucket.sentences for bucket in buckets) == 60
    middle = [seed.select(7, 9).bleu for seed in seeds]
    assert buckets[1].bleu == pytest.approx(np.mean(middle))
