"""Processes that train together: what they know of each other, and what one does without others."""

import hashlib
import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from attention_jax.commands.local_job import free_port
from attention_jax.data.builders.smoke import Config as SmokeConfig
from attention_jax.data.loading import build_task
from attention_jax.data.pipeline import make_train_iterator
from attention_jax.devices import processes
from attention_jax.errors import DataError, UserError

PREFIX = "ATTENTION_JAX_"
PLACE = {"COORDINATOR": "host:1234", "NUM_PROCESSES": "4", "PROCESS_ID": "3"}


@pytest.fixture(scope="module")
def pair(repository, tmp_path_factory):
    """What each of two real processes has found."""
    folder = tmp_path_factory.mktemp("pair")
    result = subprocess.run(
        ["launch/local.sh", f"--logs={folder}", "2", sys.executable, "-m", "tests.training.pair",
         str(folder)],
        cwd=repository, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    return [json.loads((folder / f"{process}.json").read_text()) for process in range(2)]


def test_values_are_exchanged_whatever_their_sizes(pair):
    for found in pair:
        assert found["exchange"] == {"sizes": [5, 2005], "first": "said by 0"}


def test_an_error_of_one_is_an_error_of_all(pair):
    expected = ["DataError: found by 0", "DataError: found by 1", "ConfigError: refused"]
    assert [found["errors"] for found in pair] == [expected, expected]


def test_others_find_what_the_first_has_made(pair):
    assert [found["order"] for found in pair] == [[False, True], [True, True]]


def test_two_processes_train_on_the_examples_of_one(pair, tmp_path):
    config = SmokeConfig(batch_size=24, num_buckets=4, max_train_examples=200)
    iterator = make_train_iterator(build_task(config, tmp_path), config, 3)
    digest = hashlib.sha256()
    for _ in range(2 * iterator.batches_per_epoch):
        digest.update(next(iterator)["index"].astype("<i4").tobytes())
    assert [found["stream"] for found in pair] == [digest.hexdigest()] * 2


def test_word_links_are_found_once_and_read_by_all(pair):
    first, second = (found["links"] for found in pair)
    assert first["said"] and not second["said"]
    assert first["links"] == second["links"] and all(first["links"])


def test_a_signal_to_one_stops_both_at_the_same_step(pair):
    first, second = (found["preemption"] for found in pair)
    assert first == second and first["code"] == 75 and first["step"] >= 7


@pytest.mark.parametrize("victim", [0, 1])
def test_a_process_that_is_frozen_is_noticed(repository, tmp_path, victim):
    environment = {
        **os.environ,
        f"{PREFIX}COORDINATOR": f"127.0.0.1:{free_port()}",
        f"{PREFIX}NUM_PROCESSES": "2",
        f"{PREFIX}HEARTBEAT_SECONDS": "3",
    }
    logs = [tmp_path / f"process_{number}.log" for number in range(2)]
    pair = []
    for number, log in enumerate(logs):
        with log.open("w") as output:
            command = [sys.executable, "-m", "tests.training.frozen", str(victim)]
            place = {**environment, f"{PREFIX}PROCESS_ID": str(number)}
            pair.append(
                subprocess.Popen(
                    command, cwd=repository, env=place, stdout=output, stderr=subprocess.STDOUT
                )
            )
    try:
        # Were it not noticed, it would be waited for without an end.
        assert pair[1 - victim].wait(timeout=300) == 75, logs[1 - victim].read_text()
        said = logs[1 - victim].read_text()
        assert "joined" in said and "the same command continues" in said
        assert pair[victim].poll() is None
    finally:
        for each in pair:
            each.kill()
            each.wait()


def test_alone_nothing_is_exchanged():
    assert processes.gather({"a": 1}) == [{"a": 1}]
    assert processes.from_first(lambda: 3) == 3
    assert processes.after_first(lambda: 4, is_made=lambda: False) == 4
    with pytest.raises(DataError, match="own"), processes.agreed():
        raise DataError("own")


def test_one_process_is_joined_by_nobody(monkeypatch):
    for name in (*PLACE, "DISTRIBUTED"):
        monkeypatch.delenv(f"{PREFIX}{name}", raising=False)
    with processes.joined():
        assert not jax.distributed.is_initialized() and processes.is_first()
    with pytest.raises(DataError), processes.joined():
        raise DataError("passed on")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"COORDINATOR": ""}, "COORDINATOR, .*: expected all or none of them, found .* only"),
        ({"COORDINATOR": "host"}, "COORDINATOR: expected host:port, found 'host'"),
        ({"NUM_PROCESSES": "two"}, "NUM_PROCESSES: expected a whole number of at least 1, found"),
        ({"PROCESS_ID": "-1"}, "PROCESS_ID: expected a whole number of at least 0, found '-1'"),
        ({"PROCESS_ID": "4"}, r"PROCESS_ID: expected less than .*NUM_PROCESSES \(4\), found 4"),
        ({"DISTRIBUTED": "yes"}, "DISTRIBUTED: expected auto or nothing, found 'yes'"),
        ({"DISTRIBUTED": "auto"}, "COORDINATOR beside ATTENTION_JAX_DISTRIBUTED=auto"),
        ({"HEARTBEAT_SECONDS": "0"}, "HEARTBEAT_SECONDS: expected a whole number of at least 1"),
    ],
)
def test_an_environment_that_makes_no_sense_is_one_line(monkeypatch, changes, message):
    for name, value in {**PLACE, **changes}.items():
        monkeypatch.setenv(f"{PREFIX}{name}", value)
    monkeypatch.setattr(processes, "_leave_when_aborted", lambda: None)
    monkeypatch.setattr(jax.distributed, "initialize", lambda **_: pytest.fail("joined"))
    with pytest.raises(UserError, match=message) as error:
        processes.initialize()
    assert "\n" not in str(error.value)


def test_auto_without_a_cluster_is_one_line(monkeypatch):
    def initialize(**_):
        raise ValueError("coordinator_address should be defined.")

    for name in PLACE:
        monkeypatch.delenv(f"{PREFIX}{name}", raising=False)
    monkeypatch.setenv(f"{PREFIX}DISTRIBUTED", "auto")
    monkeypatch.setattr(processes, "_leave_when_aborted", lambda: None)
    monkeypatch.setattr(jax.distributed, "initialize", initialize)
    with pytest.raises(UserError, match="expected auto under SLURM.*, found none"):
        processes.initialize()


def test_a_connection_that_broke_is_found_behind_other_errors():
    def wrapped(text):
        try:
            try:
                raise ValueError(text)
            except ValueError:
                raise UserError("step 3 could not be saved") from None
        except UserError as error:
            return error

    gloo = "UNKNOWN: Gloo AllGather failed: [pair.cc:547] Connection closed by peer [127.0.0.1]"
    assert processes._is_broken_connection(wrapped(gloo))
    assert not processes._is_broken_connection(wrapped("No space left on device"))
    assert not processes._is_broken_connection(SystemExit(75))


def test_reports_have_the_codes_of_the_programs(capsys):
    assert processes._report(UserError("wrong")) == 2
    assert capsys.readouterr().err == "error: wrong\n"
    assert processes._report(KeyboardInterrupt()) == 130
    assert processes._report(SystemExit(75)) == 75
    assert processes._report(TypeError("bug")) == 1
    assert "TypeError: bug" in capsys.readouterr().err


def test_gather_takes_arrays():
    (found,) = processes.gather(np.arange(3))
    np.testing.assert_array_equal(found, [0, 1, 2])
