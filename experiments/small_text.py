"""Small parallel texts under the settings that are chosen by their size; see `USAGE`."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attention_jax.data import storage
from attention_jax.data.builders import tatoeba
from attention_jax.data.builders.tatoeba import tatoeba_dataset_builder as pairs_of_tatoeba
from attention_jax.evaluation import seeds
from attention_jax.runs.files import write_text
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from attention_jax.sweeps.records import minutes
from experiments.kit import differences, page, pictures, program, resampled_scores, sample_map
from experiments.kit.variants import Variant, by_cell, grid_of

NAME = "small_text"
TITLE = "One's own small text: what to expect of 1,000, 6,000 and 30,000 pairs"
USAGE = """
Trains RNNsearch on 1,000, 6,000 and 30,000 pairs of Tatoeba, drawn at random, by the command for
one's own text as it is printed, and on 6,000 with settings chosen by hand, with three seeds each:
BLEU, minutes, and the attention map of a sentence.

usage: python -m experiments.small_text [--OPTION=VALUE ...]
"""
SIZES = (1000, 6000, 30_000)
BASE = "6000"
TEXTS = Path("runs") / NAME  # where the drawn texts are, whatever --runs says
# What the printed command itself chose when these rows were run.
_RATE = {"optimizer.learning_rate": 0.001}
_OF_40 = {
    **_RATE, "training.num_epochs": 20.0, "schedule.warmup_steps": 300,
    "training.evaluate_every_steps": 375, "training.checkpoint_every_steps": 187,
}  # fmt: skip
_OF_80 = {
    **_RATE, "data.batch_size": 80, "training.num_epochs": 22.4, "schedule.warmup_steps": 168,
    "training.evaluate_every_steps": 200, "training.checkpoint_every_steps": 100,
}  # fmt: skip
_BY_HAND = {
    "lower_rate": Variant("rate 0.001, 20 epochs", _OF_40),
    "larger_batches": Variant("rate 0.001, 22 epochs, batches of 80", _OF_80),
    "longer": Variant(
        "rate 0.001, 40 epochs, batches of 80", {**_OF_80, "training.num_epochs": 40.0}
    ),
    "less_dropout": Variant(
        "rate 0.001, 22 epochs, batches of 80, dropout 0.2 and 0.3",
        {**_OF_80, "model.embedding_dropout": 0.2, "model.output_dropout": 0.3},
    ),
}
_NONE_BY_HAND = "No runs have finished yet."
_ENTROPY = "attention/entropy"


def systems() -> dict[str, Variant]:
    """Returns the printed command at each size, and settings by hand at one of them."""
    printed = {str(size): Variant("as printed", _text(size)) for size in SIZES}
    by_hand = {
        f"{BASE}.{name}": Variant(variant.label, {**_text(int(BASE)), **variant.overrides})
        for name, variant in _BY_HAND.items()
    }
    return {**printed, **by_hand}


def _text(size: int) -> dict[str, Any]:
    return {"data.train_table": str(TEXTS / f"pairs.{size}.tsv")}


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a tiny one on made-up data."""
    if smoke:
        return grid_of(NAME, {BASE: Variant("as printed")}, "bahdanau2015:parallel", smoke)
    return grid_of(
        NAME, systems(), "bahdanau2015:parallel",
        after=("experiments.kit.sample_map",), curves=("bleu", _ENTROPY),
        kept={sample_map.FILE: None, **resampled_scores.kept("bleu")},
    )  # fmt: skip


def draw_texts(folder: Path = TEXTS) -> None:
    """Draws the training texts from Tatoeba, the smaller ones parts of the larger ones.

    Raises:
      DataError: If Tatoeba can neither be found nor fetched.
    """
    paths = {size: folder / f"pairs.{size}.tsv" for size in SIZES}
    if all(path.exists() for path in paths.values()):
        return
    digest = storage.recorded_digests(tatoeba.__file__)[pairs_of_tatoeba.ARCHIVE]
    archive = storage.obtain(
        f"tatoeba_deu/{pairs_of_tatoeba.ARCHIVE}", pairs_of_tatoeba.ADDRESS, digest
    )
    pairs = pairs_of_tatoeba.read_pairs(archive)
    random.Random(0).shuffle(pairs)
    folder.mkdir(parents=True, exist_ok=True)
    for size, path in paths.items():
        write_text(path, "".join(f"{english}\t{german}\n" for english, german in pairs[:size]))


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page and the attention maps of its first seeds."""
    cells = by_cell(runs)
    overview = tables.table(
        ["pairs", "settings", "seeds", "updates", "minutes", "BLEU ↑", "perplexity ↓",
         "entropy of attention ↓"],
        [_row(cell, members) for cell, members in cells.items()],
    )  # fmt: skip
    compared = differences.table_against(
        BASE, {"6,000": {name: of for name, of in cells.items() if name.startswith(BASE)}},
        resampled_scores.of_run("bleu"), systems(), {},
        ("pairs", "settings", "BLEU, against the printed command"),
    )  # fmt: skip
    firsts = {f"{int(cell):,} pairs": cells[cell][0] for cell in map(str, SIZES) if cell in cells}
    picture = sample_map.write_picture(firsts, out / grid.name)
    written = page.write(
        grid, runs, out, TITLE, NAME, overview=overview, compared=compared or _NONE_BY_HAND,
        sentence=sample_map.SENTENCE, resamples=f"{seeds.RESAMPLES:,}",
        picture=pictures.shown(picture, out),
    )  # fmt: skip
    return [written, *picture]


def _row(cell: str, runs: Sequence[GridRun]) -> list[str]:
    scores = [run.scores() for run in runs]
    # Of the last validation, whose step is the length of the training.
    curves = [run.record().curves[_ENTROPY]["validation"] for run in runs]
    lengths, entropy = zip(*((steps[-1], values[-1]) for steps, values in curves), strict=True)
    return [
        f"{int(cell.partition('.')[0]):,}", systems()[cell].label, str(len(runs)),
        f"{lengths[0]:,}",
        duration(runs), bleu(runs),
        tables.spread([one.get("perplexity") for one in scores]),
        tables.spread(entropy),
    ]  # fmt: skip


def bleu(runs: Sequence[GridRun]) -> str:
    """Returns mean and deviation of the runs' BLEU."""
    return tables.spread([run.scores().get("bleu") for run in runs])


def duration(runs: Sequence[GridRun]) -> str:
    """Returns mean and deviation of the minutes from the command to the evaluation, and on what."""
    timed = with_all_cores(runs)
    spent = tables.spread([minutes(run.facts()) for run in timed], 1)
    on = {run.facts().get("hardware", {}).get("processor", "") for run in timed}
    # Of "Intel(R) Xeon(R) Processor (AVX-512)" the maker and the name.
    short = (name.partition(" (")[0].removesuffix(" Processor").replace("(R)", "") for name in on)
    return f"{spent} ({' or '.join(sorted(short))})"


def with_all_cores(runs: Sequence[GridRun]) -> list[GridRun]:
    """Returns the runs whose time says something: none that shared the cores with another."""
    cores = [run.facts().get("hardware", {}).get("cpus", 1) for run in runs]
    return [run for run, own in zip(runs, cores, strict=True) if own == max(cores)]


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report, prepare=draw_texts)
