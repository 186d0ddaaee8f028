"""Latency of simultaneous translation: how far outputs lag behind a source that is being read.

  g(t): how many tokens of the source had been read when output token t was written, t = 1 .. |y|
  gamma = |y| / |x|: the rate of a translation that is as fast as its source

Tokens are those of the vocabularies, without EOS: a translator that waits for the end of a line
has read |x| of them.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float, Int

# What the weights of a step add up to at least where all of its heads have stopped at a slot; one
# head that has not, of whatever number, has read everything.
STOPPED = 0.999


def tokens_read(weights: Float[np.ndarray, "T S"]) -> Int[np.ndarray, " _"]:
    """Returns g of attention that stops while it reads.

    A step has read all positions up to the last one that it attends to, and the whole source where
    its weights do not add up to one. What has been read once stays read.

    Args:
      weights: Of an output to its source, with EOS last on both sides.
    """
    weights = np.asarray(weights, np.float64)[:-1]
    size = weights.shape[1]
    # The last position with weight, as the first from the end; with it, as many were read.
    last = size - np.argmax(weights[:, ::-1] > 0, axis=1)
    read = np.where(weights.sum(axis=1) > STOPPED, last, size)
    # EOS is read, but is no token of the source.
    return np.minimum(np.maximum.accumulate(read), size - 1).astype(np.int64)


def average_lagging(read: Sequence[int] | np.ndarray, source_length: int) -> float:
    """Returns by how many source tokens an output lags behind one that is as fast as its source.

      AL = 1 / tau sum_{t=1}^{tau} (g(t) - (t - 1) / gamma),   tau the first t with g(t) = |x|

    Args:
      read: g, at least one.
      source_length: |x|.

    Source:
      Ma et al. (2019), "STACL: simultaneous translation with implicit anticipation and
      controllable latency using prefix-to-prefix framework", on average lagging.
    Deviations:
      Where an output ends before its source has been read, tau is |y|.
    """
    read = np.asarray(read, np.float64)
    # After the first step that has read everything, an output can lag no more.
    whole = np.flatnonzero(read >= source_length)
    tau = whole[0] + 1 if len(whole) else len(read)
    ideal = np.arange(tau) * source_length / len(read)
    return float(np.mean(read[:tau] - ideal))


def differentiable_average_lagging(
    read: Sequence[int] | np.ndarray, source_length: int
) -> float:
    """Returns average lagging of a translator that takes 1 / gamma of its source's time a token.

      DAL = 1 / |y| sum_{t=1}^{|y|} (g'(t) - (t - 1) / gamma)
      g'(t) = max(g(t), g'(t-1) + 1 / gamma),   g'(1) = g(1)

    No token is free, so that what was late stays late to the end of the output.

    Args:
      read: g, at least one.
      source_length: |x|.

    Source:
      Cherry and Foster (2019), "Thinking slow about latency evaluation for simultaneous machine
      translation".
    """
    read = np.asarray(read, np.float64)
    pace = source_length / len(read)
    # Less (t - 1) / gamma, the recursion is a running maximum.
    lags = read - pace * np.arange(len(read))
    return float(np.mean(np.maximum.accumulate(lags)))


def latency_scores(matrices: Iterable[np.ndarray]) -> dict[str, float]:
    """Averages the latency of outputs whose attention stops while it reads.

    Args:
      matrices: `T S` for each, see `tokens_read`.

    Returns:
      `average_lagging` and `differentiable_average_lagging`, in tokens of the source; nothing
      where there is no output but empty ones.
    """
    lags = []
    for weights in matrices:
        read, length = tokens_read(weights), weights.shape[1] - 1
        if len(read):
            measures = average_lagging, differentiable_average_lagging
            lags.append([measure(read, length) for measure in measures])
    if not lags:
        return {}
    names = "average_lagging", "differentiable_average_lagging"
    return dict(zip(names, map(float, np.mean(lags, axis=0)), strict=True))
