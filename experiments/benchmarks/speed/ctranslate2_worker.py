"""CTranslate2 as a contender of the speed benchmark, a process whose task is one JSON argument.

The Transformer of the comparison with the project's own weights, converted when the process starts.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np

from experiments.benchmarks.speed import serve
from experiments.benchmarks.speed.ctranslate2_model import save_model, words_of
from experiments.benchmarks.speed.workloads import BOS, EOS, PAD, Sentences, sizes_of


def load(task: dict[str, Any]) -> ctranslate2.Translator:
    """Converts the parameters that a task names; `compute` is `float32` or `int8`."""
    with np.load(task["parameters"]) as file:
        arrays = dict(file)
    with tempfile.TemporaryDirectory() as folder:
        save_model(arrays, sizes_of(task["sizes"]), Path(folder))
        return ctranslate2.Translator(
            folder, "cpu", compute_type=task["compute"], intra_threads=task["threads"]
        )


def beam(task: dict[str, Any]) -> tuple[Callable[[], Any], dict[str, Any]]:
    """Beam search for a batch of sentences, with outputs of `shortest` to `longest` tokens.

    CTranslate2 counts tokens without EOS, and has none where an output is as long as it may be: it
    then writes a word in the last step, where the other contenders write EOS.
    """
    translator, sentences = load(task), Sentences.load(task["data"])
    words, width = words_of(task["sizes"]["vocabulary"]), task["width"]
    rows = zip(sentences.source, sentences.source_lengths, strict=True)
    sources = [[words[number] for number in row[:length]] for row, length in rows]

    def search(shortest: int, longest: int) -> list[list[list[str]]]:
        found = translator.translate_batch(
            sources,
            beam_size=width,
            num_hypotheses=width,
            min_decoding_length=shortest,
            max_decoding_length=longest,
            suppress_sequences=[[words[PAD]], [words[BOS]]],
        )
        return [each.hypotheses for each in found]

    forced = task["shortest"] == task["longest"]
    limits = (task["longest"],) * 2 if forced else (task["shortest"] - 1, task["longest"] - 1)
    ready: dict[str, Any] = {"units": {"sentences": len(sentences)}}
    if task["compute"] == "float32":
        if "hypotheses" in task:
            outputs = [list(written(row, words)) for row in np.load(task["hypotheses"])]
        else:
            outputs = search(task["shortest"] - 1, task["shortest"] - 1)
        ready["check"] = log_probs(translator, sources, outputs)
    return lambda: search(*limits), ready


def written(hypotheses: np.ndarray, words: Sequence[str]) -> Iterator[list[str]]:
    """Yields the words of hypotheses `K L`, as far as their EOS."""
    for row in hypotheses:
        yield [words[number] for number in row[: row.tolist().index(EOS)]]


def log_probs(
    translator: ctranslate2.Translator,
    sources: Sequence[list[str]],
    outputs: Sequence[Sequence[list[str]]],
) -> list[list[float]]:
    """Returns the log-probability of each source's outputs, EOS included, the largest first."""
    repeated = [source for source, found in zip(sources, outputs, strict=True) for _ in found]
    flat = [output for found in outputs for output in found]
    scores = iter(translator.score_batch(repeated, flat))
    return [sorted((sum(next(scores).log_probs) for _ in found), reverse=True) for found in outputs]


def main() -> None:
    """Sets up the search that the task names, does it once to warm up, and serves."""
    channel, task = serve.open_channel(), serve.read_task()
    work, ready = beam(task)
    ready["rise_mib"] = serve.rise_of_memory(work)
    serve.serve(channel, work, version=f"ctranslate2 {ctranslate2.__version__}", **ready)


if __name__ == "__main__":
    main()
