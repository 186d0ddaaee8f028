"""Forward-backward and Viterbi algorithms of the HMM aligner, for many sentence pairs at a time.

A target word comes from a source position or from NULL. NULL remembers the position before it, from
which the next jump is measured: it has one state for each position i, which is entered from i only.
The past thus matters only through the remembered position,

  p(real i | i') = (1 - p0) A(i', i),    p(null i | i') = p0 [i = i'],

and the transitions out of a real i and of a null i are the same. So the recursions are over S
positions rather than 2 S, with one product with A a step, and NULL costs nothing.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

Emissions = Float[np.ndarray, "N T S"]
NullEmissions = Float[np.ndarray, "N T"]
Start = Float[np.ndarray, " S"]
Transitions = Float[np.ndarray, "S S"]


def forward_backward(
    emissions: Emissions,
    null_emissions: NullEmissions,
    start: Start,
    transitions: Transitions,
    null_probability: float,
) -> tuple[Float[np.ndarray, "N T states"], Start, Transitions, Float[np.ndarray, " N"]]:
    """Forward-backward: computes posteriors and expected counts, rescaled at every step.

    Args:
      emissions: t(e_j|f_i) of `N` pairs, `N T S`.
      null_emissions: t(e_j|NULL), `N T`.
      start: Distribution of the first position, or of the one that a first NULL remembers.
      transitions: A, rows of distributions, (from, to).
      null_probability: p0.

    Returns:
      The posterior of the states of each target word, NULL last; the expected number of times that
      a position comes first, or is remembered by a first NULL; the expected number of times that
      each jump is made; and log p of each pair.

    Source:
      Vogel, Ney and Tillmann 1996, sec. 3; NULL as in Och and Ney 2003, on the HMM.
    """
    number, length, positions = emissions.shape
    real, null = np.empty((2, length, number, positions))
    scales = np.empty((length, number, 1))
    # Both passes are divided by the same scales, the sums of the forward pass: this keeps them from
    # underflow, makes `real * after` posteriors, and the logarithms of the scales add up to log p.
    for step in range(length):
        before, ahead = (start, start)
        if step:
            before = real[step - 1] + null[step - 1]
            ahead = before @ transitions  # N S
        real[step] = (1 - null_probability) * ahead * emissions[:, step]
        null[step] = null_probability * before * null_emissions[:, step, None]
        scales[step] = (real[step] + null[step]).sum(axis=-1, keepdims=True)
        real[step] /= scales[step]
        null[step] /= scales[step]
    posteriors = np.empty((number, length, positions + 1))
    jumps = np.zeros_like(transitions)
    after = np.ones((number, positions))
    for step in reversed(range(length)):
        posteriors[:, step, :-1] = real[step] * after
        posteriors[:, step, -1] = (null[step] * after).sum(axis=-1)
        if step:
            # This step's state is entered by a jump, or it is a NULL, which stays where it was.
            arrive = (1 - null_probability) * emissions[:, step] * after / scales[step]
            stay = null_probability * null_emissions[:, step, None] * after / scales[step]
            # Without the factor A(i', i), which the return multiplies in once for all steps.
            jumps += (real[step - 1] + null[step - 1]).T @ arrive  # S N @ N S, summed over pairs
            after = arrive @ transitions.T + stay
    starts = ((real[0] + null[0]) * after).sum(axis=0)
    return posteriors, starts, jumps * transitions, np.log(scales).sum(axis=(0, 2))


def viterbi(
    emissions: Emissions,
    null_emissions: NullEmissions,
    start: Start,
    transitions: Transitions,
    null_probability: float,
) -> Int[np.ndarray, "N T"]:
    """Viterbi: finds the most probable states, S for NULL; see `forward_backward` for arguments.

    Among equally probable ones, a word precedes NULL and a lower position a higher one.
    """
    number, length, positions = emissions.shape
    best = np.broadcast_to(start, (number, positions))
    origins = np.empty((length, number, positions), int)
    is_null = np.empty((length, number, positions), bool)
    for step in range(length):
        ahead, origin = best, np.zeros((number, positions), int)
        if step:
            ways = best[:, :, None] * transitions  # N from to
            ahead, origin = ways.max(axis=1), ways.argmax(axis=1)
        real = (1 - null_probability) * ahead * emissions[:, step]
        null = null_probability * best * null_emissions[:, step, None]
        is_null[step] = null > real
        origins[step] = np.where(is_null[step], np.arange(positions), origin)  # NULL stays
        best = np.maximum(real, null)
        best /= best.max(axis=-1, keepdims=True)  # against underflow; the order does not change
    return _trace_back(best.argmax(axis=-1), origins, is_null)


def _trace_back(
    position: Int[np.ndarray, " N"],
    origins: Int[np.ndarray, "T N S"],
    is_null: Bool[np.ndarray, "T N S"],
) -> Int[np.ndarray, "N T"]:
    """Follows the best way back from the last positions; returns the state of each word."""
    length, number, positions = origins.shape
    pairs, states = np.arange(number), np.empty((number, length), int)
    for step in reversed(range(length)):
        states[:, step] = np.where(is_null[step, pairs, position], positions, position)
        position = origins[step, pairs, position]
    return states
