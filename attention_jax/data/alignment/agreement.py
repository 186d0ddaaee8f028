"""Alignment by agreement: the HMMs of both directions, each taught by what the other confirms.

A word that is rare takes what others leave over ("garbage collection"), but seldom the same in
either direction. So what only one of the two HMMs believes in is counted less.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int

from attention_jax.data.alignment import hmm, ibm1
from attention_jax.data.alignment.bitext import (
    Bitext,
    Block,
    Links,
    Sentence,
    links_from_states,
    make_bitext,
)
from attention_jax.data.alignment.ibm1 import Estimator, Report

ITERATIONS = 5
ESTIMATES = (ibm1.translation_table, ibm1.translation_table)

# The two directions have different numbers of word pairs, and of widths of jumps.
Table = Float[np.ndarray, " _word_pairs"]
Jumps = Float[np.ndarray, " _widths"]


def align(
    sources: Sequence[Sentence], targets: Sequence[Sentence], reports: tuple[Report, Report]
) -> tuple[list[Links], list[Links]]:
    """Alignment by agreement: trains the HMMs of both directions together, and links words.

    A word is linked with the position that is the most probable for it, or with none if that is
    NULL, by the posterior of its own direction.

    Args:
      sources: Sentences as words.
      targets: The translation of each.
      reports: Called with a line after each iteration, one for each direction.

    Returns:
      Links (source, target) of every pair, in which a target word has at most one; and links
      (target, source), in which a source word has at most one.

    Source:
      Liang, Taskar and Klein 2006, sec. 3.2 (E-step by products of marginals) and 2.2 (decoding by
      posteriors).

    Deviations:
      Model 1, from which both begin, is trained in each direction by itself: two posteriors that
      are still flat have a product that leaves nearly everything to NULL. One direction links by
      its own posterior; the paper's threshold on the product of both is one way to symmetrise, and
      here symmetrization is done afterwards, as for all aligners.
    """
    bitexts = make_bitext(sources, targets), make_bitext(targets, sources)
    return trained_links(bitexts, reports)


def trained_links(
    bitexts: tuple[Bitext, Bitext],
    reports: tuple[Report, Report],
    estimates: tuple[Estimator, Estimator] = ESTIMATES,
) -> tuple[list[Links], list[Links]]:
    """Alignment by agreement: links as `align` does, with an M-step of t for each direction."""
    learnt = train_from_model_1(bitexts, reports, estimates)
    forward, reverse = (
        links_from_states(bitext, likeliest_states(bitext, *parameters))
        for bitext, parameters in zip(bitexts, learnt, strict=True)
    )
    return forward, reverse


def train_from_model_1(
    bitexts: tuple[Bitext, Bitext],
    reports: tuple[Report, Report],
    estimates: tuple[Estimator, Estimator] = ESTIMATES,
) -> list[tuple[Table, Jumps]]:
    """Initialises t by Model 1, each direction by itself, and trains both by `train`."""
    tables = [
        ibm1.train(bitext, estimate=estimate, report=report)
        for bitext, estimate, report in zip(bitexts, estimates, reports, strict=True)
    ]
    return train(bitexts, tables, estimates=estimates, reports=reports)


def train(
    bitexts: tuple[Bitext, Bitext],
    tables: Sequence[Table],
    iterations: int = ITERATIONS,
    *,
    estimates: tuple[Estimator, Estimator] = ESTIMATES,
    reports: tuple[Report, Report],
) -> list[tuple[Table, Jumps]]:
    """Expectation maximisation (EM): estimates both directions from the counts they agree on.

    Args:
      bitexts: The corpus in both directions, with NULL.
      tables: t(e|f) and t(f|e) to start from; jumps start uniform.
      iterations: Number of iterations.
      estimates: The M-step of t of each direction.
      reports: Called with a line after each iteration, one for each direction.

    Returns:
      The probabilities of words and the weights of jumps, as `hmm.train`, of each direction. Those
      of jumps are from a direction's own expected counts.
    """
    learnt = [
        (table, hmm.uniform_jumps(bitext)) for bitext, table in zip(bitexts, tables, strict=True)
    ]
    for iteration in range(1, iterations + 1):
        expected = [
            hmm.posteriors(bitext, *parameters)
            for bitext, parameters in zip(bitexts, learnt, strict=True)
        ]
        agree(bitexts, expected[0][0], expected[1][0])
        for direction, (bitext, (cells, jumps, log_likelihood)) in enumerate(
            zip(bitexts, expected, strict=True)
        ):
            learnt[direction] = hmm.maximised(bitext, cells, jumps, estimates[direction])
            reports[direction](
                ibm1.progress_line("agreement", iteration, iterations, log_likelihood, bitext)
            )
    return learnt


def agree(
    bitexts: tuple[Bitext, Bitext],
    forward: Float[np.ndarray, " forward_cells"],
    reverse: Float[np.ndarray, " reverse_cells"],
) -> None:
    """Joint E-step: replaces the posteriors of both directions by what both believe, in place.

      q_ij = p(a_j = i) p(b_i = j),    q_0j = 1 - sum_i q_ij,    q_i0 = 1 - sum_j q_ij

    Args:
      bitexts: The corpus in both directions.
      forward: p(a_j = i), that target word j is from source word i.
      reverse: p(b_i = j), that source word i is from target word j.
    """
    first = first_cells(bitexts[1])
    for block in bitexts[0].blocks:
        cells = block.view(forward)[..., :-1]  # N T S, a view
        same = _turned(block, first)
        cells *= reverse[same]
        reverse[same] = cells
    for bitext, posteriors in zip(bitexts, (forward, reverse), strict=True):
        for block in bitext.blocks:
            rows = block.view(posteriors)
            # What a word claims and no other confirms is NULL's; at least 0, whatever the rounding.
            rows[..., -1] = np.maximum(1 - rows[..., :-1].sum(axis=-1), 0.0)


def likeliest_states(
    bitext: Bitext, table: Table, jumps: Jumps
) -> Iterator[Int[np.ndarray, "_N _T"]]:
    """Posterior decoding: yields the most probable state of each target word, block by block.

    Among equally probable ones, the first is taken, and a word before NULL.
    """
    for posteriors in hmm.block_posteriors(bitext, table, jumps):
        yield posteriors[0].argmax(axis=-1)


def first_cells(bitext: Bitext) -> Int[np.ndarray, " pairs"]:
    """Returns the index of the first cell of every pair; 0 for those in no block."""
    first = np.zeros(bitext.num_pairs, int)
    for block in bitext.blocks:
        size = block.target_length * block.num_states
        first[block.pairs] = block.start + size * np.arange(len(block.pairs))
    return first


def _turned(block: Block, first: Int[np.ndarray, " pairs"]) -> Int[np.ndarray, "N T S"]:
    """Returns which cells of the opposite direction are the same pairs of words."""
    words, others = np.arange(block.target_length), np.arange(block.num_states - 1)
    # There a pair has a row for each of its S words, with T words and NULL in it.
    within = others[None, :] * (block.target_length + 1) + words[:, None]  # T S
    return first[block.pairs][:, None, None] + within
