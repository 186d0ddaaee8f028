"""BLEU by the length of the source, as a section of a page."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from attention_jax.evaluation.by_length import LengthBucket
from attention_jax.plotting.by_length import bleu_by_length_curves
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import GridRun
from experiments.kit import pictures, sentence_bleu, templates
from experiments.kit.joined_sentences import CAVEAT, NUMBERS
from experiments.kit.sentence_bleu import SentenceBleu

Curves = Mapping[str, Sequence[LengthBucket]]
# Test sentences, single and joined: title, splits, and the least numbers of words of their buckets.
LENGTHS = {
    "by_length": ("test sentences", ("test",), (7, 10, 13, 16, 20)),
    "joined": (
        "joined test sentences", tuple(f"joined_{n}" for n in NUMBERS), (20, 25, 30, 35, 40, 50)
    ),
}  # fmt: skip


def sentences_of(runs: Sequence[GridRun], splits: Sequence[str] = ("test",)) -> list[SentenceBleu]:
    """Reads the BLEU counts of each run's sentences, with several splits put together."""
    return [
        SentenceBleu.concatenated([sentence_bleu.of_run(run, split) for split in splits])
        for run in runs
    ]


def sections(
    runs: Mapping[str, Sequence[GridRun]], folder: Path
) -> tuple[dict[str, str], list[Path]]:
    """Draws and writes BLEU by the length of single and of joined test sentences.

    Args:
      runs: The runs of each system, by the name that tables have for it.
      folder: Of the plots, beside the page.

    Returns:
      The sections by their places in a template, and the paths of the plots.
    """
    found, paths = {}, []
    for name, (title, splits, edges) in LENGTHS.items():
        path = folder / f"{name}.png"
        curves = {
            label: sentence_bleu.by_length(sentences_of(members, splits), edges)
            for label, members in runs.items()
        }
        draw(curves, title, path)
        paths.append(path)
        caveat = CAVEAT if len(splits) > 1 else ""
        lines = section(title, curves, path.relative_to(folder.parent), caveat)
        found[name] = templates.section(lines)
    return found, paths


def draw(curves: Curves, title: str, path: Path) -> None:
    """Plots BLEU by length for several systems, each named by its key."""
    pictures.save(bleu_by_length_curves(curves, f"BLEU by length, {title}"), path)


def section(title: str, curves: Curves, plot: Path, caveat: str = "") -> list[str]:
    """Makes a section: heading, plot and table of its numbers, as lines of Markdown.

    Args:
      title: The kind of sentences.
      curves: The scores of each system.
      plot: Path of the plot, relative to the page.
      caveat: A remark on the intervals, or empty.
    """
    # Buckets of all systems: one without sentences in a bucket gets a gap there.
    labels = {
        bucket.first: (bucket.label, bucket.sentences)
        for buckets in curves.values()
        for bucket in buckets
    }
    rows = []
    for name, buckets in curves.items():
        found = {bucket.first: bucket for bucket in buckets}
        rows.append([name, *(
            f"{found[first].bleu:.1f} ({found[first].low:.1f} to {found[first].high:.1f})"
            if first in found else tables.NOTHING
            for first in sorted(labels)
        )])  # fmt: skip
    headings = [f"{labels[first][0]} words" for first in sorted(labels)]
    # The first row of the table says how many sentences each bucket has.
    numbers = ["sentences", *(f"{labels[first][1]:,}" for first in sorted(labels))]
    return [
        f"## BLEU by source length, {title}",
        "",
        f"![BLEU over source length]({plot})",
        "",
        " ".join(["Mean over seeds and 95 % interval.", *filter(None, [caveat])]),
        "",
        tables.table(["system", *headings], [numbers, *rows]),
    ]
