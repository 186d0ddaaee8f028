"""Dynamic time warping over attention: when each token was said, from what it has attended to.

A token attends to a few of the frames that it was heard in, and the frames between two tokens
belong to the one or to the other. The warping path gives every frame to a token, in their order,
such that tokens get the frames that attended to them rather than to others.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

_LEAST = 1e-8  # attention below which a token has none, so that its logarithm is finite


def warping_path(costs: Float[np.ndarray, "T N"]) -> Int[np.ndarray, "P 2"]:
    """Dynamic time warping: finds the monotone path of least cost through a matrix.

    D[t, n] = costs[t, n] + min(D[t-1, n-1], D[t, n-1], D[t-1, n])

    Args:
      costs: Of each token with each frame, at least one of both.

    Returns:
      (token, frame) from the first of both to the last. Of equally good ways a diagonal step is
      taken first, and then one to the next frame.

    Source:
      Sakoe and Chiba (1978), "Dynamic programming algorithm optimization for spoken word
      recognition", the symmetric form without slope constraint, but for the diagonal's weight of
      one.
    """
    num_tokens, num_frames = costs.shape
    totals = np.full((num_tokens + 1, num_frames + 1), np.inf)
    totals[0, 0] = 0.0
    for token in range(num_tokens):
        for frame in range(num_frames):
            before = min(totals[token, frame], totals[token + 1, frame], totals[token, frame + 1])
            totals[token + 1, frame + 1] = costs[token, frame] + before
    token, frame, path = num_tokens, num_frames, []
    while token and frame:
        path.append((token - 1, frame - 1))
        steps = ((token - 1, frame - 1), (token, frame - 1), (token - 1, frame))
        token, frame = min(steps, key=lambda place: totals[place])
    return np.array(path[::-1])


def token_starts(weights: Float[np.ndarray, "T N"]) -> Int[np.ndarray, " T"]:
    """Returns the first frame of each token on the warping path over its attention.

    A frame is given to tokens in proportion to how much they attend to it, and the path is the most
    probable one: costs[t, n] = -log(weights[t, n] / sum_t weights[t, n]).

    Args:
      weights: Attention of each token to each frame, that of the end among them.
    """
    weights = np.maximum(np.asarray(weights, np.float64), _LEAST)
    path = warping_path(-np.log(weights / weights.sum(axis=0)))
    # The path goes through every token, and a token's first place on it comes first.
    _, first = np.unique(path[:, 0], return_index=True)
    return path[first, 1]


def word_starts_in_tokens(tokens: Sequence[str], *, are_words: bool) -> list[int]:
    """Returns the places of the tokens that begin words.

    Args:
      tokens: Words, or characters with spaces among them.
      are_words: Whether they are words. The tokens do not tell: a word may be one letter long.
    """
    if are_words:
        return list(range(len(tokens)))
    return [
        place
        for place, token in enumerate(tokens)
        if token != " " and (place == 0 or tokens[place - 1] == " ")
    ]


def start_scores(
    found: Sequence[Float[np.ndarray, " _"]], gold: Sequence[Float[np.ndarray, " _"]]
) -> dict[str, float]:
    """Scores when words begin against when they do.

    Args:
      found: The starts of the words of each output, in seconds.
      gold: Those of its reference, as many.

    Returns:
      `word_start_error`, the median of absolute differences in milliseconds, `word_starts_near`,
      the share that is within 100 ms, in percent, and `word_starts`, how many there are; nothing
      where there are none.
    """
    errors = [np.abs(one - other) for one, other in zip(found, gold, strict=True)]
    errors = 1000 * np.concatenate([np.zeros(0), *errors])
    if not len(errors):
        return {}
    return {
        "word_start_error": float(np.median(errors)),
        "word_starts_near": float(100 * np.mean(errors <= 100.0)),
        "word_starts": float(len(errors)),
    }
