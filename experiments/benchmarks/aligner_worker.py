"""Aligns a corpus: `python -m experiments.benchmarks.aligner_worker CORPUS ALIGNER`.

Prints errors, time and memory as JSON. What programs of this project import beside that, such as
JAX, would count as the aligner's memory, and is left out.
"""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from attention_jax.data import storage
from attention_jax.data.alignment.aligners import DIRECTIONS, METHODS, align
from attention_jax.data.alignment.bitext import Links, Sentence
from attention_jax.data.lines import read_lines, read_pairs
from attention_jax.errors import DataError, UserError
from attention_jax.evaluation.aer import count_links
from attention_jax.evaluation.pharaoh import MarkedLinks, parse_gold, parse_lines
from attention_jax.evaluation.symmetrization import symmetrize
from attention_jax.training.reporting.memory import peak_resident_bytes

FAST_ALIGN = "fast_align"
ALIGNERS = (*METHODS, FAST_ALIGN)
SYMMETRIZATIONS = ("grow-diag", "grow-diag-final-and")
_MULTI30K = "multi30k/tok/{split}.lc.norm.tok.{language}.gz"


class GoldCorpus(NamedTuple):
    """Parallel corpus, and the gold links of some of its pairs by number."""

    sources: list[Sentence]
    targets: list[Sentence]
    golds: Mapping[int, MarkedLinks]


def main(corpus: str, aligner: str) -> None:
    """Measures, and prints one line; what is missing is one line of standard error."""
    try:
        found = measured(CORPORA[corpus](), aligner)
    except UserError as error:
        raise SystemExit(str(error)) from None
    print(json.dumps(found), flush=True)


def measured(corpus: GoldCorpus, aligner: str) -> dict[str, float]:
    """Returns AER of each direction and of both, seconds, and the largest memory of a process.

    Times are of training and linking both directions, without reading the text.
    """
    cpu, began = _cpu_seconds(), time.perf_counter()
    links = _links(corpus, aligner)
    seconds, cpu = time.perf_counter() - began, _cpu_seconds() - cpu
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return {
        "pairs": len(corpus.sources),
        "gold_pairs": len(corpus.golds),
        **error_rates(*links, corpus.golds),
        "seconds": seconds,
        "cpu_seconds": cpu,
        "peak_mib": max(peak_resident_bytes(), children) / 2**20,
    }


def error_rates(
    forward: Sequence[Links], reverse: Sequence[Links], golds: Mapping[int, MarkedLinks]
) -> dict[str, float]:
    """Returns AER in percent of each direction, and of both symmetrised in each way."""
    numbers = sorted(golds)
    alignments: dict[str, list] = {
        name: [links[number] for number in numbers]
        for name, links in zip(DIRECTIONS, (forward, reverse), strict=True)
    }
    both = [*zip(*alignments.values(), strict=True)]
    for method in SYMMETRIZATIONS:
        alignments[method] = [symmetrize(*pair, method) for pair in both]
    expected = [golds[number] for number in numbers]
    return {name: count_links(links, expected).aer for name, links in alignments.items()}


def fast_align(sources: Sequence[Sentence], targets: Sequence[Sentence]) -> list[list[Links]]:
    """Word alignment by fast_align: returns the links of both directions as (source, target).

    Raises:
      UserError: If the program is not on the PATH, or fails.

    Source:
      Dyer, Chahuneau and Smith 2013; -d -o -v as its authors recommend.
    """
    program = shutil.which(FAST_ALIGN)
    if program is None:
        raise UserError("fast_align: expected the program on the PATH, found none")
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text")
        pairs = zip(sources, targets, strict=True)
        lines = [f"{' '.join(source)} ||| {' '.join(target)}\n" for source, target in pairs]
        text.write_text("".join(lines).lower(), encoding="utf-8")
        return [_run_fast_align([program, "-i", str(text), "-d", "-o", "-v", *reverse])
                for reverse in ([], ["-r"])]  # fmt: skip


def _run_fast_align(command: Sequence[str]) -> list[Links]:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"fast_align: failed with code {done.returncode}")
    found = parse_lines(done.stdout.splitlines(), FAST_ALIGN)
    return [sorted(links.possible) for links in found]


def _links(corpus: GoldCorpus, aligner: str) -> list[list[Links]]:
    sides = corpus.sources, corpus.targets
    return fast_align(*sides) if aligner == FAST_ALIGN else align(*sides, aligner)


def _hansards() -> GoldCorpus:
    texts = [line.split(" ||| ") for line in read_lines(_file("hansards_aer/enfr.src-tgt"))]
    sides = ([text[side].split() for text in texts] for side in (0, 1))
    lines = read_lines(_file("hansards_aer/enfr.gold"))
    return GoldCorpus(*sides, parse_gold(lines, "hansards_aer/enfr.gold", base=1))


def _multi30k(*splits: str) -> GoldCorpus:
    """Returns the test pairs, some of which have gold links, and those of further splits."""
    names = [[_file(_MULTI30K.format(split=split, language=language)) for language in ("en", "de")]
             for split in ("test_2016_flickr", *splits)]  # fmt: skip
    pairs = [pair for each in names for pair in read_pairs(*each)]
    sides = ([text.split() for text in side] for side in zip(*pairs, strict=True))
    name = "multi30k/alignments/test_2016_flickr.en-de.tsv"
    return GoldCorpus(*sides, parse_gold(read_lines(_file(name)), name))


def _file(name: str) -> Path:
    root = storage.data_root()
    if root is None or not (root / name).is_file():
        raise DataError(f"ATTENTION_JAX_DATA: expected a folder with {name}, has none")
    return root / name


CORPORA: Mapping[str, Callable[[], GoldCorpus]] = {
    "hansards": _hansards,
    "multi30k_1k": _multi30k,
    "multi30k_30k": lambda: _multi30k("train"),
}


def _cpu_seconds() -> float:
    """Returns seconds of computing of this process and of those it has waited for."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    main(*sys.argv[1:])
