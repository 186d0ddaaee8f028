"""Perplexity from summed losses."""

import math


def perplexity(negative_log_likelihood: float, tokens: float) -> float:
    """Computes exp(nll / tokens), infinite where that does not fit a float.

    Args:
      negative_log_likelihood: Summed over all target tokens, natural logarithm.
      tokens: Their number, EOS included.
    """
    try:
        return math.exp(negative_log_likelihood / tokens)
    except OverflowError:
        return math.inf
