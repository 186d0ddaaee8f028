"""Gathers speed against peers in one table, the fastest peer of each row; see `USAGE`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import flags

from attention_jax.commands import cli
from attention_jax.paths import expanded
from attention_jax.runs.provenance import short_commit
from experiments.benchmarks.speed import report
from experiments.benchmarks.speed.benchmark import PROJECT
from experiments.kit import templates

USAGE = """
Prints and writes (ratios.md) one table of what experiments.benchmarks.speed.training, .decoding,
.startup and .gpu have measured: for every kind of work and every processor, the fastest peer, its
ratio, and its memory against ours.

  python -m experiments.benchmarks.ratios [--results=docs/results/speed]
"""
_RESULTS = flags.DEFINE_string("results", "docs/results/speed", "Where results are, and the page.")
MEASURED = ("training", "decoding", "startup", "gpu")
_HEADINGS = (
    "work", "processor", "fastest peer", "times as long as here", "times the memory", "code of",
)  # fmt: skip


def main() -> None:
    """Writes the page of all results."""
    folder = expanded(_RESULTS.value)
    written = page(folder)
    report.write_text(folder / "ratios.md", written)
    print(written, flush=True)


def page(folder: Path) -> str:
    """Returns the page of the results in a folder."""
    results = [report.load_results(folder / f"{name}.json") for name in MEASURED]
    found = [row for each in results for row in rows(each)]
    lines = [_HEADINGS, ("---", "---", "---", "---:", "---:", "---"), *found]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return templates.fill("speed_ratios", table=table) + "\n"


def rows(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[tuple[str, ...]]:
    """Yields a row for each result that has peers: what is measured of other projects' code."""
    for measured in results.values():
        for result in measured:
            sides = result["description"]["sides"]
            ours, contenders = result["contenders"][sides[0]["name"]], result["contenders"]
            peers = {side["name"] for side in sides if side["framework"] != PROJECT}
            ratios = {
                name: each["first_against_it"]
                for name, each in contenders.items()
                if name in peers
            }
            if ratios:
                best = min(ratios, key=lambda name: ratios[name]["median"])
                where, commit = report.processor(result), short_commit(result["commit"])
                memory = report.peak_memory(contenders[best]) / report.peak_memory(ours)
                ratio = report.with_range(ratios[best])
                yield result["title"], where, best, ratio, f"{memory:.2f}", commit


if __name__ == "__main__":
    cli.run(main, USAGE.strip())
