"""Files take their places whole; what killed writers left is removed, what others write is not."""

import errno
import fcntl
import os
import signal
import subprocess
import sys

import pytest

from attention_jax import files
from attention_jax.files import is_temporary, remove_abandoned, replacing

WRITER = """
import os, signal, sys
from attention_jax.files import replacing
with replacing(sys.argv[1]) as temporary:
    temporary.write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_a_writer(path):
    ended = subprocess.run([sys.executable, "-c", WRITER, str(path)], timeout=300)
    assert ended.returncode == -signal.SIGKILL
    (left,) = [name for name in os.listdir(path.parent) if is_temporary(name)]
    return path.with_name(left)


def test_what_a_killed_writer_left_is_removed_by_the_next_of_that_file(tmp_path):
    left = kill_a_writer(tmp_path / "plots" / "map.test.png")
    with replacing(left.with_name("other.png")):
        assert left.exists()
    with replacing(left.with_name("map.test.png")) as temporary:
        assert not left.exists()
        temporary.write_bytes(b"whole")
    assert sorted(os.listdir(left.parent)) == ["map.test.png", "other.png"]


def test_what_another_writer_is_at_work_on_stays(tmp_path):
    with replacing(tmp_path / "a.png") as first:
        first.write_bytes(b"first")
        with replacing(tmp_path / "a.png") as second:
            second.write_bytes(b"second")
        remove_abandoned(tmp_path)
        assert (tmp_path / "a.png").read_bytes() == b"second"
    assert (tmp_path / "a.png").read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["a.png"]


def test_without_locks_the_age_of_a_file_tells(tmp_path, monkeypatch):
    left = kill_a_writer(tmp_path / "a.png")

    def flock(*_):
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(fcntl, "flock", flock)
    remove_abandoned(tmp_path)
    assert left.exists()
    os.utime(left, (0, 0))
    remove_abandoned(tmp_path)
    assert not left.exists()


@pytest.mark.parametrize("name", [".a.2024.png", ".a.partial", "a.0123456789abcdef.partial"])
def test_other_hidden_files_are_no_temporary_ones(tmp_path, name):
    (tmp_path / name).touch()
    remove_abandoned(tmp_path)
    assert not is_temporary(name) and (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["a", "a.png", "a.b.gz", "a\nb.txt", ".hidden"])
def test_a_temporary_name_keeps_the_suffix(tmp_path, name):
    with files.replacing(tmp_path / name) as temporary:
        assert is_temporary(temporary.name)
        assert temporary.suffix == (tmp_path / name).suffix or not (tmp_path / name).suffix
