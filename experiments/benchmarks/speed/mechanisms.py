"""What each kind of attention, readout, pyramid and second source costs; see `USAGE`."""

import dataclasses
import random
import statistics
import string
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
from absl import flags

from attention_jax.commands import cli
from attention_jax.paths import expanded
from attention_jax.runs.progress import StatusLine, format_seconds
from attention_jax.runs.provenance import commit, now, short_commit
from attention_jax.runs.run_directory import RunDirectory, writing
from attention_jax.sweeps import tables
from attention_jax.training.assembly import assemble
from experiments import hard_vs_soft
from experiments.benchmarks.speed import report
from experiments.kit import templates
from experiments.kit.machine import hardware, named
from experiments.kit.variants import Variant, grid_of

USAGE = """
Measures a training step of one recurrent model of letters (configs/hard_vs_soft.py) with each kind
of attention and of readout in turn, in shuffled rounds, for words of two lengths: how many times as
long it takes as with soft attention, and the memory that it needs beside its state. The same of a
translator (configs/libovicky2017.py) that reads two sources, beside one that reads the first alone.
About twenty minutes on two idle cores, most of them for compiling.

usage: python -m experiments.benchmarks.speed.mechanisms [--out=DIRECTORY]
"""
LENGTHS = (16, 64)  # letters of a lemma and of its form, or words of a sentence
ROWS, ROUNDS, STEPS = 32, 9, 3
BASE, ALONE = "soft", "alone"  # what others are compared with
_TEXTS, _ENCODER = "libovicky2017", "sources.source.encoder"


def systems() -> dict[str, Variant]:
    """Returns what is measured by name: the kinds of the experiment, then others with its sizes."""
    soft = hard_vs_soft.SYSTEMS[BASE].overrides

    def other(label: str, **fields: Any) -> Variant:
        changed = {f"model.{path}": value for path, value in fields.items()}
        return Variant(label, {**soft, **changed})

    additive = {"attention.attention_dim": 128}
    return {
        **hard_vs_soft.SYSTEMS,
        "additive": other("soft, additive", **{"attention.name": "bahdanau", **additive}),
        "location": other("location-aware", **{"attention.name": "location_aware", **additive}),
        "coverage": other("coverage vector", **{"attention.name": "coverage_vector", **additive}),
        "local_m": other("local, monotonic", **{"attention.name": "local_m"}),
        "local_p": other("local, predictive", **{"attention.name": "local_p"}),
        "pointer": other("soft, pointer-generator", **{"readout.name": "pointer_generator"}),
        "copynet": other("soft, CopyNet", **{"readout.name": "copynet"}),
        **{
            f"pyramid_{levels}": other(
                f"soft, pyramid of {levels}",
                **{f"{_ENCODER}.name": "pyramidal", f"{_ENCODER}.levels": levels},
            )
            for levels in (1, 2)
        },
    }


def combinations() -> dict[str, Variant]:
    """Returns one source, and ways of attending to two, by name."""
    ways = {
        "concatenated": "contexts side by side", "parallel": "contexts added", "flat": "flat",
        "hierarchical": "hierarchical",
    }  # fmt: skip
    return {
        ALONE: Variant("one source", {}, _TEXTS, "parallel_alone"),
        **{
            name: Variant(f"two, {label}", {"model.attention.name": name}, _TEXTS, "parallel")
            for name, label in ways.items()
        },
    }


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, when it runs and not when it is imported."""
    flags.DEFINE_string("out", "docs/results/speed", "Where results are written.")
    return argv


def main() -> None:
    """Measures, and writes JSON and a page."""
    path = expanded(flags.FLAGS.out) / "mechanisms.json"
    with writing(path):  # before minutes of measuring, whose numbers would be lost
        path.parent.mkdir(parents=True, exist_ok=True)
    results = measure({**systems(), **combinations()}, LENGTHS)
    report.write_beside(path, page, results)
    print(page(results))


@dataclasses.dataclass
class MeasuredStep:
    """A compiled training step, with its batch and the state that it replaces.

    Attributes:
      temporaries: Bytes beside state and batch.
    """

    program: Any
    state: Any
    batch: Any
    temporaries: int
    rng: Any

    def seconds(self, steps: int) -> float:
        """Returns the time of a step, the mean of some in turn."""
        start = time.perf_counter()
        for _ in range(steps):
            self.state, _ = self.program(self.state, self.batch, self.rng)
        jax.block_until_ready(self.state)
        return (time.perf_counter() - start) / steps


def measure(systems: Mapping[str, Variant], lengths: Sequence[int]) -> dict[str, Any]:
    """Returns milliseconds of every round and mebibytes of each system, length by length."""
    keys = [(name, length) for length in lengths for name in systems]
    with tempfile.TemporaryDirectory() as folder:
        steps = {
            (name, length): compiled(name, systems[name], length, Path(folder))
            for name, length in _shown("compiling", keys)
        }
    seconds: dict[Any, list[float]] = {key: [] for key in steps}
    order = random.Random(0)
    for key in keys:
        steps[key].seconds(1)  # the first one allocates
    rounds = [key for _ in range(ROUNDS) for key in order.sample(keys, len(keys))]
    for key in _shown("measuring", rounds):
        seconds[key].append(steps[key].seconds(STEPS))
    return {
        "command": "python -m experiments.benchmarks.speed.mechanisms",
        "commit": commit(),
        "time": now(),
        "device": jax.devices()[0].device_kind,
        "hardware": hardware(),
        "jax": jax.__version__,
        "rounds": ROUNDS,
        "rows": ROWS,
        "lengths": list(lengths),
        "systems": {
            name: {
                "label": variant.label,
                "milliseconds": [[1e3 * one for one in seconds[name, n]] for n in lengths],
                "temporaries_mib": [steps[name, n].temporaries / 2**20 for n in lengths],
            }
            for name, variant in systems.items()
        },
    }


def _shown(doing: str, keys: Sequence[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Yields (system, length) in turn, and shows how far they are and how long the rest takes."""
    line, start = StatusLine(), time.monotonic()
    for done, (name, length) in enumerate(keys):
        left = (time.monotonic() - start) / max(done, 1) * (len(keys) - done)
        line.show(
            f"{doing} {done + 1}/{len(keys)}: {name}, length {length}"
            + (f"  {format_seconds(left)} left" if done else "")
        )
        yield name, length
    line.say(f"{doing}: {format_seconds(time.monotonic() - start)}")


def compiled(name: str, variant: Variant, length: int, folder: Path) -> MeasuredStep:
    """Compiles the training step of a system for made-up words or sentences of one length."""
    fields = {
        **(_sentences if variant.config == _TEXTS else _words)(length, folder),
        "data.batch_size": ROWS, "data.num_buckets": 1, "data.max_source_length": 2 * length,
        "data.max_target_length": 3 * length, "training.num_epochs": 1.0,
    }  # fmt: skip
    grid = grid_of("mechanisms", {name: variant}, "hard_vs_soft:inflections", overrides=fields)
    config = grid.run(name, 0, folder, folder).experiment()
    parts = assemble(config, RunDirectory(folder / f"{name}{length}"))
    rng = jax.random.key(0)
    state, batch = parts.start(rng), parts.strategy.place(next(parts.batches), 1)
    program = parts.train_step.lower(state, batch, rng).compile()
    return MeasuredStep(program, state, batch, program.memory_analysis().temp_size_in_bytes, rng)


def _words(length: int, folder: Path) -> dict[str, Any]:
    """Makes up lemmas, whose forms end otherwise; enough that some are left for validation."""
    draw, table = random.Random(length), folder / f"{length}.tsv"
    lemmas = ["".join(draw.choices(string.ascii_lowercase, k=length)) for _ in range(3 * ROWS)]
    rows = [f"{lemma}\t{lemma[:-2]}et\tV;PST\n" for lemma in lemmas]
    table.write_text("".join(rows), encoding="utf-8")
    return {"data.train_table": str(table)}


def _sentences(length: int, folder: Path) -> dict[str, Any]:
    """Makes up sentences of words that are letters, in two languages and a third to write."""
    draw, sides = random.Random(length), ("source", "second", "target")
    for side in sides:
        lines = [" ".join(draw.choices(string.ascii_lowercase, k=length)) for _ in range(3 * ROWS)]
        (folder / f"{length}.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    places = "train_source", "further.second.train", "train_target"
    return {
        "data.subwords.kind": "words",
        **{f"data.{place}": str(folder / f"{length}.{side}")
           for place, side in zip(places, sides, strict=True)},
    }  # fmt: skip


def page(results: Mapping[str, Any]) -> str:
    """Returns the results as Markdown."""
    lengths, found = results["lengths"], results["systems"]
    texts = {name: found[name] for name in combinations() if name in found}
    words = {name: system for name, system in found.items() if name not in texts}
    text = templates.fill(
        "mechanism_costs", table=_table("attention and readout", words, BASE, lengths),
        sources=_table("sources", texts, ALONE, lengths), rows=results["rows"],
        base=_milliseconds(found[BASE]), alone=_milliseconds(found[ALONE]),
        lengths=" and ".join(map(str, lengths)), command=results["command"],
        commit=short_commit(results["commit"]), time=results["time"], jax=results["jax"],
        machine=named(results["hardware"], results["device"]), rounds=results["rounds"],
    )  # fmt: skip
    return text + "\n"


def _table(
    heading: str, systems: Mapping[str, Any], base: str, lengths: Sequence[int]
) -> str:
    """Returns a row for each system: time beside the base's, and memory, length by length."""
    headings = [f"{length}: {what}" for length in lengths for what in ("time", "MiB")]
    rows = [
        [system["label"], *(
            cell
            for index in range(len(lengths))
            for cell in (
                _ratio(system["milliseconds"][index], systems[base]["milliseconds"][index]),
                f"{system['temporaries_mib'][index]:.1f}",
            )
        )]
        for system in systems.values()
    ]  # fmt: skip
    return tables.table([heading, *headings], rows)


def _milliseconds(system: Mapping[str, Any]) -> str:
    return ", ".join(f"{statistics.median(one):.1f}" for one in system["milliseconds"])


def _ratio(measured: Sequence[float], reference: Sequence[float]) -> str:
    """Formats how many times as long something takes: the median of the ratios of all rounds."""
    pairs = zip(measured, reference, strict=True)
    return f"{statistics.median(one / other for one, other in pairs):.2f}"


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
