"""Length limits of outputs, where a config leaves them open: as the training pairs are.

`run.json` keeps it, for nobody who translates has the training pairs at hand.
"""

from collections.abc import Mapping

import numpy as np

from attention_jax.configuration import plain, typed
from attention_jax.errors import ConfigError, RunDirectoryError
from attention_jax.runs.run_directory import RunDirectory, read_json
from attention_jax.search import SearchConfig
from attention_jax.search.training_lengths import DEFAULT, Longest, longest_of_pairs

FORWARD, REVERSE = "forward", "reverse"
_FACT = "longest_outputs"

Limits = Mapping[str, Longest]
PairLengths = tuple[np.ndarray, np.ndarray]
NO_LENGTHS: PairLengths = (np.zeros(0, int), np.zeros(0, int))


def limits_of_pairs(sources: np.ndarray, targets: np.ndarray) -> Limits:
    """Returns the longest outputs of both directions that training pairs let expect."""
    return {
        FORWARD: longest_of_pairs(sources, targets),
        REVERSE: longest_of_pairs(targets, sources),
    }


def record_limits(directory: RunDirectory, limits: Limits) -> None:
    """Writes them into `run.json`."""
    directory.add_to_run(**{_FACT: {direction: plain(each) for direction, each in limits.items()}})


def recorded_limits(directory: RunDirectory) -> Limits:
    """Returns those of a run that has begun; the default for runs of earlier versions.

    Raises:
      RunDirectoryError: If `run.json` holds something else in their place.
    """
    found = (read_json(directory.run) or {}).get(_FACT)
    if found is None:
        return {FORWARD: DEFAULT, REVERSE: DEFAULT}
    try:
        return {name: typed(Longest, found[name], _FACT) for name in (FORWARD, REVERSE)}
    except (ConfigError, KeyError, TypeError):
        raise RunDirectoryError(
            f"{directory.run}: {_FACT}: expected a factor and a constant for either direction, "
            f"found {str(found)[:100]!r}"
        ) from None


def with_limits(search: SearchConfig, limits: Limits, direction: str = FORWARD) -> SearchConfig:
    """Returns a search whose longest output is that of a run, unless it says itself what it is.

    Args:
      search: How to search.
      limits: Of the run.
      direction: Which of them applies.
    """
    left_open = (DEFAULT, limits[FORWARD])  # the latter: opened already, for the other direction
    return limits[direction].within(search) if Longest.of(search) in left_open else search
