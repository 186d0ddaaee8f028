"""Memory footprint on the screen."""

from collections.abc import Iterator, Sequence

import jax.numpy as jnp

from attention_jax.devices.ahead_of_time.targets import Target
from attention_jax.training.footprint import Footprint

_PARTS = {
    "params": "parameters",
    "optimizer": "optimiser state",
    "average": "average of parameters",
    "rest": "counters",
}


def lines(found: Footprint, target: Target, compiler: str) -> Iterator[str]:
    """Yields the report: topology and mesh, memory of a device by part, collectives of a step."""
    rows, source, target_length = found.shape
    yield f"{target.name}: {target.devices} devices, mesh {mesh_name(found)}, by {compiler}"
    if found.lowered_for:
        yield f"the step was lowered for {found.lowered_for}, too, but not compiled for it"
    yield (
        f"{found.parameters:,} parameters, batch {rows} x {source} x {target_length} "
        "(examples x source x target tokens)"
    )
    yield ""
    yield f"{'a device holds':48}{'MiB':>10}"
    for label, size in memory_rows(found):
        yield f"  {label:46}{mebibytes(size):>10}"
    yield _decoding_line(found, target)
    yield ""
    yield from _exchange_lines(found)


def mesh_name(found: Footprint) -> str:
    """Returns the mesh as it is written on the command line: `data=8,tensor=2`."""
    sizes = [f"{name}={size}" for name, size in found.mesh.items() if size > 1]
    return ",".join(sizes) or "of 1 device"


def memory_rows(found: Footprint) -> Sequence[tuple[str, int]]:
    """Lists what a device holds in memory, as (label, bytes)."""
    return [
        *((label, found.state[name]) for name, label in _PARTS.items() if found.state[name] > 1024),
        ("batch and metrics", found.batch),
        # A compiler that reuses buffers may hold less at a time than all gradients together.
        ("gradients", min(found.gradients, found.temporaries)),
        ("activations and other temporaries", found.activations),
        *([("program", found.program)] if found.program else []),
        ("in all", found.total),
    ]


def _bytes_of_a_parameter() -> int:
    """Returns 4: parameters are float32 even under mixed precision; 8 under `jax_enable_x64`."""
    return jnp.zeros((), float).dtype.itemsize


def mebibytes(size: float) -> str:
    """Formats bytes as mebibytes with one decimal."""
    return f"{size / 2**20:,.1f}"


def _decoding_line(found: Footprint, target: Target) -> str:
    """Says what decoding needs at least: every device holds all parameters, unsharded."""
    size = mebibytes(_bytes_of_a_parameter() * found.parameters)
    held = f"decoding holds all parameters: {size} MiB"
    if target.memory_gib is None:
        return held
    return f"{held} of a device's {mebibytes(target.memory_gib * 2**30)}"


def fits_line(found: Footprint, target: Target) -> str:
    """Says of a step that fits how much of a device's memory it needs."""
    if target.memory_gib is None:
        return f"needs {found.total / 2**20:,.0f} MiB of each device"
    return f"fits: {found.total / 2**20:,.0f} of {1024 * target.memory_gib:,.0f} MiB"


def _exchange_lines(found: Footprint) -> Iterator[str]:
    if not found.exchanges:
        yield "devices exchange nothing"
        return
    yield f"{'devices exchange in a step':48}{'count':>10}{'MiB':>10}{'MiB sent':>10}"
    for each in found.exchanges:
        label = f"{each.kind} over {','.join(each.axes)} ({each.group} devices)"
        sizes = f"{mebibytes(each.result_bytes):>10}{mebibytes(each.link_bytes):>10}"
        yield f"  {label:46}{each.count:>10}{sizes}"
    for each in found.expected:
        label = f"{each.kind} over {','.join(each.axes)}, by formula"
        yield f"  {label:46}{'':>20}{mebibytes(each.link_bytes):>10}"
