"""Bootstrap resamples of the scores of an evaluated split, by which runs are compared later.

Every run that is evaluated leaves, for each metric that its task has sufficient statistics of, the
score of all examples and that of each of 1,000 bootstrap resamples of them. Resamples depend on the
number of examples alone, so those of several runs are paired.

`resamples.SPLIT.npz` has an array for each metric: the number of examples, the score of all of
them, and the scores of the resamples.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from attention_jax.data.task import Statistics
from attention_jax.errors import RunDirectoryError
from attention_jax.evaluation.seeds import Resampled, resampled
from attention_jax.files import replacing
from attention_jax.runs.run_directory import RunDirectory, writing


@dataclasses.dataclass(frozen=True, eq=False)
class _Counts:
    """The sufficient statistics of each example, as `evaluation.seeds` takes them."""

    counts: Float[np.ndarray, "N F"]
    of_sums: object

    def score(self, sums: Float[np.ndarray, "*R F"]) -> Float[np.ndarray, "*R"]:
        return np.asarray(self.of_sums(sums), float)


def write_resamples(directory: RunDirectory, split: str, statistics: Statistics) -> None:
    """Bootstrap resampling: writes the scores of a split and of resamples of it.

    Args:
      directory: The run's.
      split: The split.
      statistics: Those of the run's task, by metric.
    """
    path = directory.resamples(split)
    arrays: dict[str, np.ndarray] = {}
    for name, (rows, of_sums) in statistics.items():
        found = resampled(_Counts(np.asarray(rows, float), of_sums))
        arrays[name] = np.array([found.sentences, found.score, *found.draws])
    with writing(path), replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays)


def read_resamples(arrays: Mapping[str, np.ndarray], where: str) -> dict[str, Resampled]:
    """Returns the scores that `write_resamples` has written, by metric.

    Args:
      arrays: The arrays of the file.
      where: The run, for the message.

    Raises:
      RunDirectoryError: If they are others.
    """
    if any(values.ndim != 1 or len(values) < 3 for values in arrays.values()):
        raise RunDirectoryError(f"{where}: expected scores of resamples, found other arrays")
    return {
        name: Resampled(float(values[1]), values[2:], int(values[0]))
        for name, values in arrays.items()
    }
