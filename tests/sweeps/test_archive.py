"""Archives of records: what is packed is read again, whatever it is and whoever writes at once."""

import concurrent.futures
import dataclasses
import functools
import os
import zipfile

import numpy as np
import pytest

from attention_jax.errors import RunDirectoryError
from attention_jax.sweeps import archive
from attention_jax.sweeps.archive import Record


def make_record(cell="a", seed=0, **fields):
    fields = {"overrides": {"x.y": 3, "seed": seed}, "config": {"x": {"y": 3}},
              "facts": {"commit": "ä"}, "results": {"test": {"bleu": 1 / 3, "aer": None}},
              **fields}  # fmt: skip
    return Record(cell, seed, **fields)


def read_back(*records):
    found = archive.Archive(archive.packed(records), "some.zip")
    return [found[record.key] for record in records]


def test_facts_are_read_as_they_were_written():
    curves = {"nll": {"train": [[1, 2], [0.1, 1e-30]], "validation": [[2], [0.5]]}}
    records = [make_record("b", 1, curves=curves), make_record(), make_record("b", 0)]
    for record, found in zip(records, read_back(*records), strict=True):
        assert dataclasses.asdict(found) == dataclasses.asdict(record)
    assert list(archive.Archive(archive.packed(records), "")) == [("a", 0), ("b", 0), ("b", 1)]


ARRAYS = {
    "whole": np.array([[3.0, 300.0], [0.0, 70000.0]], np.float32),
    "bytes": np.array([255, 0, 1], np.uint8),
    "fractions": np.array([[0.1, -2.5], [np.nan, np.inf]]),
    "few_fractions": np.array([0.1, -0.0, np.nan, 0.0, -np.inf] * 9),
    "few_negative": np.array([-1, 5, -(2**62)] * 9),
    "negative": np.array([-1, 5], np.int64),
    "large": np.array([2**63, 1], np.uint64),
    "truths": np.array([True, False]),
    "big_endian": np.array([1, 2], ">i4"),
    "none": np.zeros((0, 3), np.float32),
    "one": np.array(7.0),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_read_with_every_bit_of_them(numpy_rng, name):
    array = ARRAYS[name]
    others = [numpy_rng.permutation(array.ravel()).reshape(array.shape) for _ in range(3)]
    records = [make_record(seed=seed, arrays={"f.npz": {name: its, "same": np.arange(5)}})
               for seed, its in enumerate([array, *others])]  # fmt: skip
    for record, found in zip(records, read_back(*records), strict=True):
        expected, its = record.arrays["f.npz"][name], found.arrays["f.npz"][name]
        assert its.dtype == expected.dtype.newbyteorder("<") and its.shape == expected.shape
        assert its.tobytes() == expected.astype(its.dtype).tobytes()


def test_arrays_that_only_some_runs_have_or_in_other_shapes_stay_with_their_runs():
    of_runs = [{"a": np.arange(3)}, {"b": np.arange(4)}, {"a": np.arange(9).reshape(3, 3)}, {}]
    records = [make_record(seed=n, arrays={"f.npz": its}) for n, its in enumerate(of_runs)]
    *found, last = read_back(*records)
    assert last.arrays == {}
    for record, its in zip(of_runs, found, strict=False):
        assert its.arrays["f.npz"].keys() == record.keys()
        for name, array in record.items():
            np.testing.assert_array_equal(its.arrays["f.npz"][name], array)


def test_lines_of_any_number_are_read_with_their_runs():
    texts = [["x", "", "ä\r b\u2028"], [], ["y"], [""], ["1", "2", "3", "4"]]
    records = [make_record(seed=n, lines={"out": its}) for n, its in enumerate(texts)]
    records.append(make_record("b", lines={"else": ["z"]}))
    *found, last = read_back(*records)
    assert [its.lines["out"] for its in found] == texts and last.lines == {"else": ["z"]}


def test_the_same_records_are_the_same_bytes(tmp_path, numpy_rng):
    records = [make_record(seed=n, arrays={"f": {"a": numpy_rng.random(9)}}) for n in range(3)]
    content = archive.packed(records)
    for record in records[::-1]:
        archive.add(tmp_path / archive.FILE, [record])
    assert (tmp_path / archive.FILE).read_bytes() == content
    assert os.listdir(tmp_path) == [archive.FILE]


def test_columns_that_differ_by_a_constant_cost_nothing(numpy_rng):
    def size(columns):
        runs = zip(*columns, strict=True)
        return len(archive.packed([make_record(seed=n, arrays={"f": {"a": np.stack(c, -1)}})
                                   for n, c in enumerate(runs)]))  # fmt: skip

    column = numpy_rng.integers(20, 200, (20, 500))
    assert size([column, column + 40]) < size([column]) + 200


def test_fractions_of_few_values_cost_as_little_as_their_numbers(numpy_rng):
    """Accuracies of resampled sets, as thousands of them have but some dozen values."""

    def size(values):
        return len(archive.packed([make_record(seed=n, arrays={"f": {"a": its}})
                                   for n, its in enumerate(values)]))  # fmt: skip

    right = numpy_rng.binomial(199, 0.8, (12, 1000)).astype(float)
    assert size(right / 199) < size(right) + 1000


def test_an_archive_of_an_earlier_version_is_read(numpy_rng, monkeypatch):
    """Its index does not say how many values stand in a table, for there was none."""
    array, folded = numpy_rng.random((4, 3)), archive._folded
    monkeypatch.setattr(archive, "_folded", lambda stack: _without_distinct(*folded(stack)))
    (found,) = read_back(make_record(arrays={"f": {"a": array}}))
    np.testing.assert_array_equal(found.arrays["f"]["a"], array)


def _without_distinct(data, facts):
    assert facts.pop("distinct") == 0
    return data, facts


def test_a_later_record_takes_the_place_of_an_earlier_one(tmp_path):
    path = tmp_path / "experiment" / archive.FILE
    assert len(archive.load(path)) == 0
    archive.add(path, [make_record(), make_record("b")])
    archive.add(path, [make_record(config={"x": 4})])
    found = archive.load(path)
    assert list(found) == [("a", 0), ("b", 0)]
    assert [record.config for record in found.outlines()] == [{"x": 4}, {"x": {"y": 3}}]
    archive.update(path, lambda known: {key: one for key, one in known.items() if key[0] == "b"})
    assert list(archive.load(path)) == [("b", 0)]


def test_a_change_that_fails_leaves_the_archive_as_it_was(tmp_path):
    path = tmp_path / archive.FILE
    archive.add(path, [make_record()])
    before = path.read_bytes()
    with pytest.raises(TypeError):
        archive.add(path, [make_record("b", facts={"a": object()})])
    assert path.read_bytes() == before and os.listdir(tmp_path) == [archive.FILE]


def test_runs_that_finish_at_once_lose_nothing(tmp_path):
    path = tmp_path / archive.FILE
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        records = [[make_record(f"cell{number}")] for number in range(12)]
        list(pool.map(functools.partial(archive.add, path), records))
    assert len(archive.load(path)) == 12 and os.listdir(tmp_path) == [archive.FILE]


def _without(content, member):
    source = zipfile.ZipFile(content)
    with zipfile.ZipFile(f"{content}.less", "w") as target:
        for name in source.namelist():
            if name != member:
                target.writestr(name, source.read(name))
    os.replace(f"{content}.less", content)


def _read_all(path):
    return list(archive.load(path).values())


@pytest.mark.parametrize("damage", ["cut off", "flipped", "empty", "text"])
def test_a_damaged_archive_is_one_line(tmp_path, numpy_rng, damage):
    path = tmp_path / archive.FILE
    archive.add(path, [make_record(arrays={"f": {"a": numpy_rng.random(999)}})])
    data = path.read_bytes()
    middle = len(data) // 2
    flipped = bytes(255 - byte for byte in data[middle : middle + 9])
    path.write_bytes({"cut off": data[:middle], "empty": b"", "text": b"text",
                      "flipped": data[:middle] + flipped + data[middle + 9 :]}[damage])  # fmt: skip
    with pytest.raises(RunDirectoryError, match="records.zip: expected an archive") as error:
        _read_all(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("member", ["runs.json", "index.json", "arrays", "lines/out"])
def test_an_archive_without_one_of_its_members_is_one_line(tmp_path, member):
    path = tmp_path / archive.FILE
    record = make_record(arrays={"f": {"a": np.arange(3)}}, lines={"out": ["x"]})
    archive.add(path, [record])
    _without(path, member)
    with pytest.raises(RunDirectoryError, match=f"records.zip: .*{member}"):
        _read_all(path)


def test_a_folder_in_its_place_is_one_line(tmp_path):
    with pytest.raises(RunDirectoryError, match="cannot be read: Is a directory"):
        archive.load(tmp_path)
