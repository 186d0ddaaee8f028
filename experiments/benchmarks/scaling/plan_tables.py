"""The tables of a plan: memory of each device, and what devices exchange in a step."""

from collections.abc import Iterator, Sequence

from attention_jax.training.footprint import Footprint
from attention_jax.training.footprint_report import mesh_name
from experiments.kit.tables import NOTHING, table

NOTES = """\
Bytes are those of one device. Parameters, optimiser state and average: shapes and placements
(`jax.eval_shape`). Activations: temporaries of the training step compiled for the same number of
simulated CPU devices (`memory_analysis`) less the gradients, for the batch shape with the most
source times target positions; an accelerator's compiler may need more or less. Sent: bytes that a
device sends over its link in a step, 2 (n-1)/n b for an all-reduce of b bytes over n devices,
(n-1)/n b for an all-gather or reduce-scatter of b bytes in all. By formula: what the placement of
parameters alone asks for; the CPU's compiler leaves reductions inside loops that others move out of
them, so that the formula is the better guide for gradients of recurrent layers."""
_MIB = 2**20


def page(found: Sequence[Footprint], command: str) -> str:
    """Returns the tables as a page that says how they were made."""
    return f"# Plan\n\n```\n{command}\n```\n\n{tables(found)}\n\n{NOTES}\n"


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
