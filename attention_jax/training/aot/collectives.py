"""The communication of a compiled program, read from its text (XLA's HLO).

A collective inside a loop counts as often as the loop runs, where the compiler knows that.
"""

import collections
import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from jaxtyping import Int

from attention_jax.training.aot.traffic import KINDS, bytes_on_link

_BITS = {"pred": 8, "c64": 64, "c128": 128, "token": 0, "opaque": 0}
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.*)$")
_CALLED = re.compile(r"\b(?:calls|to_apply|body|condition|\w+_computations?)=(\{[^}]*\}|%?[\w.\-]+)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_ARRAY = re.compile(r"\b([a-z]+\d*\w*)\[([\d,<=]*)\]")


@dataclasses.dataclass(frozen=True)
class Collective:
    """One way in which devices exchange data.

    Attributes:
      kind: Such as `all-reduce`.
      axes: The axes of the mesh along which devices differ that take part.
      group: How many take part.
      result_bytes: Size of the result on one device.
    """

    kind: str
    axes: tuple[str, ...]
    group: int
    result_bytes: int

    @property
    def link_bytes(self) -> float:
        """Bytes that a device sends for it."""
        return bytes_on_link(self.kind, self.result_bytes, self.group)


@dataclasses.dataclass(frozen=True)
class Exchange:
    """All collectives of one kind along the same axes, in one run of a program.

    Attributes:
      kind: Such as `all-reduce`.
      axes: Of the mesh.
      group: How many devices take part.
      count: How often it is run.
      result_bytes: Size of all results on one device.
      link_bytes: Bytes that a device sends.
    """

    kind: str
    axes: tuple[str, ...]
    group: int
    count: int
    result_bytes: int
    link_bytes: float


def find_exchanges(text: str, axes: Mapping[str, int]) -> list[Exchange]:
    """Lists what a compiled program exchanges in one run, the largest first.

    Args:
      text: The optimised program, from `jax.stages.Compiled.as_text`.
      axes: Names and sizes of the mesh's axes, in its order.
    """
    groups = collections.defaultdict(list)
    for collective, count in _count(text, axes).items():
        if collective.group > 1:
            key = (collective.kind, collective.axes, collective.group)
            groups[key].append((collective, count))
    exchanges = [
        Exchange(
            *key,
            count=sum(count for _, count in found),
            result_bytes=sum(count * each.result_bytes for each, count in found),
            link_bytes=sum(count * each.link_bytes for each, count in found),
        )
        for key, found in groups.items()
    ]
    return sorted(exchanges, key=lambda each: (-each.link_bytes, each.kind, each.axes))


@dataclasses.dataclass(frozen=True)
class _Instruction:
    name: str
    type: str
    operation: str
    rest: str  # operands and attributes


def _count(text: str, axes: Mapping[str, int]) -> collections.Counter:
    """Counts collectives over the whole program, loops unrolled."""
    entry, computations = _parse(text)

    @functools.cache
    def total(name: str) -> collections.Counter:
        found = collections.Counter()
        instructions = {each.name: each for each in computations.get(name, ())}
        for each in instructions.values():
            if (collective := _collective(each, instructions, axes)) is not None:
                found[collective] += 1
            if not each.operation.endswith(("-done", "-update")):  # its start named them already
                trips = _TRIPS.search(each.rest) if each.operation == "while" else None
                for called in _called(each):
                    for inner, count in total(called).items():
                        found[inner] += count * (int(trips[1]) if trips else 1)
        return found

    return total(entry)


def _parse(text: str) -> tuple[str, dict[str, list[_Instruction]]]:
    """Splits a program into its computations; also returns the name of the first to run."""
    entry, computations, current = "", {}, []
    for line in text.splitlines():
        if match := _COMPUTATION.match(line):
            current = computations.setdefault(match[2], [])
            entry = match[2] if match[1] else entry
        elif match := _INSTRUCTION.match(line):
            kind, rest = _split_type(match[2])
            operation, _, rest = rest.partition("(")
            current.append(_Instruction(match[1], kind, operation.strip(), rest))
    return entry, computations


def _split_type(text: str) -> tuple[str, str]:
    """Splits `TYPE OPERATION(...)`; a tuple's type is in parentheses and has spaces."""
    if not text.startswith("("):
        kind, _, rest = text.partition(" ")
        return kind, rest
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth:
            break
    return text[: position + 1], text[position + 1 :]


def _called(instruction: _Instruction) -> Iterator[str]:
    for match in _CALLED.finditer(instruction.rest):
        yield from (name.strip().lstrip("%") for name in match[1].strip("{}").split(","))


def _collective(
    instruction: _Instruction, others: Mapping[str, _Instruction], axes: Mapping[str, int]
) -> Collective | None:
    """Returns the collective that an instruction is, if it is one.

    One that runs beside other work is two instructions: the second has the result's type, the
    first, its operand, says who takes part.
    """
    kind = instruction.operation.removesuffix("-done")
    if kind not in KINDS:
        return None
    attributes = instruction.rest
    if kind != instruction.operation:
        operand = re.match(r"\s*(?:\S+ )*?%?([\w.\-]+)\)", attributes)
        attributes = others[operand[1]].rest if operand and operand[1] in others else ""
    names, group = _participants(attributes, axes)
    return Collective(kind, names, group, _bytes(instruction.type))


def _participants(attributes: str, axes: Mapping[str, int]) -> tuple[tuple[str, ...], int]:
    """Returns the axes along which the devices of the first group differ, and its size."""
    devices = np.arange(int(np.prod(list(axes.values()))))
    members = _first_group(attributes, devices)
    places = np.array(np.unravel_index(members, tuple(axes.values())))
    differ = (places != places[:, :1]).any(axis=1)
    return tuple(name for name, some in zip(axes, differ, strict=True) if some), len(members)


def _first_group(attributes: str, devices: Int[np.ndarray, " N"]) -> Sequence[int]:
    """Reads who takes part, in any of the forms in which XLA writes it."""
    if match := re.search(r"source_target_pairs=\{\{(\d+),(\d+)\}", attributes):
        return [int(match[1]), int(match[2])]
    if match := re.search(r"replica_groups=mesh\[([^\]]*)\] \{([^}]*)\}", attributes):
        sizes = dict(re.findall(r"'?([\w.]+)'?=(\d+)", match[1]))
        chosen = re.findall(r"[\w.]+", match[2])
        grid = devices.reshape([int(size) for size in sizes.values()])
        return grid[tuple(slice(None) if name in chosen else 0 for name in sizes)].ravel()
    iota = r"replica_groups=\[\d+,(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?"
    if match := re.search(iota, attributes):
        grid = np.arange(len(devices)).reshape(_numbers(match[2]))
        order = _numbers(match[3]) if match[3] else range(grid.ndim)
        return grid.transpose(order).ravel()[: int(match[1])]
    if match := re.search(r"replica_groups=\{\{([\d,]+)\}", attributes):
        return _numbers(match[1])
    return devices


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _bytes(kind: str) -> int:
    """Returns the size of a type, tuples included, without padding."""
    kind = re.sub(r"/\*.*?\*/", "", kind)
    return sum(
        -(-_bits(name) * int(np.prod([int(d.lstrip("<=")) for d in dims.split(",") if d])) // 8)
        for name, dims in _ARRAY.findall(kind)
    )


def _bits(name: str) -> int:
    if name in _BITS:
        return _BITS[name]
    return int(re.search(r"\d+", name)[0])  # f32, bf16, s8, f8e4m3fn
