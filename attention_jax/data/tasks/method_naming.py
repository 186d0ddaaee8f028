"""Method naming: the name of a function from its body, judged by F1 of sub-tokens."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from attention_jax.configuration import setting
from attention_jax.data.builders.blocks import Example
from attention_jax.data.builders.splitting import split_of
from attention_jax.data.config import Corpus, DataConfig
from attention_jax.data.decoded import DecodedSplit, Scores
from attention_jax.data.examples import Split
from attention_jax.data.method_names import read_modules, standard_library
from attention_jax.data.task import Metric, Statistics, Task
from attention_jax.errors import DataError
from attention_jax.evaluation.naming import naming_counts, naming_scores

VALIDATION_FRACTION, TEST_FRACTION = 0.05, 0.1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(DataConfig):
    """Functions of Python modules, split by module.

    Attributes:
      folder: Of Python files; if empty, the standard library of the interpreter that runs, so that
        another version of Python has other functions.
      vocabulary_size: Most ids that bodies, and names, have each; rarer sub-tokens are unknown.
    """

    name: str = setting("method_naming", choices=("method_naming",))
    task: ClassVar[str] = "method_naming"
    units: ClassVar[tuple[str, str]] = ("symbols", "symbols")
    folder: str = setting("", is_file=True)
    vocabulary_size: int = setting(5000, at_least=5)

    def load(self) -> Corpus:
        """Returns the functions of every split: those of a module are all in one.

        Raises:
          DataError: If the folder's files cannot be used, or are too few to be split.
        """
        folder = self.folder or standard_library()
        splits: dict[str, list[Example]] = {"train": [], "validation": [], "test": []}
        for module, functions in read_modules(folder).items():
            place = split_of(module, validation=VALIDATION_FRACTION, test=TEST_FRACTION)
            splits[place] += [Example(body, (name,)) for body, name in functions]
        if empty := [name for name, functions in splits.items() if not functions]:
            raise DataError(
                f"{folder}: expected enough modules with functions to have some for "
                f"{' and '.join(empty)}, found none"
            )
        return splits


def scores(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Scores:
    """F1 and exact match: computes them for the best output alone."""
    found = naming_scores([[output] for output in outputs], split.references)
    return {name: found[name] for name in ("f1", "exact_match")}


def nbest_scores(decoded: DecodedSplit) -> Scores:
    """F1 and exact match at rank 5: computes them for the best of five outputs."""
    found = naming_scores(decoded.nbest, decoded.split.references)
    return {name: found[name] for name in ("f1_rank_5", "exact_match_rank_5")}


def statistics(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Statistics:
    """Sufficient statistics: returns F1 and exact match of each output, whose means are scores."""
    rows = naming_counts([[output] for output in outputs], split.references)
    return {"f1": (rows, _share(0)), "exact_match": (rows, _share(1))}


def nbest_statistics(decoded: DecodedSplit) -> Statistics:
    """Sufficient statistics of n-best lists: returns those of the best of five outputs."""
    rows = naming_counts(decoded.nbest, decoded.split.references)
    return {"f1_rank_5": (rows, _share(2)), "exact_match_rank_5": (rows, _share(3))}


def _share(column: int):
    """Returns the function from sums of rows to a mean in percent; the last column counts."""

    def share(counts: np.ndarray) -> float | np.ndarray:
        return 100 * counts[..., column] / counts[..., -1]

    return share


_PANEL = "F1, exact match (%)"
TASK = Task(
    label="method naming",
    scores=scores,
    details=(nbest_scores,),
    statistics=statistics,
    detail_statistics=nbest_statistics,
    metrics=(
        Metric("f1", "F1", _PANEL, "max"),
        Metric("exact_match", "exact match", _PANEL, "max"),
    ),
    printed=("f1", "exact_match"),
    shown=("f1", "exact_match", "f1_rank_5", "exact_match_rank_5"),
)
