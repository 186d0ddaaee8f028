"""One at a time holds a lock, also while others remove its file."""

import errno
import fcntl
import os
import threading

import pytest

from attention_jax import locks
from attention_jax.locks import locked


def test_a_lock_is_held_by_one_and_freed_after_the_block(tmp_path):
    path = tmp_path / "lock"
    with locked(path), pytest.raises(BlockingIOError), locked(path, wait=False):
        pass
    with locked(path, wait=False, remove=True):
        assert path.exists()
    assert not path.exists()


def test_a_file_that_its_last_holder_removed_is_not_taken_for_the_lock(tmp_path, monkeypatch):
    """We have opened the file; its holder removes it and ends, and a third locks a new one."""
    path, third = tmp_path / "lock", []
    takes_lock = locks.takes_lock

    def late(file, *, wait):
        if not third:
            path.unlink()
            third.append(path.open("ab"))
            assert takes_lock(third[0])
        return takes_lock(file, wait=wait)

    monkeypatch.setattr(locks, "takes_lock", late)
    with pytest.raises(BlockingIOError), locked(path, wait=False):
        pass
    third[0].close()
    with locked(path, wait=False):
        pass


def test_one_at_a_time_is_inside_though_the_file_is_removed_each_time(tmp_path):
    inside, most = [], []

    def visit():
        for _ in range(100):
            with locked(tmp_path / "lock", remove=True):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    visitors = [threading.Thread(target=visit) for _ in range(4)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    assert len(most) == 400 and max(most) == 1


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EBADF])
def test_a_file_system_without_locks_lets_everybody_in(tmp_path, monkeypatch, code):
    def flock(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", flock)
    with locked(tmp_path / "lock"), locked(tmp_path / "lock", wait=False):
        pass
