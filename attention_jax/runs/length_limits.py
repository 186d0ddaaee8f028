"""Length limits of outputs, taken from the training pairs where a config leaves them open.

`run.json` keeps them, because whoever translates later need not have the training pairs.
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
    """Returns length limits, for both directions, that cover the lengths of training pairs."""
    return {
        FORWARD: longest_of_pairs(sources, targets),
        REVERSE: longest_of_pairs(targets, sources),
    }


def record_limits(directory: RunDirectory, limits: Limits) -> None:
    """Writes the length limits of a run into `run.json`."""
    directory.add_to_run(**{_FACT: {direction: plain(each) for direction, each in limits.items()}})


def recorded_limits(directory: RunDirectory) -> Limits:
    """Reads the length limits of a run from `run.json`; defaults for runs of earlier versions.

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
    """Sets the length limit of a search to that of a run, unless the search has one of its own.

    Args:
      search: How to search.
      limits: The run's limits.
      direction: The direction of translation.
    """
    # `limits[FORWARD]` too is no choice of the user's: a loaded run has it filled in already, and
    # may now be asked for the other direction.
    left_open = (DEFAULT, limits[FORWARD])
    return limits[direction].within(search) if Longest.of(search) in left_open else search
