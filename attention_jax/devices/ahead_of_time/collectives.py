"""Collectives of a compiled program, read from its text (XLA's HLO).

A collective inside a loop counts as often as the loop runs, if the compiler knows how often.
"""

import collections
import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping

import numpy as np
from jaxtyping import Int

from attention_jax.devices.ahead_of_time.traffic import KINDS, bytes_on_link

# Types whose name does not tell their size, as f32 or s8 do.
_BITS = {"pred": 8, "c64": 64, "c128": 128, "token": 0, "opaque": 0}
# `ENTRY %main.5 (p: f32[2]) -> f32[2] {`, and within it `  ROOT %x = f32[2]{0} add(%a, %b), ...`.
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.*)$")
_CALLED = re.compile(
    r"\b(?:calls|to_apply|body|condition|\w+_computations?)=(\{[^}]*\}|%?[\w.\-]+)"
)
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_MESH = re.compile(r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\((.*?\)?)\))? \{([^}]*)\}")
_ARRAY = re.compile(r"\b([a-z]+\d*\w*)\[([\d,<=]*)\]")


@dataclasses.dataclass(frozen=True)
class Collective:
    """One collective instruction.

    Attributes:
      kind: Such as `all-reduce`.
      axes: The mesh axes along which the participating devices differ.
      group: Number of devices that take part together.
      result_bytes: Size of the result on one device.
    """

    kind: str
    axes: tuple[str, ...]
    group: int
    result_bytes: int

    @property
    def link_bytes(self) -> float:
        """Bytes that a device sends over its link."""
        return bytes_on_link(self.kind, self.result_bytes, self.group)


@dataclasses.dataclass(frozen=True)
class Communication:
    """All collectives of one kind along the same axes, in one run of a program.

    Attributes:
      kind: Such as `all-reduce`.
      axes: Of the mesh.
      group: Number of devices that take part together.
      count: Number of executions.
      result_bytes: Size of all results on one device.
      link_bytes: Bytes that a device sends.
    """

    kind: str
    axes: tuple[str, ...]
    group: int
    count: int
    result_bytes: int
    link_bytes: float


def find_exchanges(text: str, axes: Mapping[str, int]) -> list[Communication]:
    """Lists the collectives of a compiled program in one run, those that send most first.

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
        Communication(
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
    """Counts the collectives of the whole program, those in loops as often as the loops run."""
    entry, computations = _parse(text)

    # Computations are called from several places; each is counted once and then multiplied.
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
    """Splits a program into its computations; also returns the name of the entry computation."""
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
    for position, character in enumerate(text, start=1):
        depth += (character == "(") - (character == ")")
        if not depth:
            return text[:position], text[position:]
    return text, ""


def _called(instruction: _Instruction) -> Iterator[str]:
    for match in _CALLED.finditer(instruction.rest):
        yield from (name.strip().lstrip("%") for name in match[1].strip("{}").split(","))


def _collective(
    instruction: _Instruction, others: Mapping[str, _Instruction], axes: Mapping[str, int]
) -> Collective | None:
    """Parses an instruction that is a collective; None for any other.

    An asynchronous collective is a pair of instructions, `-start` and `-done`. The second has the
    type of the result; the first, its operand, says which devices take part.
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
    places = np.array(np.unravel_index(members, tuple(axes.values())))  # axes members
    differ = (places != places[:, :1]).any(axis=1)
    return tuple(name for name, some in zip(axes, differ, strict=True) if some), len(members)


def _first_group(attributes: str, devices: Int[np.ndarray, " N"]) -> Int[np.ndarray, " G"]:
    """Reads which devices take part, in any of the notations of XLA."""
    if pairs := re.search(r"source_target_pairs=\{([\d,{}]*)\}", attributes):
        moves = [_numbers(pair) for pair in re.findall(r"\{(\d+,\d+)\}", pairs[1])]
        return np.array(next((move for move in moves if move[0] != move[1]), [0]))
    if match := _MESH.search(attributes):
        return _group_of_mesh(*match.groups(), devices)
    if match := re.search(r"replica_groups=\[\d+,(\d+)\]<=(\S+?),? ", f"{attributes} "):
        return _iota(match[2])[: int(match[1])]
    if match := re.search(r"replica_groups=\{\{([\d,]+)\}", attributes):
        return np.array(_numbers(match[1]))
    return devices


def _group_of_mesh(
    sizes: str, order: str | None, chosen: str, devices: Int[np.ndarray, " N"]
) -> Int[np.ndarray, " G"]:
    """Reads the first group of `mesh['a'=2,'b'=4], device_ids=([2,4]T(1,0)) {'a','b':(1)2}`.

    The mesh is the compiler's own, over devices in the order of `device_ids`. `'b':(1)2` is a part
    of the axis b: in brackets the product of the parts before it, then its size.
    """
    if order:
        devices = _iota(order) if order.startswith("[") else np.array(_numbers(order))
    parts = {
        name: (int(before or 1), int(size or 0))
        for name, before, size in re.findall(r"'([\w.]+)'(?::\((\d+)\)(\d+))?", chosen)
    }
    shape, index = [], []
    for name, size in re.findall(r"'([\w.]+)'=(\d+)", sizes):
        before, part = parts.get(name, (1, 1))
        part = part or int(size)
        # Each axis becomes three: what is before the part, the part, and what is after it. The
        # group runs over the part, and the first group is at place 0 of all the rest.
        shape += [before, part, int(size) // (before * part)]
        index += [0, slice(None), 0]
    return devices.reshape(shape)[tuple(index)].ravel()


def _iota(text: str) -> Int[np.ndarray, " N"]:
    """Reads `[2,4]T(1,0)`: the numbers 0, 1, ... in that shape, transposed, then flattened."""
    shape, _, order = text.partition("T")
    grid = np.arange(int(np.prod(_numbers(shape.strip("[]"))))).reshape(_numbers(shape.strip("[]")))
    return grid.transpose(_numbers(order.strip("()")) if order else None).ravel()


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _bytes(kind: str) -> int:
    """Returns the bytes of a type, or of a tuple of types, without padding."""
    # Comments such as /*index=5*/ stand in long tuples; `<=` marks a bounded dynamic dimension.
    kind = re.sub(r"/\*.*?\*/", "", kind)
    return sum(
        -(-_bits(name) * int(np.prod([int(d.lstrip("<=")) for d in dims.split(",") if d])) // 8)
        for name, dims in _ARRAY.findall(kind)
    )


def _bits(name: str) -> int:
    if name in _BITS:
        return _BITS[name]
    return int(re.search(r"\d+", name)[0])  # f32, bf16, s8, f8e4m3fn
