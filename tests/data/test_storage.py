import errno
import fcntl
import gzip
import hashlib
import http.client
import threading

import pytest

from attention_jax.data import storage
from attention_jax.errors import DataError

CONTENT = b"one\ntwo\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def published(tmp_path, monkeypatch):
    """The address of a published file, and a cache to download it to."""
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "published.txt"
    path.write_bytes(CONTENT)
    return path.as_uri()


def test_data_root_is_none_without_the_variable():
    assert storage.data_root() is None


def test_data_root_rejects_a_missing_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTENTION_JAX_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="ATTENTION_JAX_DATA: expected a folder, found .*nowhere"):
        storage.data_root()


def test_cache_root_is_created_where_the_variable_says(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(tmp_path / "a" / "b"))
    assert storage.cache_root() == tmp_path / "a" / "b"
    assert (tmp_path / "a" / "b").is_dir()


def test_cache_root_is_below_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("ATTENTION_JAX_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert storage.cache_root() == tmp_path / "attention_jax"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert storage.cache_root() == tmp_path / ".cache" / "attention_jax"
    for unset in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert storage.cache_root() == tmp_path / ".cache" / "attention_jax"


def test_cache_root_rejects_what_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match="ATTENTION_JAX_CACHE: expected a writable folder"):
        storage.cache_root()


def test_exclusive_lets_one_in_at_a_time(tmp_path):
    inside, most = 0, 0
    count = threading.Lock()

    def visit():
        nonlocal inside, most
        with storage.exclusive(tmp_path / "lock"):
            with count:
                inside += 1
                most = max(most, inside)
            threading.Event().wait(0.01)
            with count:
                inside -= 1

    visitors = [threading.Thread(target=visit) for _ in range(5)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    assert most == 1


def test_exclusive_lets_everybody_in_where_there_are_no_locks(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", flock)
    with storage.exclusive(tmp_path / "a" / "lock"):
        assert (tmp_path / "a").is_dir()


def test_exclusive_names_a_lock_that_cannot_be_made(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(DataError, match="a/lock cannot be written: "):
        with storage.exclusive(tmp_path / "a" / "lock"):
            pass


def test_obtain_says_where_there_is_no_room(published, monkeypatch, tmp_path):
    def check_digest(path, digest):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(storage, "check_digest", check_digest)
    with pytest.raises(DataError, match="downloads/a.txt cannot be written: No space left"):
        storage.obtain("a.txt", published, SHA256)
    assert [path.name for path in (tmp_path / "cache" / "downloads").iterdir()] == ["a.txt.lock"]


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_check_digest_tells_files_apart(tmp_path, algorithm):
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    digest = hashlib.new(algorithm, CONTENT).hexdigest()
    storage.check_digest(path, digest)
    path.write_bytes(CONTENT + b"x")
    with pytest.raises(DataError, match=f"file: expected {algorithm} {digest}, found"):
        storage.check_digest(path, digest)


def test_obtain_prefers_the_users_file(published, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_JAX_DATA", str(tmp_path / "mine"))
    (tmp_path / "mine" / "set").mkdir(parents=True)
    (tmp_path / "mine" / "set" / "a.txt").write_bytes(CONTENT)
    path = storage.obtain("set/a.txt", "file:///does/not/exist", SHA256)
    assert path == tmp_path / "mine" / "set" / "a.txt"


def test_obtain_checks_the_users_file(published, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_JAX_DATA", str(tmp_path))
    (tmp_path / "a.txt").write_bytes(b"other")
    with pytest.raises(DataError, match=r"a\.txt: expected sha256"):
        storage.obtain("a.txt", published, SHA256)


def test_the_users_file_may_be_packed(published, tmp_path, monkeypatch):
    """The digest is that of the file itself: it can be packed in many ways."""
    packed = tmp_path / "mine" / "a.txt.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(CONTENT))
    monkeypatch.setenv("ATTENTION_JAX_DATA", str(tmp_path / "mine"))
    assert storage.obtain("a.txt", published, SHA256) == packed
    packed.write_bytes(gzip.compress(b"two\none\n"))
    with pytest.raises(DataError, match=r"a\.txt\.gz: expected sha256"):
        storage.obtain("a.txt", published, SHA256)
    for damaged in (gzip.compress(CONTENT)[:-9], b"no gzip", gzip.compress(CONTENT)[:12] + b"\xff"):
        packed.write_bytes(damaged)
        with pytest.raises(DataError, match=r"a\.txt\.gz: expected a gzip file that can be unpack"):
            storage.obtain("a.txt", published, SHA256)
    assert not (tmp_path / "cache").exists()
    # Of a file that is published packed, the packed form is what is checked.
    digest = hashlib.sha256(b"no gzip").hexdigest()
    packed.write_bytes(b"no gzip")
    assert storage.obtain("a.txt.gz", published, digest) == packed


def test_obtain_downloads_once(published, tmp_path):
    path = storage.obtain("set/a.txt", published, SHA256)
    assert path.read_bytes() == CONTENT
    assert path == tmp_path / "cache" / "downloads" / "set" / "a.txt"
    assert storage.obtain("set/a.txt", "file:///does/not/exist", SHA256) == path


def test_obtain_keeps_nothing_of_a_wrong_download(published, tmp_path):
    with pytest.raises(DataError, match=r"published\.txt: expected sha256 0{64}, found") as error:
        storage.obtain("a.txt", published, "0" * 64)
    assert "\n" not in str(error.value)
    assert [path.name for path in (tmp_path / "cache" / "downloads").iterdir()] == ["a.txt.lock"]


def test_obtain_says_where_to_put_what_cannot_be_downloaded(published):
    with pytest.raises(DataError, match="could not be downloaded") as error:
        storage.obtain("set/a.txt", "file:///does/not/exist", SHA256)
    assert "$ATTENTION_JAX_DATA/set/a.txt" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "error",
    [http.client.BadStatusLine("<html>\nlog in first"), http.client.IncompleteRead(b"half")],
)
def test_obtain_says_where_to_put_what_was_answered_badly(published, monkeypatch, tmp_path, error):
    def urlopen(*arguments, **options):
        raise error

    monkeypatch.setattr(storage.urllib.request, "urlopen", urlopen)
    with pytest.raises(DataError, match="could not be downloaded") as caught:
        storage.obtain("a.txt", published, SHA256)
    assert "\n" not in str(caught.value)
    assert [path.name for path in (tmp_path / "cache" / "downloads").iterdir()] == ["a.txt.lock"]


def test_obtain_notices_a_damaged_download(published):
    path = storage.obtain("a.txt", published, SHA256)
    path.write_bytes(CONTENT[:-1])
    with pytest.raises(DataError, match="expected sha256"):
        storage.obtain("a.txt", published, SHA256)
