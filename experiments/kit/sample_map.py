"""Attention map of one sentence, which the record of a run keeps for the page of an experiment."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from attention_jax import api
from attention_jax.plotting.heat_map import HeatMap, heat_map_grid
from attention_jax.runs.load import TrainedRun
from attention_jax.runs.run_directory import writing
from attention_jax.sweeps.grid import GridRun
from attention_jax.sweeps.kept_files import array_lines, text_array
from experiments.kit import kept_counts, pictures

USAGE = """
Translates one sentence, or transduces one word, and keeps where each word or symbol of the output
looked, in sample_map.npz.

usage: python -m experiments.kit.sample_map --workdir=RUN
"""
FILE = "sample_map.npz"
SENTENCE = "I think that you should go to the doctor."
# Of words, by the language of the data: long ones of the first lines of each test.
WORDS: Mapping[str, str] = {
    "turkish": "izleyici\tN;ACC;SG;PSS2P",
    "german": "Abteilungsleiter\tN;GEN;SG",
    "finnish": "ulkoasiainministeri\tN;AT+ABL;PL",
    "spanish": "enterar\tV;SBJV;FUT;1;PL",
    "russian": "формулировать\tV;PST;SG;FEM",
    "hun": "adminisztrátornak",
    "ice": "austurríki",
    "fre": "abstrait",
    "kor": "가는돌고기",
    "eng_us": "aabomycin",
}


def sample(run: TrainedRun) -> str:
    """Returns what a run is given: a word of its language if it reads words, else the sentence."""
    return WORDS.get(getattr(run.config.data, "language", ""), SENTENCE)


def record(run: TrainedRun) -> None:
    """Writes the weights and the tokens of the best output into the run directory.

    Raises:
      RunDirectoryError: If they cannot be written.
    """
    (output,) = api.Run(run).translate([sample(run)])
    path = run.directory.path / FILE
    with writing(path):
        np.savez_compressed(path, **arrays(output.attention, output.source_tokens, output.tokens))


def arrays(
    weights: Float[np.ndarray, "T S"], source: Sequence[str], target: Sequence[str]
) -> dict[str, np.ndarray]:
    """Returns what a record keeps of a map."""
    return {
        "weights": np.float32(weights), "source": text_array(source), "target": text_array(target),
    }  # fmt: skip


def of_run(run: GridRun) -> tuple[Float[np.ndarray, "T S"], list[str], list[str]]:
    """Returns weights, source tokens and output tokens of a finished run, from its record."""
    kept = run.arrays(FILE)
    return kept["weights"], array_lines(kept["source"]), array_lines(kept["target"])


def write_picture(runs: Mapping[str, GridRun], folder: Path) -> list[Path]:
    """Draws the maps of finished runs side by side, under their titles.

    Returns:
      The files written; none where there are no runs.
    """
    if not runs:
        return []
    figure = heat_map_grid([HeatMap(*of_run(run), title) for title, run in runs.items()])
    pictures.save(figure, folder / "maps.png")
    return [folder / "maps.png"]


if __name__ == "__main__":
    kept_counts.run_program(record, USAGE)
