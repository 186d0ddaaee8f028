"""Local attention: the cost of one query against the length of the source; see `USAGE`."""

import statistics
import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags

from attention_jax.commands import cli
from attention_jax.configuration import typed
from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.encoder import sequence
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.parameters import Initialization, draw
from attention_jax.ops.deferred_scan import deferred_scan
from attention_jax.paths import expanded
from attention_jax.plotting.figure import COLOURS, new_figure, text_style, tidy
from attention_jax.runs.provenance import commit, now, short_commit
from attention_jax.runs.run_directory import writing
from experiments.benchmarks.speed import report
from experiments.kit import pictures, templates
from experiments.kit.machine import hardware, named

USAGE = """
Measures what one query costs inside a recurrence, forward and backward, as the source grows: for
attention over the whole source and for Luong's windows of 21 slots. About two minutes.

usage: python -m experiments.benchmarks.speed.local_attention [--out=DIRECTORY]
"""
LENGTHS = (32, 64, 128, 256, 512, 1024)
QUERIES = (32, 96)
BATCH, DEPTH, ROUNDS = 8, 256, 9
CHOSEN = {
    "luong_general": {"name": "luong_general"},
    "bahdanau": {"name": "bahdanau", "attention_dim": DEPTH},
    "local_m": {"name": "local_m", "half_width": 10},
    "local_p": {"name": "local_p", "half_width": 10},
}


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, when it runs and not when it is imported."""
    flags.DEFINE_string("out", "docs/results/speed", "Where results are written.")
    return argv


def main() -> None:
    """Measures, writes JSON, a page and a plot."""
    path = expanded(flags.FLAGS.out) / "local_attention.json"
    with writing(path):  # before minutes of measuring, whose numbers would be lost
        path.parent.mkdir(parents=True, exist_ok=True)
    results = measure(LENGTHS, QUERIES, ROUNDS)
    first, *_ = report.write_beside(path, page, results)  # of the picture, too
    with writing(path.with_suffix(".png")):
        pictures.save(plot(first), path.with_suffix(".png"))
    print(page(results))


def measure(lengths: Sequence[int], queries: tuple[int, int], rounds: int) -> dict[str, Any]:
    """Returns microseconds a query, for each mechanism at each source length.

    A query's cost is the difference between two runs that differ in their number of queries: what
    is done once for a source drops out.
    """
    programs = {
        (name, length, number): compiled(name, length, number)
        for name in CHOSEN
        for length in lengths
        for number in queries
    }
    seconds: dict[Any, list[float]] = {key: [] for key in programs}
    order = np.random.default_rng(0)
    for _ in range(rounds):
        for index in order.permutation(len(programs)):
            key = list(programs)[index]
            program, arguments = programs[key]
            start = time.perf_counter()
            jax.block_until_ready(program(*arguments))
            seconds[key].append(time.perf_counter() - start)
    few, many = queries
    microseconds = {
        name: [
            1e6
            * (statistics.median(seconds[name, n, many]) - statistics.median(seconds[name, n, few]))
            / (many - few)
            for n in lengths
        ]
        for name in CHOSEN
    }
    slopes = {name: np.polyfit(lengths, values, 1)[0] for name, values in microseconds.items()}
    return {
        "command": command(),
        "commit": commit(),
        "time": now(),
        "device": jax.devices()[0].device_kind,
        "hardware": hardware(),
        "jax": jax.__version__,
        "rounds": rounds,
        "batch": BATCH,
        "depth": DEPTH,
        "lengths": list(lengths),
        "microseconds": microseconds,
        "slope_ns_per_slot": {name: 1e3 * float(slope) for name, slope in slopes.items()},
        "queries": many,
        "temporaries_mib": {
            name: programs[name, lengths[-1], many][0].memory_analysis().temp_size_in_bytes / 2**20
            for name in CHOSEN
        },
    }


def command() -> str:
    """Returns the command that measures again."""
    return "python -m experiments.benchmarks.speed.local_attention"


def compiled(name: str, length: int, queries: int) -> tuple[Any, tuple]:
    """Compiles the gradient of a recurrence of `queries` steps that attends at each."""
    config = typed(MECHANISMS.config(name), CHOSEN[name])
    mechanism = build_mechanism(config, DEPTH, DEPTH, DEPTH)
    rng = jax.random.key(0)
    params = draw(mechanism.parameters, rng, Initialization())
    keys = jax.random.normal(jax.random.fold_in(rng, 1), (BATCH, length, DEPTH))
    start = jax.random.normal(jax.random.fold_in(rng, 2), (BATCH, DEPTH))
    mask = jnp.ones((BATCH, length), bool)

    def step(constants: Any, query: Any, position: Any) -> tuple[Any, Any]:
        params, memory = constants
        output, _ = mechanism.attend(
            params, query[:, None], memory, positions=position[None] % length
        )
        # The next query depends on what this one found, as under input feeding.
        return jnp.tanh(query + output.context[:, 0]), None

    def loss(params: Any, keys: Any, start: Any) -> Any:
        memory = mechanism.make_memory(params, sequence(keys, mask))
        final, _ = deferred_scan(step, (params, memory), start, jnp.arange(queries))
        return jnp.sum(final**2)

    program = jax.jit(jax.grad(loss, argnums=(0, 1, 2))).lower(params, keys, start).compile()
    jax.block_until_ready(program(params, keys, start))
    return program, (params, keys, start)


def page(results: dict[str, Any]) -> str:
    """Returns the results as Markdown."""
    names = list(results["microseconds"])
    lines = [f"| source positions | {' | '.join(names)} |", f"|---:|{'---:|' * len(names)}"]
    for index, length in enumerate(results["lengths"]):
        cells = [f"{results['microseconds'][name][index]:.0f}" for name in names]
        lines.append(f"| {length} | {' | '.join(cells)} |")
    slopes = [f"{results['slope_ns_per_slot'][name]:.0f}" for name in names]
    lines.append(f"| fitted growth, ns a position | {' | '.join(slopes)} |")
    temporaries = [f"{results['temporaries_mib'][name]:.1f}" for name in names]
    what = f"temporary MiB of {results['queries']} queries, {results['lengths'][-1]} positions"
    lines.append(f"| {what} | {' | '.join(temporaries)} |")
    text = templates.fill(
        "local_attention", batch=results["batch"], depth=results["depth"],
        command=results["command"], commit=short_commit(results["commit"]), time=results["time"],
        jax=results["jax"], machine=named(results["hardware"], results["device"]),
        rounds=results["rounds"], table="\n".join(lines),
    )  # fmt: skip
    return text + "\n"


def plot(results: dict[str, Any]) -> Any:
    """Draws cost against length."""
    figure = new_figure(6.0, 3.6)
    axes = figure.subplots()
    for colour, (name, values) in zip(COLOURS, results["microseconds"].items(), strict=False):
        axes.plot(results["lengths"], values, color=colour, marker="o", markersize=4, label=name)
    tidy(axes)
    axes.set_xlabel("source positions", **text_style(9))
    axes.set_ylabel("microseconds a query", **text_style(9))
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)
    axes.set_title("Forward and backward", loc="left", **text_style(11, fontweight="bold"))
    return figure


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
