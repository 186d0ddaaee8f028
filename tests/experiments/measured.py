"""Made-up measures of systems of known quality."""

import numpy as np

from attention_jax.data.pictures import Canvas, cell_boxes
from attention_jax.evaluation import chrf, seeds
from attention_jax.evaluation.bleu import FIELDS
from attention_jax.plotting.document_page import ShownDocument, ShownSentence
from attention_jax.sweeps import archive
from attention_jax.sweeps.archive import Record
from attention_jax.sweeps.kept_files import keep_lines
from experiments.kit import disagreement, sample_attention, sentence_measures
from experiments.kit.sentence_measures import SentenceMeasure

DOCUMENT = ShownDocument(
    "first", "pos", "neg",
    [
        ShownSentence(["not", "good"], np.array([0.25, 0.75]), 0.75),
        ShownSentence(["end"], np.array([0.0]), 0.25),
    ],
)  # fmt: skip
_OTHERS = ("curves", "config", "arrays", "facts")
_TEXTS = [f"{part} {index} ." for index in range(80) for part in ("source", "target")]


def shares(numpy_rng, measure, rate, sentences=80):
    """Returns a system that earns this share of its points, as one seed of it would."""
    points = numpy_rng.integers(4, 12, sentences)
    return SentenceMeasure(
        measure, np.stack([numpy_rng.binomial(points, rate), points], axis=1).astype(float)
    )


def system(numpy_rng, number=3, **rates):
    """Returns the seeds of a system, each with these measures."""
    return [
        {measure: shares(numpy_rng, measure, rate) for measure, rate in rates.items()}
        for _ in range(number)
    ]


def made_record(run, measures=None, **others):
    """Returns the record of a run, as if it had been trained and measured.

    Args:
      run: The run.
      measures: What it is measured by.
      others: Further results of the test split; `curves`, `config`, `arrays` by file, or facts of
        `run.json` instead of the usual ones.
    """
    curves, config, arrays, facts = (others.pop(name, {}) for name in _OTHERS)
    facts = {"seed": run.seed, "commit": "c0ffee", "data": "da7a", "finished": "2026",
             "num_parameters": 1234, "num_train_pairs": 567, **facts}  # fmt: skip
    if measures is not None:
        counts = {name: np.float32(measure.counts) for name, measure in measures.items()}
        arrays = {sentence_measures.FILE: counts, **arrays}
    return Record(
        run.cell, run.seed, run.overrides, config, facts,
        {"test": {"perplexity": 8.0, "chrf": 50.0, "length_ratio": 1.0, **others}},
        curves, arrays, {disagreement.OUTPUTS: [f"{run.cell} {text}" for text in _TEXTS[1::2]]},
    )  # fmt: skip


def sample_of(*sources, seconds=0.0):
    """Returns what a record keeps of attention to these sources; those called `picture` are seen.

    Args:
      sources: Their names.
      seconds: How long what is seen sounds.
    """
    canvas = Canvas(np.zeros((4, 12, 3), np.uint8), cell_boxes(3, 1, 4), seconds)
    kept = {
        name: sample_attention.SourceAttention(
            np.eye(2, 3), canvas if name == "picture" else ["a", "b", "</s>"]
        )
        for name in sources
    }
    sample = sample_attention.SampleAttention("a b", ["x", "</s>"], kept)
    return {sample_attention.FILE: sample_attention.arrays(sample)}


def resamples_of(**scores):
    """Returns what a record keeps of scores and of their resamples, which spread by one."""
    draws = np.arange(seeds.RESAMPLES) % 5 / 2 - 1
    return {name: np.array([50.0, score, *(score + draws)]) for name, score in scores.items()}


def write_records(runs, records):
    """Writes the records of runs, with the texts that they share."""
    archive.add(runs[0].records, records)
    keep_lines(runs[0].shared(disagreement.TEXTS), _TEXTS)


def translations(numpy_rng, rate, sentences=80):
    """Returns what BLEU counts of a system that gets this share of its words right."""
    words = numpy_rng.integers(5, 20, sentences)
    counts = np.zeros((sentences, FIELDS))
    counts[:, 0] = counts[:, 1] = words
    for order in range(4):
        counts[:, 6 + order] = words - order
        counts[:, 2 + order] = numpy_rng.binomial(words - order, rate ** (order + 1))
    return SentenceMeasure("bleu", counts)


def characters(numpy_rng, sentences=80):
    """Returns what chrF counts of a system that gets most n-grams right."""
    wanted = numpy_rng.integers(20, 60, (sentences, chrf.ORDER))
    matches = numpy_rng.binomial(wanted, 0.7)
    counts = np.stack([wanted, wanted, matches], axis=-1).reshape(sentences, chrf.FIELDS)
    return SentenceMeasure("chrf", counts.astype(float))


def alignments(numpy_rng, rate, sentences=30):
    """Returns what AER counts of attention that finds this share of the links."""
    links = numpy_rng.integers(5, 15, sentences)
    hits = numpy_rng.binomial(links, rate)
    return SentenceMeasure("aer", np.stack([links, links, hits, hits], axis=1).astype(float))
