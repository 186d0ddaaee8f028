"""Weights of the words of one document, which the record of a run keeps for a page."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from attention_jax.analysis.pages.documents import shown_document
from attention_jax.data.documents import sentences_of
from attention_jax.data.examples import Split
from attention_jax.decoding.forced_decoding import gather_outputs
from attention_jax.evaluation.rationales import Span, words_of
from attention_jax.plotting.document_page import ShownDocument, ShownSentence
from attention_jax.plotting.document_picture import document_picture
from attention_jax.runs.load import TrainedRun, task_of
from attention_jax.runs.run_directory import writing
from attention_jax.sweeps.grid import GridRun
from attention_jax.sweeps.kept_files import array_lines, text_array
from experiments.kit import kept_counts, pictures
from experiments.kit.attention_record import run_outputs

USAGE = """
Keeps the weights that a classifier gives the words and the sentences of one test document, in
sample_document.npz.

usage: python -m experiments.kit.sample_document --workdir=RUN
"""
FILE = "sample_document.npz"
MOST_WORDS = 400  # of the document, so that it can be read in a page


def record(run: TrainedRun) -> None:
    """Writes the words of the document and their weights into the run directory.

    Raises:
      RunDirectoryError: If they cannot be written, or the test split has not been evaluated.
    """
    test = task_of(run).split("test")
    index = chosen(test)
    outputs = run_outputs(run, test)
    gathered = gather_outputs(run, test, run.task.gathers)
    # Of a generator of rationales: what it has selected, in place of what reads the selection.
    gathered["word_weights"] = gathered.pop("rationale", gathered["word_weights"])
    document = shown_document(test, outputs[index], gathered, index)
    evidence = test.extras.get("evidence")
    kept = arrays(document, () if evidence is None else evidence[index])
    path = run.directory.path / FILE
    with writing(path):
        np.savez_compressed(path, **kept)


def chosen(split: Split) -> int:
    """Returns the first document that is short enough; the first one if none is."""
    lengths = [
        sum(len(split.source_vocabulary.surfaces(text)) for text in sentences_of(source))
        for source in split.sources
    ]
    return next((index for index, length in enumerate(lengths) if length <= MOST_WORDS), 0)


def arrays(document: ShownDocument, evidence: Sequence[Span] = ()) -> dict[str, np.ndarray]:
    """Returns what a record keeps of a document, whose words people have marked as evidence."""
    sentences = document.sentences
    words = [word for one in sentences for word in one.words]
    return {
        "labels": text_array([document.told, document.label]),
        "words": text_array(words),
        "lengths": np.array([len(one.words) for one in sentences], np.int32),
        "weights": np.concatenate([np.float32(one.weights) for one in sentences]),
        "shares": np.array([one.share for one in sentences], np.float32),
        "marked": words_of(evidence, len(words)),
    }


def of_run(run: GridRun, title: str) -> ShownDocument:
    """Returns the document of a finished run, from its record."""
    kept = run.arrays(FILE)
    words, ends = array_lines(kept["words"]), np.cumsum(kept["lengths"])
    told, label = array_lines(kept["labels"])
    parts = [slice(end - length, end) for length, end in zip(kept["lengths"], ends, strict=True)]
    marked = kept["marked"].astype(bool).tolist()
    sentences = [
        ShownSentence(words[part], kept["weights"][part], float(share), tuple(marked[part]))
        for part, share in zip(parts, kept["shares"], strict=True)
    ]
    return ShownDocument(title, told, label, sentences)


def write_picture(runs: Mapping[str, GridRun], folder: Path) -> list[Path]:
    """Draws the document of finished runs, one below the other, under their titles.

    Returns:
      The files written; none where there are no runs.
    """
    if not runs:
        return []
    figure = document_picture([of_run(run, title) for title, run in runs.items()])
    pictures.save(figure, folder / "document.png")
    return [folder / "document.png"]


if __name__ == "__main__":
    kept_counts.run_program(record, USAGE)
