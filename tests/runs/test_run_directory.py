"""A run directory is claimed by one process, and its files are whole or absent."""

import gzip
import itertools
import json
import math
import os
import pathlib
import subprocess
import sys
import threading

import pytest

from attention_jax.errors import DataError, RunDirectoryError
from attention_jax.runs import files
from attention_jax.runs.run_directory import RunDirectory, read_json


def _claim(path: pathlib.Path) -> None:
    with RunDirectory(path).claimed():
        pass


def test_claimed_makes_the_directory_and_its_parents(tmp_path):
    directory = RunDirectory(tmp_path / "a" / "b")
    with directory.claimed():
        assert directory.path.is_dir()


def test_claimed_refuses_a_directory_with_something_else(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(RunDirectoryError, match="one with 'thesis.tex' and no config.json"):
        _claim(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "precious"
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_claimed_refuses_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError, match="expected a directory, found a file"):
        _claim(tmp_path / "file")
    with pytest.raises(RunDirectoryError, match="cannot be written"):
        _claim(tmp_path / "file" / "below")


def test_claimed_refuses_a_directory_that_another_process_uses(tmp_path):
    code = (
        "import sys; from attention_jax.runs.run_directory import RunDirectory;"
        "d = RunDirectory(sys.argv[1]).claimed(); d.__enter__();"
        "print('ready', flush=True); input()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    try:
        assert other.stdout.readline() == "ready\n"
        with pytest.raises(RunDirectoryError, match="another process is training here"):
            _claim(tmp_path)
    finally:
        other.kill()
        other.wait()
        other.stdin.close()
        other.stdout.close()
    _claim(tmp_path)  # the lock died with its holder


def test_claimed_frees_the_directory_after_the_block(tmp_path):
    with RunDirectory(tmp_path).claimed(), pytest.raises(RunDirectoryError):
        _claim(tmp_path)
    _claim(tmp_path)


def refused(path, *names):
    """Claims a directory, writes these files and `config.json`, and ends with a mistake."""
    directory = RunDirectory(path)
    with pytest.raises(DataError), directory.claimed():
        directory.write_config({"seed": 1})
        for name in names:
            files.write_text(directory.path / name, "something")
        raise DataError("no such file")


def test_a_run_that_a_mistake_ends_before_it_trains_leaves_nothing(tmp_path):
    refused(tmp_path / "run", "run.json", "vocab/source/vocabulary.json", "links.train.txt")
    assert not any(tmp_path.iterdir())
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "logs").mkdir()
    refused(tmp_path / "run")
    assert os.listdir(tmp_path / "run") == ["logs"]


@pytest.mark.parametrize("name", ["metrics.jsonl", "wandb/id", "config.json"])
def test_what_a_mistake_must_not_remove(tmp_path, name):
    """What was trained; what something else has written; a run that was there before."""
    if name == "config.json":
        RunDirectory(tmp_path).write_config({"seed": 2})
    refused(tmp_path, name)
    assert (tmp_path / name).exists() and (tmp_path / "config.json").exists()
    _claim(tmp_path)


def test_require_tells_a_run_from_other_directories(tmp_path):
    with pytest.raises(RunDirectoryError, match="found none"):
        RunDirectory(tmp_path / "none").require()
    with pytest.raises(RunDirectoryError, match="no config.json"):
        RunDirectory(tmp_path).require()
    directory = RunDirectory(tmp_path)
    directory.write_config({"seed": 1})
    directory.require()
    assert directory.read_config() == {"seed": 1}


def test_the_config_of_a_run_that_never_trained_binds_nobody(tmp_path):
    directory = RunDirectory(tmp_path)
    assert directory.read_trained_config() is None
    directory.write_config({"seed": 3})
    assert directory.read_trained_config() is None  # as one killed while it prepared its text
    directory.metrics.write_text("{}\n")
    assert directory.read_trained_config() == {"seed": 3}


def test_add_results_replaces_one_split_and_keeps_the_others(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.add_results("test", {"per": 3.0, "wer": 9.0})
    directory.add_results("validation", {"per": 2.0})
    directory.add_results("test", {"per": 1.0})
    assert read_json(directory.results) == {"test": {"per": 1.0}, "validation": {"per": 2.0}}


def in_threads(work, number=4):
    """Runs a function in threads, whose locks are as apart as those of processes."""
    failed = []

    def guarded():
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed


def test_no_result_is_lost_where_several_write(tmp_path):
    directory, numbers = RunDirectory(tmp_path), itertools.count()

    def evaluate():
        for _ in range(20):
            name = f"test.{next(numbers)}"
            directory.add_results(name, {"per": 1.0})
            directory.add_to_group("evaluations", **{name: {}})
            directory.add_to_run(**{name: 1})

    in_threads(evaluate)
    names = {f"test.{number}" for number in range(80)}
    assert read_json(directory.results).keys() == names
    facts = read_json(directory.run)
    assert facts.keys() == {*names, "evaluations"} and facts["evaluations"].keys() == names
    assert sorted(os.listdir(tmp_path)) == ["results.json", "run.json"]


def test_one_claim_is_inside_though_each_removes_the_directory(tmp_path):
    inside, most = [], []

    def claim():
        directory = RunDirectory(tmp_path / "run")
        for _ in range(100):
            try:
                with directory.claimed():
                    inside.append(1)
                    most.append(len(inside))
                    directory.write_config({"seed": 1})
                    files.write_text(directory.run, "{}")
                    inside.pop()
                    raise DataError("a mistake")
            except DataError:
                pass
            except RunDirectoryError as error:
                assert "another process is training here" in str(error)

    in_threads(claim)
    assert most and max(most) == 1
    assert not any(tmp_path.iterdir())


def test_what_killed_writers_left_is_removed_by_the_next_training(tmp_path):
    RunDirectory(tmp_path).write_config({"seed": 1})
    left = [tmp_path / ".run.0123456789abcdef.partial.json",
            tmp_path / "plots" / ".map.0123456789abcdef.partial.png"]  # fmt: skip
    left[1].parent.mkdir()
    for path in left:
        path.touch()
    _claim(tmp_path)
    assert not any(path.exists() for path in left)


def test_a_picture_that_cannot_be_written_is_named(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.plots.write_text("not a directory")
    with pytest.raises(RunDirectoryError, match="map.png cannot be written: "):
        with directory.plot("map.png"):
            pass


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("run.json", "[]", "expected an object, found a list"),
        ("run.json", "null", "expected an object, found null"),
        ("run.json", '{"started": "today"}', 'expected a list at started, found "today"'),
        ("run.json", '{"evaluations": {"test": 1}}', "expected an object at evaluations.test"),
        ("run.json", '{"writers": []}', "expected an object at writers, found a list"),
        ("run.json", '{"texts": {"train": 1}}', "expected text at texts.train, found 1"),
        ("results.json", "[1]", "expected an object, found a list"),
        ("results.json", '{"test": 4}', "expected an object at test, found 4"),
        ("results.json", '{"test": {"per": "low"}}', 'expected a number or null at test.per'),
        ("results.json", '{"test": {"per": [1]}}', "expected a number or null at test.per, found"),
        ("config.json", "3", "expected an object, found 3"),
        ("config.json", "[" * 9999 + "]" * 9999, "expected at most 100 values within values"),
    ],
)
def test_a_strangers_file_is_named(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(RunDirectoryError, match=f"{name}: {message}"):
        read_json(tmp_path / name)


def test_read_json_names_a_damaged_file(tmp_path):
    (tmp_path / "results.json").write_text("{")
    with pytest.raises(RunDirectoryError, match="results.json: expected JSON"):
        RunDirectory(tmp_path).add_results("test", {})


def test_replacing_leaves_the_old_file_when_the_writer_fails(tmp_path):
    path = tmp_path / "file.txt"
    files.write_text(path, "old")
    with pytest.raises(ValueError, match="stop"), files.replacing(path) as temporary:
        temporary.write_text("half of the n")
        raise ValueError("stop")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_write_text_reads_back_unicode(tmp_path):
    files.write_text(tmp_path / "file.txt", "für 你好\n")
    assert (tmp_path / "file.txt").read_text(encoding="utf-8") == "für 你好\n"


def test_a_path_that_is_no_unicode_is_recorded_and_read_back(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.add_to_run(command="train --workdir=/a\udcff/你")
    assert json.loads(directory.run.read_text())["command"] == "train --workdir=/a\udcff/你"
    files.write_text(tmp_path / "page.md", "/a\udcff")
    assert (tmp_path / "page.md").read_text() == r"/a\udcff"


def test_write_text_compresses_by_name(tmp_path):
    files.write_text(tmp_path / "file.txt.gz", "für 你好\n")
    content = (tmp_path / "file.txt.gz").read_bytes()
    assert gzip.decompress(content).decode() == "für 你好\n"
    files.write_text(tmp_path / "file.txt.gz", "für 你好\n")
    assert (tmp_path / "file.txt.gz").read_bytes() == content


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_claimed_refuses_a_directory_that_cannot_be_written(tmp_path: pathlib.Path):
    tmp_path.chmod(0o500)
    with pytest.raises(RunDirectoryError, match="cannot be written: Permission denied"):
        _claim(tmp_path / "run")


def test_numbers_that_are_not_finite_become_null(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.add_results("test", {"step": 3, "nll": math.nan, "x": (1.5, -math.inf)})
    found = json.loads(directory.results.read_text(), parse_constant=pytest.fail)
    assert found == {"test": {"step": 3, "nll": None, "x": [1.5, None]}}


@pytest.mark.parametrize(
    "name", ["n" * 300, "漢" * 90, "dictionary=a/b \udcff[5]\n", "test,beam_size=10", ".."]
)
def test_results_have_a_folder_whatever_they_are_called(tmp_path, name):
    directory = RunDirectory(tmp_path).evaluation(name)
    directory.record_evaluation("test", {"text": "1"})
    assert directory.recorded_evaluation("test") == {"text": "1"}
    assert [path.name for path in tmp_path.iterdir()] == ["evaluations"]
    other = RunDirectory(tmp_path).evaluation(f"{name}x")
    assert other.outputs != directory.outputs != tmp_path
