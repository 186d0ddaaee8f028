"""The page of a split's documents: what each word and each sentence had to do with the label."""

from collections.abc import Sequence

import numpy as np

from attention_jax.data.decoded import Gathered
from attention_jax.data.documents import sentences_of
from attention_jax.data.examples import Split
from attention_jax.plotting.document_page import ShownDocument, ShownSentence, document_page
from attention_jax.runs.files import replacing
from attention_jax.runs.load import TrainedRun
from attention_jax.runs.run_directory import writing

MOST_SHOWN = 200


def write_page(
    run: TrainedRun, split: Split, outputs: Sequence[str], gathered: Gathered
) -> None:
    """Writes `documents.SPLIT.html` of a run into its directory.

    At most `MOST_SHOWN` documents are shown, those that were told wrongly before others.

    Args:
      run: The run.
      split: Its documents and their labels.
      outputs: The label that was told of each.
      gathered: Weights of words and of sentences.
    """
    if not run.directory.writes or "word_weights" not in gathered:
        return
    wrong = [one != other for one, other in zip(outputs, split.targets, strict=True)]
    order = sorted(range(len(split)), key=lambda index: not wrong[index])[:MOST_SHOWN]
    shown = [shown_document(split, outputs[index], gathered, index) for index in order]
    path = run.directory.page(split.name)
    page = document_page(f"{run.directory.path.name}, {split.name}", shown)
    with writing(path), replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def shown_document(split: Split, told: str, gathered: Gathered, index: int) -> ShownDocument:
    """Returns a document of a split with the label that was told and the gathered weights."""
    texts, vocabulary = sentences_of(split.sources[index]), split.source_vocabulary
    words = gathered["word_weights"][index]
    none = np.zeros(len(texts))
    sentences = gathered["sentence_weights"][index] if "sentence_weights" in gathered else none
    marked = gathered["rationale"][index] if "rationale" in gathered else None
    rows = []
    for row, text in enumerate(texts):
        surfaces = vocabulary.surfaces(text)
        is_marked = () if marked is None else marked[row][: len(surfaces)] > 0.5
        rows.append(
            ShownSentence(
                surfaces, words[row][: len(surfaces)], float(sentences[row]), tuple(is_marked)
            )
        )
    return ShownDocument(f"{index + 1}", told, split.targets[index], rows)
