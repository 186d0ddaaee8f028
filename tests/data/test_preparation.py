import os
import resource
import subprocess
import sys

import pytest

from attention_jax.data.builders.smoke import smoke_dataset_builder as smoke
from attention_jax.data.preparation import load_examples
from attention_jax.errors import DataError

FOLDER = os.path.join("datasets", "smoke", str(smoke.Builder.VERSION))
PREPARE = """
import os, signal, sys
from absl import logging
from attention_jax.data.builders.smoke import smoke_dataset_builder as smoke
from attention_jax.data.preparation import load_examples

spelled, calls = smoke.spelled, 0

def dying(number):
    global calls
    calls += 1
    if calls == 2100:
        os.kill(os.getpid(), signal.SIGKILL)
    return spelled(number)

if "die" in sys.argv:
    smoke.spelled = dying
logging.set_verbosity(logging.INFO)
examples = load_examples(smoke.Builder)
assert "tensorflow" not in sys.modules
print(len(examples["train"]), len(examples["test"]))
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(tmp_path))
    return tmp_path


def _start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-c", PREPARE, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_load_examples_reads_back_what_was_prepared(cache, monkeypatch):
    first = load_examples(smoke.Builder)
    monkeypatch.setattr(smoke, "spelled", None)  # a second preparation would fail
    assert load_examples(smoke.Builder) == first
    assert first["train"][0].references == (
        " ".join(smoke.DIGITS[int(digit)] for digit in first["train"][0].source),
    )
    assert {name: len(split) for name, split in first.items()} == smoke.SIZES


@pytest.mark.parametrize("name", ["**", "a\\b[1]*?{0}\n", "a\udce9"])
def test_the_cache_may_have_any_name(cache, monkeypatch, name):
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(cache / name))
    first = load_examples(smoke.Builder)
    monkeypatch.setattr(smoke, "spelled", None)
    assert load_examples(smoke.Builder) == first
    assert os.listdir(cache) == [name] and (cache / name / FOLDER).is_dir()


@pytest.mark.parametrize("room", [0, 4096, 100_000])
def test_what_does_not_fit_is_a_line_and_fits_later(cache, room):
    """A limit on the size of files is as good as a full disk, and fails at the same places."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(DataError, match=r"1\.0\.0: .* could not be written \(File too large\)"):
            load_examples(smoke.Builder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not any((cache / "datasets" / "smoke").iterdir())
    assert len(load_examples(smoke.Builder)["train"]) == smoke.SIZES["train"]


def test_load_examples_survives_a_kill_while_preparing(cache):
    killed = _start("die")
    output = killed.communicate(timeout=300)
    assert killed.returncode == -9, output
    [left_behind] = (cache / "datasets" / "smoke").iterdir()
    assert left_behind.name.startswith("incomplete.")
    assert len(load_examples(smoke.Builder)["train"]) == smoke.SIZES["train"]
    assert [path.name for path in (cache / "datasets" / "smoke").iterdir()] == ["1.0.0"]


def test_load_examples_prepares_once_for_two_processes(cache):
    processes = [_start(), _start()]
    outputs = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert all(out.split() == ["2048", "128"] for out, _ in outputs)
    assert sum(err.count("Preparing smoke") for _, err in outputs) == 1


def test_load_examples_notices_damage(cache):
    load_examples(smoke.Builder)
    [record] = (cache / FOLDER).glob("*train*array_record*")
    content = bytearray(record.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(64)
    record.write_bytes(content)
    with pytest.raises(DataError, match="damaged, delete the folder") as error:
        load_examples(smoke.Builder)
    assert "\n" not in str(error.value)


def test_load_examples_notices_a_damaged_description(cache):
    load_examples(smoke.Builder)
    path = cache / FOLDER / "dataset_info.json"
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(DataError, match="damaged, delete the folder") as error:
        load_examples(smoke.Builder)
    assert "\n" not in str(error.value)


def test_load_examples_passes_the_builders_errors_on(cache, monkeypatch):
    def failing(number):
        raise DataError("one line")

    monkeypatch.setattr(smoke, "spelled", failing)
    with pytest.raises(DataError, match="^one line$"):
        load_examples(smoke.Builder)
    monkeypatch.setattr(smoke, "spelled", str)
    assert len(load_examples(smoke.Builder)["test"]) == smoke.SIZES["test"]
