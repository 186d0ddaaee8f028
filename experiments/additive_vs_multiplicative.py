"""Time and memory of additive and dot-product attention; see `USAGE`."""

import dataclasses
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags
from matplotlib.ticker import ScalarFormatter, StrMethodFormatter

from attention_jax.commands import cli
from attention_jax.configuration import typed
from attention_jax.errors import RunDirectoryError, UserError
from attention_jax.layers.attention import MultiHead, build_mechanism
from attention_jax.layers.encoder import sequence
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.parameters import Initialization, Parameter, draw
from attention_jax.ops.scores import additive_scores
from attention_jax.paths import expanded
from attention_jax.plotting.figure import COLOURS, new_figure, text_style, tidy
from attention_jax.runs.files import write_json, write_text
from attention_jax.runs.provenance import (
    command_line,
    commit,
    is_of_this_code,
    now,
    short_commit,
)
from attention_jax.runs.run_directory import read_json
from attention_jax.sweeps.tables import table
from experiments.benchmarks.speed.harness import Conditions, wait_until_quiet
from experiments.kit import pictures, templates
from experiments.kit.machine import hardware, named

USAGE = """
Tests the claim of Vaswani et al. (2017, section 3.2.1) that dot-product attention is much faster
and more space-efficient in practice than additive attention, which is alike in theory: time and
temporary memory of both, forward alone and with gradients, over the number of queries and of slots,
the depth and the number of heads. Both project queries and keys once, to the same depth. Additive
scores are measured twice: as in this project, and written out, with their hidden layer kept. Some
five minutes.

usage: python -m experiments.additive_vs_multiplicative [--OPTION=VALUE ...]

  --out=DIRECTORY  results and the page (docs/results; with --smoke runs/smoke_results)
  --smoke          tiny shapes, in seconds
  --tables_only    measure nothing, make the page of what was measured
  --again          measure again what was measured with the same code, library and machine

Results are saved after each shape, and the same command goes on where it was cut off.
"""
NAME = "additive_vs_multiplicative"
ADDITIVE, PLAIN, DOT = "additive", "additive, written out", "dot product"
SCORES = (ADDITIVE, PLAIN, DOT)
PASSES = ("forward", "with gradients")
BATCH, ROUNDS = 4, 15
QUIET = Conditions()
# Thresholds for "much faster" and "more space-efficient": ratios, additive over dot product.
CLAIMED = {"milliseconds": 2.0, "temporaries_mib": 1.5}


@dataclasses.dataclass(frozen=True)
class Shape:
    """The shape of an attention.

    Attributes:
      queries: Number of queries.
      slots: Number of memory slots that they attend to.
      depth: Depth of queries, keys and values, over all heads together.
      heads: Number of heads, which share the depth.
    """

    queries: int
    slots: int
    depth: int
    heads: int


SHAPES = (
    *(Shape(length, length, 256, 1) for length in (32, 64, 128, 256, 512)),
    *(Shape(queries, 128, 256, 1) for queries in (1, 32, 512)),
    *(Shape(128, slots, 256, 1) for slots in (32, 512)),
    *(Shape(128, 128, depth, 1) for depth in (64, 128, 512)),
    *(Shape(length, length, 256, heads) for length in (32, 128, 512) for heads in (4, 8)),
)
SMOKE = (Shape(8, 8, 16, 1), Shape(8, 16, 16, 2))


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, when it runs and not when it is imported."""
    flags.DEFINE_string("out", None, "Where results are written.")
    flags.DEFINE_boolean("smoke", False, "Tiny shapes.")
    flags.DEFINE_boolean("tables_only", False, "Whether the page is made of what is there.")
    flags.DEFINE_boolean("again", False, "Whether to measure again what was measured.")
    return argv


def main() -> None:
    """Measures, writes JSON, a page and a plot; or the page and the plot of what was measured."""
    smoke = flags.FLAGS.smoke
    out = expanded(flags.FLAGS.out or ("runs/smoke_results" if smoke else "docs/results"))
    shapes, path = SMOKE if smoke else SHAPES, out / NAME / "results.json"
    again = flags.FLAGS.again and not flags.FLAGS.tables_only
    results = None if again else load(path)
    if not flags.FLAGS.tables_only:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Numbers of another machine or of other code must not stand beside new ones in one table.
        goes_on = results is not None and is_current(results)
        results = measure(
            shapes, ROUNDS, results if goes_on else None, lambda found: write_json(path, found)
        )
    if not results or not results["records"]:
        raise UserError(f"--tables_only: expected measurements in {path}, found none")
    text = page(results, shapes)
    write_text(out / f"{NAME}.md", text)
    pictures.save(plot(results), out / NAME / "cost.png")
    print(text)


def measure(
    shapes: Sequence[Shape],
    rounds: int,
    results: Mapping[str, Any] | None = None,
    save: Callable[[dict[str, Any]], None] = lambda results: None,
) -> dict[str, Any]:
    """Measures every shape.

    Args:
      shapes: What to measure.
      rounds: How often each program runs.
      results: Those of a measurement that was cut off; its shapes are not measured again.
      save: Called with the results so far, after each shape.

    Returns:
      Milliseconds and MiB of every shape, score and pass, and how they were measured.
    """
    found = {**_facts(), "records": [], **(results or {})}
    known = measured_shapes(found)
    for shape in shapes:
        if shape in known:
            continue
        records = [*found["records"], *measure_shape(shape, rounds)]
        found = {**found, "at": now(), "records": records}
        save(found)
    return found


def measure_shape(shape: Shape, rounds: int) -> list[dict[str, Any]]:
    """Measures every score and pass at one shape, in turns: milliseconds and MiB."""
    programs = {
        (score, each): compiled(score, shape, each)
        for score in SCORES
        for each in PASSES
    }  # fmt: skip
    seconds = timed({key: run for key, (run, _) in programs.items()}, rounds)
    return [
        {
            **dataclasses.asdict(shape),
            "score": score,
            "pass": each,
            "milliseconds": 1e3 * statistics.median(seconds[score, each]),
            "range": [1e3 * min(seconds[score, each]), 1e3 * max(seconds[score, each])],
            "temporaries_mib": mebibytes,
        }
        for (score, each), (_, mebibytes) in programs.items()
    ]


def load(path: Path) -> dict[str, Any] | None:
    """Reads the measurements so far, or None if there are none.

    Raises:
      RunDirectoryError: If the file holds something else.
    """
    results = read_json(path, object)
    if results is None:
        return None
    try:
        numbers = [
            number
            for what in PASSES
            for _, of_shape in _by_shape(results, what)
            for score in SCORES
            for number in (
                *(of_shape[score][measure] for measure in CLAIMED), *of_shape[score]["range"],
            )
        ]  # fmt: skip
        is_whole = {*_facts(), "at"} <= results.keys()
    except (KeyError, TypeError, AttributeError):
        is_whole, numbers = False, []
    if not is_whole or not all(isinstance(number, int | float) for number in numbers):
        raise RunDirectoryError(
            f"{path}: expected what this program has measured, found something else; remove it to "
            "measure anew"
        )
    return results


def is_current(results: Mapping[str, Any]) -> bool:
    """Whether results were measured with the present code, library and machine."""
    facts = _facts()
    return is_of_this_code(results["commit"]) and all(
        results[name] == facts[name] for name in ("device", "hardware", "jax", "batch")
    )


def measured_shapes(results: Mapping[str, Any]) -> set[Shape]:
    """Lists the shapes that were measured."""
    return {shape for what in PASSES for shape, _ in _by_shape(results, what)}


def _facts() -> dict[str, Any]:
    return {
        "command": command_line(),
        "commit": commit(),
        "device": jax.devices()[0].device_kind,
        "hardware": hardware(),
        "jax": jax.__version__,
        "batch": BATCH,
    }


def timed(programs: Mapping[Any, Callable[[], Any]], rounds: int) -> dict[Any, list[float]]:
    """Times programs in turns, in another order each round, so that drift hits all alike.

    Each round waits for an idle machine, up to a limit over all rounds.
    """
    seconds: dict[Any, list[float]] = {key: [] for key in programs}
    order, keys, patience = np.random.default_rng(0), list(programs), QUIET.patience
    for _ in range(rounds):
        patience -= wait_until_quiet(QUIET.quiet_load, patience)
        for index in order.permutation(len(keys)):
            start = time.perf_counter()
            jax.block_until_ready(programs[keys[index]]())
            seconds[keys[index]].append(time.perf_counter() - start)
    return seconds


def compiled(score: str, shape: Shape, what: str) -> tuple[Callable[[], Any], float]:
    """Compiles one attention; returns a function that runs it, and its temporaries in MiB."""
    attend, arrays = attention(score, shape)
    if what == PASSES[1]:
        # Squared, or the gradient with respect to the values would not depend on them. `inner`
        # binds the function now: the name is about to mean the gradient.
        attend = jax.grad(lambda *a, inner=attend: jnp.sum(inner(*a) ** 2), (0, 1, 2, 3))
    program = jax.jit(attend).lower(*arrays).compile()
    jax.block_until_ready(program(*arrays))
    mebibytes = program.memory_analysis().temp_size_in_bytes / 2**20
    return lambda: program(*arrays), mebibytes


def attention(score: str, shape: Shape) -> tuple[Callable[..., Any], tuple]:
    """Builds one attention: the function from its arrays to contexts, and these arrays."""
    heads = {"num_heads": shape.heads, "head_dim": shape.depth // shape.heads}
    config = typed(MECHANISMS.config("multi_head"), {"name": "multi_head", **heads})
    mechanism = build_mechanism(config, *[shape.depth] * 3)
    if score != DOT:
        mechanism = _with_score(mechanism, additive_scores if score == ADDITIVE else _written_out)
    rng = jax.random.key(0)
    params = draw(mechanism.parameters, rng, Initialization())
    query, keys, values = (
        jax.random.normal(jax.random.fold_in(rng, number), (BATCH, length, shape.depth))
        for number, length in enumerate((shape.queries, shape.slots, shape.slots))
    )
    mask = jnp.ones((BATCH, shape.slots), bool)

    def attend(params: Any, query: Any, keys: Any, values: Any) -> Any:
        memory = mechanism.make_memory(params, sequence(keys, mask, values=values))
        return mechanism.attend(params, query, memory, is_fused=True)[0].context

    return attend, (params, query, keys, values)


def _with_score(mechanism: MultiHead, scores: Callable[..., Any]) -> MultiHead:
    """Gives the heads additive scores of their projected queries and keys.

    The mechanism `bahdanau` would project these once more, which dot products do not.
    """
    parts = mechanism.parts
    depth = parts.parameters["query_projection"].shape[-1]

    def score(params: Any, query: Any, memory: Any, state: Any, positions: Any) -> Any:
        return scores(query, memory.keys, params["vector"])

    spec = dataclasses.replace(parts.spec, score=score)
    parameters = {**parts.parameters, "vector": Parameter.of("attention_vector", attention=depth)}
    parts = parts._replace(spec=spec, parameters=parameters)
    return dataclasses.replace(mechanism, parts=parts)


def _written_out(query: Any, keys: Any, vector: Any) -> Any:
    # B H T 1 D + B H 1 S D: the hidden layer of all pairs at once, which autodiff then keeps.
    return jnp.tanh(query[..., :, None, :] + keys[..., None, :, :]) @ vector


def ratios(
    results: Mapping[str, Any], what: str, measure: str, score: str = ADDITIVE
) -> dict[Shape, float]:
    """Computes for every shape the ratio of a score's cost to that of dot products."""
    return {
        shape: of_shape[score][measure] / of_shape[DOT][measure]
        for shape, of_shape in _by_shape(results, what)
        if of_shape[DOT][measure] > 0
    }


def page(results: Mapping[str, Any], shapes: Sequence[Shape]) -> str:
    """Returns the results as Markdown; `shapes` are all that are to be measured."""
    forward, with_gradients = (_table(results, what) for what in PASSES)
    text = templates.fill(
        NAME, missing=_missing(results, shapes), batch=results["batch"],
        command=results["command"], commit=short_commit(results["commit"]), at=results["at"],
        jax=results["jax"], machine=named(results["hardware"], results["device"]),
        **_spread(results), times_slower=f"{CLAIMED['milliseconds']:g}",
        times_larger=f"{CLAIMED['temporaries_mib']:g}", verdicts="\n".join(verdicts(results)),
        forward=forward, with_gradients=with_gradients, plot=f"{NAME}/cost.png",
    )  # fmt: skip
    return text + "\n"


def _missing(results: Mapping[str, Any], shapes: Sequence[Shape]) -> str:
    """Says which shapes are not measured yet; nothing if all are."""
    missing = [shape for shape in shapes if shape not in measured_shapes(results)]
    if not missing:
        return ""
    sizes = ", ".join(str(dataclasses.astuple(shape)) for shape in missing)
    return (
        f"**Only {len(shapes) - len(missing)} of {len(shapes)} shapes are measured.** Missing "
        f"(queries, slots, depth, heads): {sizes}. `python -m experiments.{NAME}` measures them, "
        "or all shapes where code or machine have changed since."
    )


def _spread(results: Mapping[str, Any]) -> dict[str, str]:
    """Returns how far the runs of a program lay apart, in percent of their median."""
    spreads = [
        100 * (one["range"][1] - one["range"][0]) / one["milliseconds"]
        for one in results["records"]
    ]
    return {"middle": f"{statistics.median(spreads):.0f}", "worst": f"{max(spreads):.0f}"}


def verdicts(results: Mapping[str, Any]) -> list[str]:
    """Judges the claim for each measure, pass and score: the range of ratios, and whether it held.

    Returns:
      Markdown, a list item for each.
    """
    lines = []
    for measure, name in {"milliseconds": "time", "temporaries_mib": "temporary memory"}.items():
        for what in PASSES:
            for score in (ADDITIVE, PLAIN):
                found = [*ratios(results, what, measure, score).values()]
                if found:
                    span = f"{min(found):.2f} to {max(found):.2f} times that of dot products"
                    claim = _claim(found, CLAIMED[measure])
                    lines.append(f"- {name}, {what}, {score}: {span}. {claim}")
    return lines


def _claim(found: Sequence[float], least: float) -> str:
    """Says at how many shapes additive attention takes at least so many times as much."""
    number = sum(ratio >= least for ratio in found)
    word = "Held" if number == len(found) else "Held in part" if number else "Not held"
    return f"{word}: at least {least:g} times at {number} of {len(found)} shapes."


def _table(results: Mapping[str, Any], what: str) -> str:
    measures = {"milliseconds": ("ms", 2), "temporaries_mib": ("MiB", 1)}
    rows = []
    for shape, of_shape in _by_shape(results, what):
        row = [f"{size}" for size in dataclasses.astuple(shape)]
        for measure, (_, digits) in measures.items():
            least = of_shape[DOT][measure]
            for score in SCORES:
                value = of_shape[score][measure]
                times = f" ({value / least:.2f})" if least > 0 and score != DOT else ""
                row.append(f"{value:.{digits}f}{times}")
        rows.append(row)
    headings = [field.name for field in dataclasses.fields(Shape)]
    headings += [f"{score}, {unit}" for unit, _ in measures.values() for score in SCORES]
    return table(headings, rows)


def _by_shape(
    results: Mapping[str, Any], what: str
) -> Iterable[tuple[Shape, dict[str, Mapping[str, Any]]]]:
    found: dict[Shape, dict[str, Mapping[str, Any]]] = {}
    names = [field.name for field in dataclasses.fields(Shape)]
    for one in results["records"]:
        if one["pass"] == what:
            shape = Shape(**{name: one[name] for name in names})
            found.setdefault(shape, {})[one["score"]] = one
    return found.items()


def plot(results: Mapping[str, Any]) -> Any:
    """Plots time and memory against length, with as many queries as slots, at the first depth."""
    figure = new_figure(9.0, 4.4)
    figure.set_layout_engine("constrained", h_pad=0.06, w_pad=0.1)
    first = results["records"][0]
    units = {"milliseconds": "milliseconds", "temporaries_mib": "MiB of temporaries"}
    row = figure.subplots(1, len(units))
    for axes, (measure, label) in zip(row, units.items(), strict=True):
        for number, score in enumerate(SCORES):
            for what, style in zip(PASSES, (":", "-"), strict=True):
                points = sorted(
                    (shape.slots, of_shape[score][measure])
                    for shape, of_shape in _by_shape(results, what)
                    if shape.queries == shape.slots
                    and (shape.depth, shape.heads) == (first["depth"], first["heads"])
                )
                axes.plot(*zip(*points, strict=True), style, color=COLOURS[number], marker="o",
                          markersize=3, label=f"{score}, {what}")  # fmt: skip
        tidy(axes)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.set_xlabel("queries, and slots", **text_style(9))
        axes.set_ylabel(label, **text_style(9))
    handles, labels = row[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False,
                  fontsize=8, handlelength=3)  # fmt: skip
    title = f"Time and memory against length, one head of {first['depth']}"
    figure.suptitle(title, x=0.02, ha="left", **text_style(11, fontweight="bold"))
    return figure


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
