"""HMM word aligner: the position a word comes from depends on that of the word before it."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int

from attention_jax.data.alignment import ibm1
from attention_jax.data.alignment.bitext import (
    Bitext,
    Block,
    Links,
    Sentence,
    links_from_states,
    make_bitext,
)
from attention_jax.data.alignment.ibm1 import Estimator, Report, Table
from attention_jax.data.alignment.lattice import forward_backward, viterbi

ITERATIONS = 5
NULL_PROBABILITY = 0.2
UNIFORM_SHARE = 0.2
_JUMP_SMOOTHING = 1e-6  # keeps jumps possible whose expected count is zero

Jumps = Float[np.ndarray, " widths"]


def align(
    sources: Sequence[Sentence], targets: Sequence[Sentence], report: Report = lambda line: None
) -> list[Links]:
    """HMM word alignment: links target words with source words along the most probable path.

    p(e, a|f) = prod_j p(a_j | a_{j-1}) t(e_j|f_{a_j})

    Args:
      sources: Sentences as words.
      targets: The translation of each.
      report: Called with a line after each iteration.

    Returns:
      Links (source, target) of every pair; a target word from NULL has none.

    Source:
      Vogel, Ney and Tillmann 1996, sec. 3; NULL and the share of the uniform distribution after
      Och and Ney 2003, on the HMM and on its smoothing.

    Deviations:
      The first position is a jump from just before the sentence, without a distribution of its own.
      Case is ignored and translation probabilities are smoothed, as in Model 1, which is trained
      first for five iterations.
    """
    bitext = make_bitext(sources, targets)
    table = ibm1.train(bitext, report=report)
    table, jumps = train(bitext, table, report=report)
    return links_from_states(bitext, best_states(bitext, table, jumps))


def best_states(
    bitext: Bitext, table: Table, jumps: Jumps
) -> Iterator[Int[np.ndarray, "_N _T"]]:
    """Viterbi alignment: yields the states of the most probable paths, block by block."""
    for block in bitext.blocks:
        yield viterbi(*_probabilities(table, bitext, block, jumps))


def log_probs(
    bitext: Bitext, table: Table, jumps: Jumps
) -> Iterator[Float[np.ndarray, " _N"]]:
    """Likelihood: yields log p(e|f) of each pair, without that of its length, block by block."""
    for _, _, _, found in block_posteriors(bitext, table, jumps):
        yield found


def train(
    bitext: Bitext,
    table: Table,
    iterations: int = ITERATIONS,
    *,
    report: Report = lambda line: None,
) -> tuple[Table, Jumps]:
    """Expectation maximisation (EM): estimates translation probabilities and jump weights.

    Args:
      bitext: The corpus, with NULL.
      table: t(e|f) to start from, that of Model 1; jumps start uniform.
      iterations: Number of iterations.
      report: Called with a line after each iteration.

    Returns:
      t(e|f) for every word pair, and c for every width of a jump, from -M to M, where M is the
      number of words of the longest source.
    """
    jumps = uniform_jumps(bitext)
    for iteration in range(1, iterations + 1):
        cells, jump_counts, log_likelihood = posteriors(bitext, table, jumps)
        table, jumps = maximised(bitext, cells, jump_counts)
        report(ibm1.progress_line("hmm", iteration, iterations, log_likelihood, bitext))
    return table, jumps


def widened(jumps: Jumps, longest: int) -> Float[np.ndarray, " more_widths"]:
    """Returns weights of jumps for sources of up to `longest` words; new widths count as unseen."""
    missing = max(longest - len(jumps) // 2, 0)
    return np.pad(jumps, missing, constant_values=_JUMP_SMOOTHING)


def uniform_jumps(bitext: Bitext) -> Jumps:
    """Returns equal weights for the widths from -M to M, M being the longest source's length."""
    longest = max((block.num_states - 1 for block in bitext.blocks), default=0)
    return np.ones(2 * longest + 1)


def maximised(
    bitext: Bitext,
    cells: Float[np.ndarray, " cells"],
    jump_counts: Jumps,
    estimate: Estimator = ibm1.translation_table,
) -> tuple[Table, Jumps]:
    """M-step of EM: computes t(e|f) and the weights of jumps from what was expected of them.

    Args:
      bitext: The corpus.
      cells: The posterior of every cell.
      jump_counts: The expected number of jumps of each width.
      estimate: Computes t(e|f) of expected counts.
    """
    counts = np.bincount(bitext.cells, cells, len(bitext.source_of))
    return estimate(bitext, counts), jump_counts + _JUMP_SMOOTHING


def expected_counts(bitext: Bitext, table: Table, jumps: Jumps) -> tuple[Table, Jumps, float]:
    """E-step of EM: computes expected counts by forward-backward.

    Returns:
      Expected counts of the links of each word pair and of the jumps of each width, and log p of
      the corpus. As in the paper, widths are pooled over sentences of all lengths although weights
      are normalised for each length, so the M-step is not exact.
    """
    cells, jump_counts, log_likelihood = posteriors(bitext, table, jumps)
    return np.bincount(bitext.cells, cells, len(table)), jump_counts, log_likelihood


def posteriors(
    bitext: Bitext, table: Table, jumps: Jumps
) -> tuple[Float[np.ndarray, " cells"], Jumps, float]:
    """Forward-backward over a corpus: computes what `expected_counts` sums.

    Returns:
      The posterior of every cell, the expected number of jumps of each width, and log p.
    """
    found = np.empty(len(bitext.cells))
    jump_counts = np.zeros_like(jumps)
    log_likelihood = 0.0
    blocks = zip(bitext.blocks, block_posteriors(bitext, table, jumps), strict=True)
    for block, (cells, starts, moves, log_probs) in blocks:
        block.view(found)[:] = cells
        for index, counts in zip(
            _width_indices(len(starts), jumps), (starts, moves), strict=True
        ):
            # Many (from, to) have the same width: `bincount` sums their counts.
            jump_counts += np.bincount(index.ravel(), counts.ravel(), len(jumps))
        log_likelihood += float(log_probs.sum())
    return found, jump_counts, log_likelihood


def block_posteriors(bitext: Bitext, table: Table, jumps: Jumps) -> Iterator[tuple]:
    """Yields what `forward_backward` computes of each block."""
    for block in bitext.blocks:
        yield forward_backward(*_probabilities(table, bitext, block, jumps))


def jump_probabilities(
    num_words: int, jumps: Jumps, uniform_share: float = UNIFORM_SHARE
) -> tuple[Float[np.ndarray, " S"], Float[np.ndarray, "S S"]]:
    """Jump model: computes the distributions of first and next positions among S source words.

    p(i|i') = (1 - u) c(i - i') / sum_k c(k - i') + u / S;  the first: i' = -1

    Args:
      num_words: S.
      jumps: c for the widths from -M to M, M >= S.
      uniform_share: u.

    Returns:
      `S`, and `S S` as (i', i).
    """
    start, transitions = (
        (1 - uniform_share) * weights / weights.sum(axis=-1, keepdims=True)
        + uniform_share / num_words
        for weights in (jumps[index] for index in _width_indices(num_words, jumps))
    )
    return start, transitions


def _width_indices(num_words: int, jumps: Jumps) -> tuple[np.ndarray, np.ndarray]:
    """Returns the indices into `jumps` of first jumps, `S`, and of later ones, `S S`."""
    # Width 0 is in the middle. The first jump begins at -1, just before the sentence.
    positions, zero = np.arange(num_words), len(jumps) // 2
    return positions + 1 + zero, positions[None, :] - positions[:, None] + zero


def _probabilities(table: Table, bitext: Bitext, block: Block, jumps: Jumps) -> Iterator:
    """Yields the arguments that a block's lattice takes."""
    emissions = table[block.view(bitext.cells)]  # N T states, NULL last
    yield emissions[..., :-1]
    yield emissions[..., -1]
    yield from jump_probabilities(block.num_states - 1, jumps)
    yield NULL_PROBABILITY
