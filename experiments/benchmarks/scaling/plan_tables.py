"""The tables of a plan: memory of each device, and what devices exchange in a step."""

from collections.abc import Iterator, Sequence

from attention_jax.sweeps.tables import NOTHING, table
from attention_jax.training.footprint import Footprint
from attention_jax.training.footprint_report import mesh_name
from experiments.kit import templates

_MIB = 2**20


def page(found: Sequence[Footprint], command: str) -> str:
    """Returns the tables as a page that says how they were made."""
    return templates.fill("scaling_plan", command=command, tables=tables(found)) + "\n"


def tables(found: Sequence[Footprint]) -> str:
    """Returns the tables of memory and of communication."""
    memory = ["mesh", "batch", "parameters", "optimiser, average", "gradients", "activations"]
    sent = ["mesh", "exchanged", "count", "MiB", "MiB sent", "by formula"]
    return "\n\n".join(
        [
            f"{found[0].parameters:,} parameters; MiB on each device:",
            table([*memory, "in all"], [_memory_row(each) for each in found]),
            "Exchanged in a step:",
            table(sent, [row for each in found for row in _exchange_rows(each)]),
        ]
    )


def _memory_row(each: Footprint) -> list[str]:
    state = each.state
    sizes = (
        state["params"],
        state["optimizer"] + state["average"],
        each.gradients,
        each.activations,
        each.total,
    )
    return [mesh_name(each), " x ".join(map(str, each.shape)), *map(_mebibytes, sizes)]


def _exchange_rows(each: Footprint) -> Iterator[list[str]]:
    """Yields what the compiled program exchanges, and by formula, matched by kind and axes."""
    expected = {(other.kind, other.axes): other.link_bytes for other in each.expected}
    for exchange in each.exchanges:
        formula = expected.pop((exchange.kind, exchange.axes), None)
        yield [
            mesh_name(each),
            f"{exchange.kind} over {', '.join(exchange.axes)}",
            str(exchange.count),
            _mebibytes(exchange.result_bytes),
            _mebibytes(exchange.link_bytes),
            NOTHING if formula is None else _mebibytes(formula),
        ]
    for (kind, axes), link_bytes in expected.items():
        name = f"{kind} over {', '.join(axes)}"
        yield [mesh_name(each), name, NOTHING, NOTHING, NOTHING, _mebibytes(link_bytes)]


def _mebibytes(size: float) -> str:
    return f"{size / _MIB:,.1f}" if size >= _MIB / 20 else f"{size / _MIB:.4f}"
