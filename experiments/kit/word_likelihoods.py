"""Likelihoods of words by their frequency: what a language model makes of every test text.

A program that a grid runs where training ends.
"""

import dataclasses
from collections import Counter

import jax
import numpy as np
from jaxtyping import Float

from attention_jax.data.pipeline import make_eval_batches
from attention_jax.runs.load import TrainedRun, task_of
from attention_jax.sweeps.grid import GridRun
from experiments.kit import kept_counts

USAGE = """
Sums up the log-likelihoods of the words of every test text of a run, by their frequency.

usage: python -m experiments.kit.word_likelihoods --workdir=RUN
"""
FILE = "word_likelihoods.npz"
# A word belongs to the first of these that is at least its number of occurrences in the training
# text; to a last group if there is none.
EDGES = (10, 100, 1000)
GROUPS = ("at most 10 times", "11 to 100", "101 to 1,000", "more than 1,000")


@dataclasses.dataclass(frozen=True, eq=False)
class Likelihoods:
    """One seed of a system: a row for each text, as `evaluation.seeds` takes it.

    Attributes:
      counts: The negative log-likelihood of its words, and how many there are.
    """

    counts: Float[np.ndarray, "N 2"]

    def score(self, sums: Float[np.ndarray, "*N 2"]) -> Float[np.ndarray, "*N"]:
        """Perplexity, of sums of rows."""
        return np.exp(sums[..., 0] / np.maximum(sums[..., 1], 1))


def record(run: TrainedRun) -> None:
    """Writes the sums of the test split into the run directory."""
    kept_counts.write(run, FILE, likelihoods(run))


def of_run(run: GridRun, group: int | None = None) -> Likelihoods:
    """Returns what a finished run makes of all words, or of those of a group, from its record."""
    counts = kept_counts.of_run(run, FILE)  # N G 2
    return Likelihoods(counts.sum(axis=1) if group is None else counts[:, group])


def likelihoods(run: TrainedRun, split: str = "test") -> Float[np.ndarray, "N G 2"]:
    """Sums up for each text and each group of words -log p, and the number of words."""
    data = task_of(run)
    known = Counter(int(word) for ids in data.split("train").target_ids for word in ids)
    size = run.target_vocabulary.size
    group = np.searchsorted(EDGES, [known[word] for word in range(size)])  # V
    texts = data.split(split)
    sums = np.zeros((len(texts), len(GROUPS), 2))

    @jax.jit
    def measure(params, batch):
        return run.model.apply(params, batch).predictions.log_prob(batch["target"])

    for batch in make_eval_batches(texts, run.config.data):
        log_probs = np.asarray(measure(run.params, batch), float)
        rows, places = np.nonzero(batch["target_mask"])
        texts_of = batch["index"][rows], group[batch["target"][rows, places]]
        np.add.at(sums[..., 0], texts_of, -log_probs[rows, places])
        np.add.at(sums[..., 1], texts_of, 1)
    return sums


if __name__ == "__main__":
    kept_counts.run_program(record, USAGE)
