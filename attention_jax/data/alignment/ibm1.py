"""IBM Model 1 word aligner: a target word comes from a source word or NULL, whatever its place."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int

from attention_jax.data.alignment.bitext import (
    Bitext,
    Links,
    Sentence,
    links_from_states,
    make_bitext,
)

ITERATIONS = 5
# Added to the count of every word pair: without it a rare source word is linked to many words of
# its sentence that other words explain better ("garbage collection").
SMOOTHING = 0.01

Report = Callable[[str], None]
Table = Float[np.ndarray, " word_pairs"]
Estimator = Callable[[Bitext, Table], Table]  # an M-step: t(e|f) of expected counts


def align(
    sources: Sequence[Sentence], targets: Sequence[Sentence], report: Report = lambda line: None
) -> list[Links]:
    """IBM Model 1: links every target word with its most probable source word.

    Args:
      sources: Sentences as words.
      targets: The translation of each.
      report: Called with a line after each iteration.

    Returns:
      Links (source, target) of every pair; a target word from NULL has none. Among equally probable
      source words, the first is linked.

    Source:
      Brown, Della Pietra, Della Pietra and Mercer 1993, sec. 4.1.

    Deviations:
      Case is ignored and counts are smoothed, see `translation_table`.
    """
    bitext = make_bitext(sources, targets)
    table = train(bitext, report=report)
    return links_from_states(bitext, best_states(bitext, table))


def best_states(bitext: Bitext, table: Table) -> Iterator[Int[np.ndarray, "_N _T"]]:
    """Viterbi alignment: yields the most probable state of each target word, block by block."""
    for block in bitext.blocks:
        yield table[block.view(bitext.cells)].argmax(axis=-1)


def log_probs(bitext: Bitext, table: Table) -> Iterator[Float[np.ndarray, " _N"]]:
    """Likelihood: yields log p(e|f) of each pair, without that of its length, block by block."""
    for block in bitext.blocks:
        totals = table[block.view(bitext.cells)].sum(axis=-1)  # N T
        yield np.log(totals / block.num_states).sum(axis=-1)


def translation_table(bitext: Bitext, counts: Table, smoothing: float = SMOOTHING) -> Table:
    """M-step of EM: computes t(e|f) = (c(e,f) + n) / (sum_e' c(e',f) + n V).

    Args:
      bitext: The corpus, with V words in the target's vocabulary.
      counts: c, expected counts of word pairs.
      smoothing: n, added to every count; 0 for maximum likelihood.
    """
    totals = np.bincount(bitext.source_of, counts) + smoothing * bitext.num_target_words
    return (counts + smoothing) / totals[bitext.source_of]


def train(
    bitext: Bitext,
    iterations: int = ITERATIONS,
    *,
    estimate: Estimator = translation_table,
    report: Report = lambda line: None,
) -> Table:
    """Expectation maximisation (EM): estimates translation probabilities from a uniform start.

    Args:
      bitext: The corpus.
      iterations: Number of iterations.
      estimate: The M-step.
      report: Called with a line after each iteration.

    Returns:
      t(e|f) for every word pair that shares a sentence pair.
    """
    table = np.full(len(bitext.source_of), 1 / max(bitext.num_target_words, 1))
    for iteration in range(1, iterations + 1):
        counts, log_likelihood = expected_counts(bitext, table)
        table = estimate(bitext, counts)
        report(progress_line("ibm1", iteration, iterations, log_likelihood, bitext))
    return table


def expected_counts(bitext: Bitext, table: Table) -> tuple[Table, float]:
    """E-step of EM: computes how often each word pair is expected to be linked.

    p(e|f) = prod_j sum_i t(e_j|f_i) / states;  d_ji = t(e_j|f_i) / sum_i' t(e_j|f_i')

    Returns:
      The sum of d over all cells of each word pair, and log p of the corpus.
    """
    posteriors = table[bitext.cells]  # a copy, which the blocks' views are normalised in
    log_likelihood = 0.0
    for block in bitext.blocks:
        rows = block.view(posteriors)  # N T states
        totals = rows.sum(axis=-1, keepdims=True)
        rows /= totals
        log_likelihood += float(np.log(totals / block.num_states).sum())
    return np.bincount(bitext.cells, posteriors, len(table)), log_likelihood


def progress_line(
    model: str, iteration: int, iterations: int, log_likelihood: float, bitext: Bitext
) -> str:
    """Formats the progress of EM, with the perplexity of the model before the iteration."""
    perplexity = np.exp(-log_likelihood / max(bitext.num_tokens, 1))
    return f"{model} {iteration}/{iterations}  perplexity {perplexity:.2f}"
