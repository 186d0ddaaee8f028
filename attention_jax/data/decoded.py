"""Decoded splits: outputs with all that came with them, from which a task computes its scores."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attention_jax.data.config import DataConfig
from attention_jax.data.examples import Split

Scores = dict[str, float | str]
# By the name of a model's output: its array for each example.
Gathered = Mapping[str, Sequence[np.ndarray]]


@dataclasses.dataclass(frozen=True, eq=False)
class DecodedSplit:
    """Decoded split: outputs for its examples with all that came with them, to be scored.

    Attributes:
      split: The split.
      data_config: Config of the data set.
      texts: The best output for each example, in the form that is scored; empty where there is
        none.
      nbest: The texts of all hypotheses for each example, best first.
      hypotheses: The hypotheses for each example, best first, with `tokens` and `weights`.
      attends: Whether hypotheses have weights of attention.
      alignment_shift: The step whose attention links a token, counted from the one that writes it;
        see `linking_weights`.
      gathered: What the model gave beside outputs, of that which the task `gathers`.
    """

    split: Split
    data_config: DataConfig
    texts: Sequence[str]
    nbest: Sequence[Sequence[str]] = ()
    hypotheses: Sequence[Sequence[Any]] = ()
    attends: bool = False
    alignment_shift: int = 0
    gathered: Gathered = dataclasses.field(default_factory=dict)
