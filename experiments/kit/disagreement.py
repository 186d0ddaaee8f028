"""The sentences that systems translate most differently."""

from collections.abc import Mapping, Sequence

import numpy as np

from attention_jax.evaluation.bleu import bleu_from_statistics
from attention_jax.sweeps.grid import GridRun
from attention_jax.sweeps.kept_files import kept_lines

OUTPUTS = "outputs.test.txt.gz"
TEXTS = "texts.test.txt.gz"  # a source and its reference in turn
REFERENCE = "reference"


def texts(runs: Sequence[GridRun]) -> tuple[list[str], dict[str, list[str]]]:
    """Reads the test sources, and the outputs of several runs for them.

    Returns:
      The sources; and the outputs by the runs' names, among them the references as `REFERENCE`.

    Raises:
      RunDirectoryError: If one of them is not in the records.
    """
    lines = kept_lines(runs[0].shared(TEXTS))
    outputs = {run.name: run.lines(OUTPUTS) for run in runs}
    return lines[::2], {REFERENCE: lines[1::2], **outputs}


def most_different(counts: Mapping[str, np.ndarray], number: int) -> list[int]:
    """Finds the sentences whose BLEU varies most between systems, in falling order.

    Args:
      counts: For each system the BLEU statistics of each sentence, `N F`.
      number: Number of sentences.
    """
    scores = np.stack([bleu_from_statistics(rows) for rows in counts.values()])
    return np.argsort(-scores.std(axis=0), kind="stable")[:number].tolist()


def page(
    texts: Sequence[str],
    outputs: Mapping[str, Sequence[str]],
    counts: Mapping[str, np.ndarray],
    labels: Mapping[str, str],
    number: int = 20,
) -> list[str]:
    """Shows the outputs of all systems for the sentences on which they differ most.

    Args:
      texts: Sources and references of all sentences, in turn.
      outputs: Each system's output for every sentence.
      counts: For each system the BLEU statistics of each sentence.
      labels: Names of the systems.
      number: Number of sentences.

    Returns:
      Lines of Markdown.
    """
    lines = []
    for place, index in enumerate(most_different(counts, number), start=1):
        source, reference = texts[2 * index : 2 * index + 2]
        lines += [f"### {place}. Sentence {index}", "", f"- source: {_plain(source)}",
                  f"- reference: {_plain(reference)}", "",
                  "| system | output | BLEU of the sentence |", "| --- | --- | ---: |"]  # fmt: skip
        for system, its in outputs.items():
            score = float(bleu_from_statistics(counts[system][index]))
            lines.append(f"| {labels[system]} | {_plain(its[index])} | {score:.1f} |")
        lines.append("")
    return lines


def _plain(text: str) -> str:
    """Escapes the characters that Markdown would read as markup."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>|#" else sign for sign in text)
