"""Attention map of one sentence, which the record of a run keeps for the page of an experiment."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attention_jax import api
from attention_jax.runs.load import TrainedRun
from attention_jax.runs.run_directory import writing
from attention_jax.sweeps.grid import Run
from experiments.kit import kept_counts

USAGE = """
Translates one English sentence and keeps where each word of the output looked, in sample_map.npz.

usage: python -m experiments.kit.sample_map --workdir=RUN
"""
FILE = "sample_map.npz"
SENTENCE = "I think that you should go to the doctor."


def record(run: TrainedRun) -> None:
    """Writes the weights and the tokens of the best output into the run directory.

    Raises:
      RunDirectoryError: If they cannot be written.
    """
    (output,) = api.Run(run).translate([SENTENCE])
    path = run.directory.path / FILE
    with writing(path):
        np.savez_compressed(
            path, weights=np.float32(output.attention),
            source=_codes(output.source_tokens), target=_codes(output.tokens),
        )  # fmt: skip


def of_run(run: Run) -> tuple[Float[np.ndarray, "T S"], list[str], list[str]]:
    """Returns weights, source tokens and output tokens of a finished run, from its record."""
    kept = run.arrays(FILE)
    return kept["weights"], _tokens(kept["source"]), _tokens(kept["target"])


def _codes(tokens: Sequence[str]) -> np.ndarray:
    """Encodes tokens for a record, whose arrays are numbers."""
    return np.frombuffer("\n".join(tokens).encode("utf-8"), np.uint8)


def _tokens(codes: np.ndarray) -> list[str]:
    return codes.tobytes().decode("utf-8").split("\n")


if __name__ == "__main__":
    kept_counts.run_program(record, USAGE)
