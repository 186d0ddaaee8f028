"""The sentences that systems translate most differently."""

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from attention_jax.errors import RunDirectoryError
from attention_jax.evaluation.bleu import bleu_from_statistics
from attention_jax.training.files import replacing

FILE = "outputs.test.txt.gz"
_LINES = ("source", "reference", "output")


def save(path: Path, sources: Sequence[str], references: Sequence[str], outputs: Sequence[str]):
    """Writes sources, first references and outputs to a compressed file of three lines each."""
    lines = (line for triple in zip(sources, references, outputs, strict=True) for line in triple)
    text = "".join(f"{line}\n" for line in lines)
    with replacing(path) as temporary:
        Path(temporary).write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))


def load(path: Path) -> list[tuple[str, str, str]]:
    """Reads (source, reference, output) of every sentence.

    Raises:
      RunDirectoryError: If there is no such file, or it is damaged.
    """
    try:
        lines = gzip.decompress(path.read_bytes()).decode("utf-8").split("\n")[:-1]
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise RunDirectoryError(f"{path}: expected outputs, {error}") from None
    if len(lines) % len(_LINES):
        raise RunDirectoryError(f"{path}: expected three lines a sentence, found {len(lines)}")
    return list(zip(lines[0::3], lines[1::3], lines[2::3], strict=True))


def most_different(counts: Mapping[str, np.ndarray], number: int) -> list[int]:
    """Returns the sentences whose BLEU varies most from system to system, the first the most.

    Args:
      counts: For each system, what BLEU counts of each sentence.
      number: How many sentences.
    """
    scores = np.stack([bleu_from_statistics(rows) for rows in counts.values()])
    return np.argsort(-scores.std(axis=0), kind="stable")[:number].tolist()


def page(
    outputs: Mapping[str, Sequence[tuple[str, str, str]]],
    counts: Mapping[str, np.ndarray],
    labels: Mapping[str, str],
    number: int = 20,
) -> list[str]:
    """Returns the lines of a page with the outputs of all systems for these sentences.

    Args:
      outputs: (source, reference, output) of every sentence, for each system.
      counts: For each system, what BLEU counts of each sentence.
      labels: How the systems are called.
      number: How many sentences.
    """
    lines = []
    first = next(iter(outputs.values()))
    for place, index in enumerate(most_different(counts, number), start=1):
        source, reference, _ = first[index]
        lines += [f"## {place}. Sentence {index}", "", f"- source: {_plain(source)}",
                  f"- reference: {_plain(reference)}", "",
                  "| system | output | BLEU of the sentence |", "| --- | --- | ---: |"]  # fmt: skip
        for system, its in outputs.items():
            score = float(bleu_from_statistics(counts[system][index]))
            lines.append(f"| {labels[system]} | {_plain(its[index][2])} | {score:.1f} |")
        lines.append("")
    return lines


def _plain(text: str) -> str:
    """Returns a text without the signs that Markdown reads as markup."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>|#" else sign for sign in text)
