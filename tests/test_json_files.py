"""JSON of whoever is of the shape that is asked for, or refused in a line."""

import pytest

from attention_jax.errors import DataError, RunDirectoryError
from attention_jax.json_files import Maybe, mismatch, parse_json, read_json


@pytest.mark.parametrize(
    ("value", "shape", "expected"),
    [
        ("a", str, None),
        (1, str, "expected text, found 1"),
        ("a\ud800", str, 'expected text, found "a\\ud800"'),
        (1, float, None),
        (True, int, "expected a whole number, found true"),
        (1.5, int, "expected a whole number, found 1.5"),
        (10**400, float, "expected a number, found 1000000000000000000000000000000000000..."),
        (2**63, int, "expected a whole number, found 9223372036854775808"),
        (False, bool, None),
        (0, bool, "expected true or false, found 0"),
        (None, None, None),
        (None, (str, None), None),
        ([], (str, None), "expected text or null, found a list"),
        ("up", {"joint", "target"}, "expected one of joint, target, found \"up\""),
        ([], {"joint"}, "expected one of joint, found a list"),
        (["a", None], [str], "expected text at [1], found null"),
        ({"a": 1}, [str], "expected a list, found an object"),
        ({"a": {"b": [1]}}, {str: {str: [float]}}, None),
        ({"a": {"b": ["x"]}}, {str: {str: [float]}}, 'expected a number at a.b[0], found "x"'),
        ({"a": 1}, {"a": int, "b": int}, "expected a value named 'b', found none"),
        ({"a": 1}, {"a": int, "b": Maybe(int)}, None),
        ({"b": "x"}, {"b": Maybe(int)}, 'expected a whole number at b, found "x"'),
        ([], {}, "expected an object, found a list"),
        ({"anything": [None]}, {}, None),
        ([[None]], object, None),
    ],
)  # fmt: skip
def test_mismatch_says_where_and_what(value, shape, expected):
    assert mismatch(value, shape) == expected


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "f.json: expected JSON, found something else"),
        (b"", "f.json: expected JSON"),
        (b"\xff\xfe", "f.json: expected JSON"),
        (b"1" * 5000, "f.json: expected JSON"),
        (b"null", "f.json: expected an object, found null"),
        (b"[" * 100_000 + b"]" * 100_000, "f.json: expected at most 100 values within values"),
        (b'{"a":' * 101 + b"1" + b"}" * 101, "f.json: expected at most 100 values within values"),
    ],
)
def test_what_is_not_such_json_is_refused_in_a_line(tmp_path, content, words):
    path = tmp_path / "f.json"
    path.write_bytes(content)
    for error in (DataError, RunDirectoryError):
        with pytest.raises(error, match=words) as caught:
            read_json(path, {}, error)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_what_is_such_json_is_returned(tmp_path):
    assert parse_json(b'{"a": [1, null]}', {"a": [(int, None)]}) == {"a": [1, None]}
    assert parse_json("[" * 99 + "]" * 99) is not None
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "none.json")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read_json(tmp_path)
