"""Time and memory of additive and dot-product attention; see `USAGE`."""

import dataclasses
import json
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags

from attention_jax.configuration import typed
from attention_jax.errors import UserError
from attention_jax.layers.attention import Mechanism
from attention_jax.layers.mechanism import find_config
from attention_jax.layers.parameters import Initialization, draw
from attention_jax.plotting.figure import COLOURS, new_figure, save_figure, text_style, tidy
from attention_jax.training.provenance import command_line, commit, now, short_commit
from experiments.tables import table
from launch import cli

USAGE = """
Tests the claim of Vaswani et al. (2017, section 3.2.1) that dot-product attention is much faster
and more space-efficient in practice than additive attention, which is alike in theory: time and
temporary memory of both, forward alone and with gradients, over the length, the depth and the
number of heads. Both project queries and keys to the same depth. About five minutes.

usage: python -m experiments.additive_vs_multiplicative [--out=DIRECTORY] [--smoke] [--tables_only]
"""
NAME = "additive_vs_multiplicative"
ADDITIVE, DOT = "additive", "dot product"
PASSES = ("forward", "with gradients")
BATCH, ROUNDS = 4, 7
# What "much faster" and "more space-efficient" are taken to mean: additive over dot product.
CLAIMED = {"milliseconds": 1.5, "temporaries_mib": 1.05}


@dataclasses.dataclass(frozen=True)
class Shape:
    """What is attended to: as many queries as slots.

    Attributes:
      length: Queries, and slots.
      depth: Of queries, keys and values, over all heads.
      heads: How many share the depth.
    """

    length: int
    depth: int
    heads: int


SHAPES = (
    *(Shape(length, 256, 1) for length in (32, 64, 128, 256, 512)),
    *(Shape(128, depth, 1) for depth in (64, 128, 512)),
    *(Shape(128, 256, heads) for heads in (4, 8)),
)
SMOKE = (Shape(8, 16, 1), Shape(16, 16, 2))


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, when it runs and not when it is imported."""
    flags.DEFINE_string("out", "docs/results", "Where results are written.")
    flags.DEFINE_boolean("smoke", False, "Tiny shapes.")
    flags.DEFINE_boolean("tables_only", False, "Whether the page is made of what is there.")
    return argv


def main() -> None:
    """Measures, writes JSON, a page and a plot; or the page and the plot of what was measured."""
    out = Path(flags.FLAGS.out)
    record = out / NAME / "results.json"
    if flags.FLAGS.tables_only:
        if not record.exists():
            raise UserError(f"--tables_only: expected {record}, found none")
        results = json.loads(record.read_text())
    else:
        results = measure(SMOKE if flags.FLAGS.smoke else SHAPES, ROUNDS)
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps(results, indent=1) + "\n")
    (out / f"{NAME}.md").write_text(page(results))
    save_figure(plot(results), out / NAME / "cost.png")
    print(page(results))


def measure(shapes: Sequence[Shape], rounds: int) -> dict[str, Any]:
    """Returns milliseconds and MiB of every shape, score and pass; scores take turns."""
    records = []
    for shape in shapes:
        programs = {
            (score, each): compiled(score, shape, each)
            for score in (ADDITIVE, DOT)
            for each in PASSES
        }
        seconds = timed({key: run for key, (run, _) in programs.items()}, rounds)
        for (score, each), (_, mebibytes) in programs.items():
            records.append(
                {
                    **dataclasses.asdict(shape),
                    "score": score,
                    "pass": each,
                    "milliseconds": 1e3 * statistics.median(seconds[score, each]),
                    "temporaries_mib": mebibytes,
                }
            )
    return {
        "command": command_line(),
        "commit": commit(),
        "at": now(),
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "batch": BATCH,
        "records": records,
    }


def timed(programs: Mapping[Any, Callable[[], Any]], rounds: int) -> dict[Any, list[float]]:
    """Runs programs by turns, in another order each round, and returns their seconds."""
    seconds: dict[Any, list[float]] = {key: [] for key in programs}
    order, keys = np.random.default_rng(0), list(programs)
    for _ in range(rounds):
        for index in order.permutation(len(keys)):
            start = time.perf_counter()
            jax.block_until_ready(programs[keys[index]]())
            seconds[keys[index]].append(time.perf_counter() - start)
    return seconds


def compiled(score: str, shape: Shape, what: str) -> tuple[Callable[[], Any], float]:
    """Compiles one attention; returns what runs it, and its temporaries in MiB."""
    attend, arrays = attention(score, shape)
    if what == PASSES[1]:
        attend = jax.grad(lambda *a, inner=attend: jnp.sum(inner(*a) ** 2), (0, 1, 2, 3))
    program = jax.jit(attend).lower(*arrays).compile()
    jax.block_until_ready(program(*arrays))
    mebibytes = program.memory_analysis().temp_size_in_bytes / 2**20
    return lambda: program(*arrays), mebibytes


def attention(score: str, shape: Shape) -> tuple[Callable[..., Any], tuple]:
    """Returns the contexts as a function of parameters, queries, keys and values, and these."""
    head_dim = shape.depth // shape.heads
    inner = (
        {"name": "bahdanau", "attention_dim": head_dim}
        if score == ADDITIVE
        else {"name": "scaled_dot"}
    )
    config = typed(
        find_config("multi_head"),
        {"name": "multi_head", "num_heads": shape.heads, "head_dim": head_dim, "score": inner},
    )
    mechanism = Mechanism.build(config, *[shape.depth] * 3)
    rng = jax.random.key(0)
    params = draw(mechanism.parameters, rng, Initialization())
    size = (BATCH, shape.length, shape.depth)
    query, keys, values = (
        jax.random.normal(jax.random.fold_in(rng, number), size) for number in range(3)
    )
    mask = jnp.ones(size[:2], bool)

    def attend(params: Any, query: Any, keys: Any, values: Any) -> Any:
        memory = mechanism.make_memory(params, keys, values, mask)
        return mechanism.attend(params, query, memory, is_fused=True)[0].context

    return attend, (params, query, keys, values)


# ---- The page ------------------------------------------------------------------------------------
def ratios(results: Mapping[str, Any], what: str, measure: str) -> dict[Shape, float]:
    """Returns, for every shape, how many times as much additive attention takes."""
    values = {
        (Shape(one["length"], one["depth"], one["heads"]), one["score"]): one[measure]
        for one in results["records"]
        if one["pass"] == what
    }
    shapes = dict.fromkeys(shape for shape, _ in values)
    return {
        shape: values[shape, ADDITIVE] / values[shape, DOT]
        for shape in shapes
        if values[shape, DOT] > 0
    }


def page(results: Mapping[str, Any]) -> str:
    """Returns the results as Markdown."""
    lines = [
        "# Additive against dot-product attention",
        "",
        "Vaswani et al. (2017, section 3.2.1) say that dot-product attention is much faster and "
        "more space-efficient in practice than additive attention. Multi-head attention with "
        f"either score, projections included; batch {results['batch']}, as many queries as slots; "
        f"`{results['command']}` on {results['device']}, jax {results['jax']}, commit "
        f"{short_commit(results['commit'])}, {results['at']}. Medians of runs by turns.",
        "",
        f"Here much faster is taken to mean that additive attention takes at least "
        f"{CLAIMED['milliseconds']:g} times as long, and more space-efficient that it takes at "
        f"least {CLAIMED['temporaries_mib']:g} times the temporary memory.",
        "",
        *verdicts(results),
        "",
        "Additive scores are those of this project: their hidden layer is computed again in the "
        "backward pass instead of kept. Dot products take the fused path, which answers long "
        "sequences in blocks.",
        "",
    ]
    for what in PASSES:
        lines += [f"## {what.capitalize()}", "", _table(results, what), ""]
    return "\n".join([*lines, f"![cost against length]({NAME}/cost.png)", ""])


def verdicts(results: Mapping[str, Any]) -> list[str]:
    """Returns a line for each measure and pass: the ratios' span, and whether the claim held."""
    lines = []
    for measure, name in {"milliseconds": "time", "temporaries_mib": "temporary memory"}.items():
        for what in PASSES:
            found = [*ratios(results, what, measure).values()]
            if found:
                span = f"{min(found):.2f} to {max(found):.2f} times that of dot products"
                lines.append(
                    f"- {name}, {what}: additive attention takes {span}. "
                    f"{_claim(found, CLAIMED[measure])}"
                )
    return lines


def _claim(found: Sequence[float], least: float) -> str:
    """Says whether additive attention takes so many times as much, at every shape or at some."""
    number = sum(ratio >= least for ratio in found)
    word = "Held" if number == len(found) else "Held in part" if number else "Not held"
    return f"{word}: at least {least:g} times at {number} of {len(found)} shapes."


def _table(results: Mapping[str, Any], what: str) -> str:
    rows = []
    by_time, by_memory = (
        ratios(results, what, name) for name in ("milliseconds", "temporaries_mib")
    )
    for shape, of_shape in _by_shape(results, what):
        cells = [f"{of_shape[score]['milliseconds']:.2f}" for score in (ADDITIVE, DOT)]
        cells.append(f"{by_time[shape]:.2f}")
        cells += [f"{of_shape[score]['temporaries_mib']:.1f}" for score in (ADDITIVE, DOT)]
        cells.append(f"{by_memory[shape]:.2f}" if shape in by_memory else "")
        rows.append([f"{shape.length}", f"{shape.depth}", f"{shape.heads}", *cells])
    headings = ["length", "depth", "heads", "additive, ms", "dot, ms", "ratio"]
    return table([*headings, "additive, MiB", "dot, MiB", "ratio"], rows)


def _by_shape(
    results: Mapping[str, Any], what: str
) -> Iterable[tuple[Shape, dict[str, Mapping[str, Any]]]]:
    found: dict[Shape, dict[str, Mapping[str, Any]]] = {}
    for one in results["records"]:
        if one["pass"] == what:
            shape = Shape(one["length"], one["depth"], one["heads"])
            found.setdefault(shape, {})[one["score"]] = one
    return found.items()


def plot(results: Mapping[str, Any]) -> Any:
    """Draws time against length at the first depth and number of heads."""
    figure = new_figure(6.0, 3.6)
    axes = figure.subplots()
    first = results["records"][0]
    for number, score in enumerate((ADDITIVE, DOT)):
        for what, style in zip(PASSES, ("--", "-"), strict=True):
            points = sorted(
                (one["length"], one["milliseconds"])
                for one in results["records"]
                if (one["score"], one["pass"]) == (score, what)
                and (one["depth"], one["heads"]) == (first["depth"], first["heads"])
            )
            axes.plot(*zip(*points, strict=True), style, color=COLOURS[number], marker="o",
                      markersize=4, label=f"{score}, {what}")  # fmt: skip
    tidy(axes)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("queries, and slots", **text_style(9))
    axes.set_ylabel("milliseconds", **text_style(9))
    axes.legend(frameon=False, fontsize=8)
    axes.set_title(f"Depth {first['depth']}", loc="left", **text_style(11, fontweight="bold"))
    return figure


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
