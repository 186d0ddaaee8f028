"""The archive of an experiment: the records of all its runs in one file, by cell and seed.

It is a zip file of

    runs.json    for each run its cell, seed, overrides, config, facts and results, and logged
                 curves: [steps, values] by metric and split
    index.json   which arrays and which lines of text there are, of which runs
    arrays       counts of sentences, of all runs together
    lines/FILE   the first line of every run's FILE, then the second of every run, ...

Data of the same sentence in all runs stand side by side, because they are alike and compress well.
The same records give the same bytes.
"""

import contextlib
import dataclasses
import functools
import io
import json
import lzma
import math
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.errors import RunDirectoryError
from attention_jax.files import replacing
from attention_jax.json_files import Maybe, Shape, parse_json
from attention_jax.locks import locked

FILE = "records.zip"
_RUNS, _INDEX, _ARRAYS, _LINES = "runs.json", "index.json", "arrays", "lines/"
_TIME = (1980, 1, 1, 0, 0, 0)  # of every member, the earliest that a zip file knows
_METRICS = {str: {str: (float, None)}}
_SHAPES: Mapping[str, Shape] = {
    _RUNS: [
        {"cell": str, "seed": int, "overrides": {}, "config": {}, "facts": {}, "results": _METRICS,
         "curves": {str: {str: [[float]]}}}
    ],
    _INDEX: {
        "arrays": [{"file": str, "name": str, "type": str, "shape": [int], "is_whole": bool,
                    "width": int, "distinct": Maybe(int), "runs": [int]}],
        "lines": {str: [[int]]},
    },
}  # fmt: skip

Key = tuple[str, int]
Arrays = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class Record:
    """The record of a run: a measurement of the past, which no later code or default changes.

    Attributes:
      cell: Its cell in the grid.
      seed: Its seed.
      overrides: The overrides that it was made with, path -> value.
      config: The whole config of that time, for people: fields may have been renamed since.
      facts: How it was made, as in `run.json`.
      results: Its metrics by split, as in `results.json`.
      curves: Logged metrics, {metric: {split: [steps, values]}}.
      arrays: {file: {name: array}}.
      lines: {file: lines of text}.
    """

    cell: str
    seed: int
    overrides: Mapping[str, Any]
    config: Mapping[str, Any]
    facts: Mapping[str, Any]
    results: Mapping[str, Mapping[str, float]]
    curves: Mapping[str, Mapping[str, Sequence]] = dataclasses.field(default_factory=dict)
    arrays: Mapping[str, Arrays] = dataclasses.field(default_factory=dict)
    lines: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)

    @property
    def key(self) -> Key:
        """Cell and seed."""
        return self.cell, self.seed


class Archive(Mapping):
    """The records of an archive by their keys; arrays and lines are unpacked when first asked for.

    A mapping whose annotation says nothing of its values, for checks of it would unpack one.
    """

    def __init__(self, content: bytes, where: str):
        """Reads the index and the runs, but no arrays and lines.

        Args:
          content: The bytes of the file, as from `packed`.
          where: The file, for messages.

        Raises:
          RunDirectoryError: If the content is damaged or something else.
        """
        self._content, self._where = content, where
        runs, self._index = (self._json(name) for name in (_RUNS, _INDEX))
        self._keys = [(run["cell"], run["seed"]) for run in runs]
        self._runs = dict(zip(self._keys, runs, strict=True))

    def __getitem__(self, key: Key) -> Record:
        """Returns the record of a run, with its arrays and lines."""
        return Record(**self._runs[key], arrays=self.arrays(key), lines=self.lines(key))

    def __iter__(self) -> Iterator[Key]:
        """Yields the keys of all runs."""
        return iter(self._keys)

    def __len__(self) -> int:
        """Returns the number of runs."""
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        """Whether there is a record of a run, told without unpacking any."""
        return key in self._runs

    def outline(self, key: Key) -> Record:
        """Returns the record of a run without arrays and lines, whose unpacking takes long."""
        return Record(**self._runs[key])

    def outlines(self) -> list[Record]:
        """Returns all records without their arrays and lines."""
        return [self.outline(key) for key in self]

    def arrays(self, key: Key) -> Mapping[str, Arrays]:
        """Returns the arrays of a run by file and name."""
        return self._arrays.get(key, {})

    def lines(self, key: Key) -> Mapping[str, Sequence[str]]:
        """Returns the lines of a run by file."""
        return self._lines.get(key, {})

    @functools.cached_property
    def _arrays(self) -> dict[Key, dict[str, dict[str, np.ndarray]]]:
        data, found, start = self._member(_ARRAYS), {}, 0
        for block in self._index["arrays"]:
            shape = (len(block["runs"]), *block["shape"])  # R N F, for R runs of N sentences
            with _damage(self._where):
                table = block.get("distinct", 0) * np.dtype(block["type"]).itemsize
                end = start + table + block["width"] * math.prod(shape)
                stack = _unfolded(data[start:end], shape, block)
                for run, array in zip(block["runs"], stack, strict=True):
                    its = found.setdefault(self._keys[run], {}).setdefault(block["file"], {})
                    its[block["name"]] = np.asarray(array)  # of a single number, too
            start = end
        return found

    @functools.cached_property
    def _lines(self) -> dict[Key, dict[str, list[str]]]:
        found: dict[Key, dict[str, list[str]]] = {}
        for file, counts in self._index["lines"].items():
            with _damage(self._where):
                # Reversed, so that `pop` deals lines out in their order: one to each run in turn
                # that has not got all of its own yet.
                lines = self._member(_LINES + file).decode("utf-8").split("\n")[::-1]
                its = [[] for _ in counts]
                for number in range(max(count for _, count in counts)):
                    for of_run, (_, count) in zip(its, counts, strict=True):
                        if number < count:
                            of_run.append(lines.pop())
                for of_run, (run, _) in zip(its, counts, strict=True):
                    found.setdefault(self._keys[run], {})[file] = of_run
        return found

    def _json(self, name: str) -> Any:
        content = self._member(name)
        return parse_json(content, _SHAPES[name], f"{self._where}, {name}", RunDirectoryError)

    def _member(self, name: str) -> bytes:
        with _damage(self._where), zipfile.ZipFile(io.BytesIO(self._content)) as file:
            return file.read(name)


def load(path: Path) -> Archive:
    """Reads an archive, an empty one if there is no file; an unchanged file is read only once.

    Raises:
      RunDirectoryError: If it cannot be read, or is something else.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return _EMPTY
    except OSError as error:
        raise RunDirectoryError(f"{path} cannot be read: {error.strerror}") from None
    return _load(path.absolute(), (status.st_ino, status.st_mtime_ns, status.st_size))


@functools.lru_cache(maxsize=8)
def _load(path: Path, version: tuple[int, int, int]) -> Archive:
    del version  # part of the cache's key, by which a replaced file is read again
    try:
        return Archive(path.read_bytes(), str(path))
    except OSError as error:
        raise RunDirectoryError(f"{path} cannot be read: {error.strerror}") from None


def add(path: Path, records: Sequence[Record]) -> None:
    """Adds records to an archive, replacing those of the same cell and seed.

    Raises:
      OSError: If it cannot be written.
      RunDirectoryError: As `load`.
    """
    update(path, lambda known: {**known, **{record.key: record for record in records}})


def update(path: Path, change: Callable[[dict[Key, Record]], Mapping[Key, Record]]) -> None:
    """Changes an archive atomically, under a lock between processes.

    Args:
      path: The archive; it need not exist.
      change: Turns the present records into the new ones.

    Raises:
      OSError: If it cannot be written.
      RunDirectoryError: As `load`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.with_name(f".{path.name}.lock"), remove=True):
        # Read under the lock, or a record that another process has just added would be lost.
        content = packed(change(dict(load(path))).values())
        with replacing(path) as temporary:
            temporary.write_bytes(content)


def packed(records: Iterable[Record]) -> bytes:
    """Returns the bytes of an archive of these records."""
    records = sorted(records, key=lambda record: record.key)
    plain = [
        {field.name: getattr(record, field.name) for field in dataclasses.fields(record)[:-2]}
        for record in records
    ]
    blocks, arrays = _packed_arrays([record.arrays for record in records])
    lines, texts = _packed_lines([record.lines for record in records])
    members = {
        _RUNS: _json_bytes(plain),
        _INDEX: _json_bytes({"arrays": blocks, "lines": lines}),
        _ARRAYS: arrays,
        **texts,
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            # bzip2 packs lines better: sentences that are alike, but never equal for long.
            method = zipfile.ZIP_BZIP2 if name.startswith(_LINES) else zipfile.ZIP_LZMA
            archive.writestr(zipfile.ZipInfo(name, _TIME), content, method)
    return file.getvalue()


def _packed_arrays(
    of_runs: Sequence[Mapping[str, Arrays]],
) -> tuple[list[dict[str, Any]], bytes]:
    """Packs arrays: returns their entries in `index.json` and their bytes.

    Arrays of the same file, name, type and shape form one block over all runs.
    """
    alike: dict[tuple, dict[int, np.ndarray]] = {}
    for run, files in enumerate(of_runs):
        for file, arrays in files.items():
            for name, array in arrays.items():
                # Little-endian by decree, so that every machine reads the same numbers.
                key = (file, name, array.dtype.newbyteorder("<").str, array.shape)
                alike.setdefault(key, {})[run] = array
    blocks, parts = [], []
    for (file, name, kind, shape), members in sorted(alike.items(), key=lambda item: item[0]):
        stack = np.stack(list(members.values())).astype(kind)
        folded, facts = _folded(stack)
        blocks.append({"file": file, "name": name, "type": kind, "shape": shape,
                       **facts, "runs": list(members)})  # fmt: skip
        parts.append(folded)
    return blocks, b"".join(parts)


def _packed_lines(
    of_runs: Sequence[Mapping[str, Sequence[str]]],
) -> tuple[dict[str, list[list[int]]], dict[str, bytes]]:
    """Packs lines: returns their index, [run, count] by file, and interleaved texts by member."""
    index, texts = {}, {}
    for file in sorted({file for files in of_runs for file in files}):
        its = {run: files[file] for run, files in enumerate(of_runs) if file in files}
        index[file] = [[run, len(lines)] for run, lines in its.items()]
        woven = (
            lines[number]
            for number in range(max(map(len, its.values())))
            for lines in its.values()
            if number < len(lines)
        )
        texts[_LINES + file] = "\n".join(woven).encode("utf-8")
    return index, texts


def _folded(stack: np.ndarray) -> tuple[bytes, dict[str, Any]]:
    """Folds arrays of several runs, `R N F`, into bytes that compress well.

    The order is column, sentence, run, so that equal or similar counts stand side by side. Whole
    numbers are stored as differences from the one before, in the smallest type that holds them:
    columns that differ by a constant, such as the numbers of n-grams of two orders, become equal,
    and a column that all runs share becomes zeros. Bytes are stored as planes, the lowest first.
    Others of few values, such as accuracies, are stored as a table of these, and the places in it
    as whole numbers are.

    Returns:
      The bytes; and facts of them: whether the numbers themselves are such differences, the width
      of a number or place in bytes, and how many `distinct` values stand in a table before.
    """
    flat = np.ascontiguousarray(stack.T).reshape(-1)  # R N F -> F*N*R
    is_whole = bool(np.all((flat >= 0) & (flat < 2**32)) and np.all(flat == np.floor(flat)))
    table = flat[:0]
    if not is_whole:
        # By their bits: a table has both zeros, and every NaN.
        bits, places = np.unique(flat.view(f"<u{flat.itemsize}"), return_inverse=True)
        if 8 * bits.size <= flat.size:
            table, flat = bits.view(flat.dtype), places
    if is_whole or table.size:
        kind = np.min_scalar_type(int(flat.max(initial=0))).newbyteorder("<")
        flat = np.diff(flat.astype(kind), prepend=kind.type(0)).astype(kind)  # modulo its range
    width = flat.dtype.itemsize
    # numbers*W -> numbers W -> W numbers: a plane of all lowest bytes, then of all next ones, ...
    planes = flat.view(np.uint8).reshape(-1, width).T.tobytes()
    facts = {"is_whole": is_whole, "width": width, "distinct": table.size}
    return table.tobytes() + planes, facts


def _unfolded(data: bytes, shape: Sequence[int], block: Mapping[str, Any]) -> np.ndarray:
    """Unfolds what `_folded` has packed; errors of many kinds if it is damaged."""
    distinct, width = block.get("distinct", 0), block["width"]
    table = np.frombuffer(data, block["type"], distinct)
    planes = np.frombuffer(data[table.nbytes :], np.uint8).reshape(width, -1)
    is_folded = block["is_whole"] or distinct
    kind = np.dtype(f"<u{width}" if is_folded else block["type"])
    flat = np.ascontiguousarray(planes.T).reshape(-1).view(kind)
    if is_folded:
        # Modulo the type's range, as the differences were taken.
        flat = np.cumsum(flat, dtype=kind)
    values = table[flat] if distinct else flat
    return np.ascontiguousarray(values.reshape(shape[::-1]).T).astype(block["type"])


def _json_bytes(value: Any) -> bytes:
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "backslashreplace")  # half a surrogate pair: still valid JSON


@contextlib.contextmanager
def _damage(where: str) -> Iterator[None]:
    """Turns any error that damaged bytes cause in the block into RunDirectoryError."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, LookupError, ValueError,
            TypeError, OSError, NotImplementedError, RuntimeError) as error:  # fmt: skip
        raise RunDirectoryError(
            f"{where}: expected an archive of records, found something else ({error})"
        ) from None


_EMPTY = Archive(packed([]), "no file")
