"""Made-up measures of systems of known quality."""

import json

import numpy as np

from attention_jax.evaluation import chrf
from attention_jax.evaluation.bleu import FIELDS
from experiments import disagreement, sentence_measures
from experiments.sentence_measures import SentenceMeasure


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


def write_record(run, measures, **results):
    """Writes the record of a run, as if it had been trained and measured."""
    run.record.mkdir(parents=True)
    sentence_measures.save(
        run.record / sentence_measures.FILE,
        {name: measure.counts for name, measure in measures.items()},
    )
    texts = [f"{part} {index} ." for index in range(80) for part in ("source", "target")]
    disagreement.save(run.shared(disagreement.TEXTS), texts)
    outputs = [f"{run.cell} {text}" for text in texts[1::2]]
    disagreement.save(run.record / disagreement.OUTPUTS, outputs)
    facts = {"seed": run.seed, "commit": "c0ffee", "data": "da7a", "finished": "2026",
             "num_parameters": 1234, "num_train_pairs": 567}  # fmt: skip
    split = {"perplexity": 8.0, "chrf": 50.0, "length_ratio": 1.0, **results}
    for name, value in (
        ("config", run.resolved()), ("results", {"test": split}), ("run", facts),
    ):  # fmt: skip
        (run.record / f"{name}.json").write_text(json.dumps(value))


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
