"""Checkpoints come back as they were saved, or say in one line why they do not."""

import math
import os
import pathlib
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attention_jax.errors import CheckpointError
from attention_jax.runs.checkpoints import manifest
from attention_jax.runs.checkpoints.checkpoint import Checkpointer, SaveCost

_SHARDING = jax.sharding.SingleDeviceSharding(jax.devices()[0])


def _state(fill: float = 1.0, vocabulary: int = 7) -> dict:
    fill = float(fill)
    params = {"embedding": jnp.full((vocabulary, 4), fill), "bias": jnp.arange(300.0) * fill}
    return {
        "step": jnp.int32(fill),
        "params": params,
        "optimizer": optax.adam(1e-3).init(params),
        "half": jnp.ones((3,), jnp.bfloat16),
        "rng": jax.random.key(7),
        "average": None,
    }


def _like(state: dict) -> dict:
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=_SHARDING), state
    )


def _save(
    checkpointer: Checkpointer, step: int, metric: float | None = None, *, interim: bool = False
) -> None:
    checkpointer.save(
        step, _state(step), data={"batch": step}, config={"seed": 1}, host={"best": metric},
        metric=metric, interim=interim,
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> pathlib.Path:
    """A directory with the steps 1 and 2."""
    directory = tmp_path_factory.mktemp("saved") / "checkpoints"
    checkpointer = Checkpointer(directory)
    _save(checkpointer, 1)
    _save(checkpointer, 2)
    checkpointer.close()
    return directory


@pytest.fixture
def copy(saved, tmp_path) -> pathlib.Path:
    """A copy of it, to be damaged."""
    return pathlib.Path(shutil.copytree(saved, tmp_path / "checkpoints"))


def _assert_equal(found: dict, expected: dict) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for left, right in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert left.dtype == right.dtype
        if jax.dtypes.issubdtype(left.dtype, jax.dtypes.prng_key):
            left, right = jax.random.key_data(left), jax.random.key_data(right)
        np.testing.assert_array_equal(np.asarray(left), np.asarray(right))


def test_restore_returns_what_was_saved(saved):
    checkpoint = Checkpointer(saved).restore(_like(_state()))
    assert (checkpoint.step, checkpoint.data, checkpoint.host) == (2, {"batch": 2}, {"best": None})
    _assert_equal(checkpoint.state, _state(2))


def test_restore_takes_the_step_that_is_asked_for(saved):
    _assert_equal(Checkpointer(saved).restore(_like(_state()), step=1).state, _state(1))


def test_restore_returns_none_in_a_new_directory(tmp_path):
    assert Checkpointer(tmp_path / "none").restore(_like(_state())) is None
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("name", ["job[5]", "a*b", "**", "a\\b", "{0}?\n", "a\udce9"])
def test_a_directory_may_have_any_name(tmp_path, name):
    """To the library below some names are patterns; a sibling fits the second."""
    shutil.copytree(saved_once(tmp_path / "a-b"), tmp_path / "axb")
    directory = saved_once(tmp_path / name)
    found = Checkpointer(directory).restore(_like(_state()))
    assert found.step == 1
    _assert_equal(found.state, _state(1))
    assert sorted(os.listdir(directory)) == ["1"]


def saved_once(folder: pathlib.Path) -> pathlib.Path:
    """Saves a step below a folder and returns where."""
    with Checkpointer(folder / "checkpoints") as checkpointer:
        _save(checkpointer, 1)
    return checkpointer.directory


def test_restore_raises_for_a_step_that_is_not_there(tmp_path):
    with pytest.raises(CheckpointError, match="no checkpoint of step 3"):
        Checkpointer(tmp_path).restore(_like(_state()), step=3)


def test_save_keeps_the_latest_and_the_best_across_restarts(tmp_path):
    metrics = [5.0, 1.0, 3.0, None, 2.0, 4.0]
    for step, metric in enumerate(metrics, start=1):
        checkpointer = Checkpointer(tmp_path, keep_latest=2, keep_best=1, mode="min")
        _save(checkpointer, step, metric)
        checkpointer.close()
    assert checkpointer.steps() == [2, 5, 6]


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("metric", [math.nan, math.inf, -math.inf])
def test_a_metric_that_is_not_finite_is_none(tmp_path, metric, mode):
    for step, value in enumerate([2.0, metric, 3.0 if mode == "min" else 1.0], start=1):
        with Checkpointer(tmp_path, keep_latest=2, keep_best=1, mode=mode) as checkpointer:
            _save(checkpointer, step, value)
    assert checkpointer.steps() == [1, 2, 3]
    stored = [path.parent.parent.name for path in tmp_path.glob("*/metrics/metrics")]
    assert sorted(stored) == ["1", "3"]


def test_save_keeps_the_largest_where_that_is_best(tmp_path):
    checkpointer = Checkpointer(tmp_path, keep_latest=1, keep_best=1, mode="max")
    for step, metric in enumerate([1.0, 9.0, 3.0, 4.0], start=1):
        _save(checkpointer, step, metric)
    checkpointer.close()
    assert checkpointer.steps() == [2, 4]


def test_interim_steps_take_no_place_of_another(tmp_path):
    kept = []
    for step, interim in enumerate([False, False, True, True, False, True], start=1):
        checkpointer = Checkpointer(tmp_path, keep_latest=2)
        _save(checkpointer, step, interim=interim)
        checkpointer.close()
        kept.append(checkpointer.steps())
    assert kept == [[1], [1, 2], [1, 2, 3], [1, 2, 4], [2, 5], [2, 5, 6]]
    assert Checkpointer(tmp_path).restore(_like(_state())).step == 6
    each = Checkpointer(tmp_path).restore_each(_like(_state()), newest=6)
    assert [checkpoint.step for checkpoint in each] == [5, 2]


def test_interim_step_that_is_reached_again_counts_as_what_it_is_then(copy):
    checkpointer = Checkpointer(copy)
    _save(checkpointer, 3, interim=True)
    checkpointer.wait()
    _damage(copy / "3" / "manifest.json", "truncated")
    checkpointer = Checkpointer(copy, report=lambda line: None)
    assert checkpointer.restore(_like(_state())).step == 2
    _save(checkpointer, 3)
    checkpointer.close()
    assert checkpointer.steps() == [2, 3]


def test_restore_each_leaves_a_damaged_step_out(tmp_path):
    checkpointer = Checkpointer(tmp_path, keep_latest=4)
    for step in (1, 2, 3, 4):
        _save(checkpointer, step)
    checkpointer.close()
    _damage(tmp_path / "1" / "host" / "metadata", "deleted")
    _damage(tmp_path / "3" / "host" / "metadata", "zeroed")
    lines: list[str] = []
    reader = Checkpointer(tmp_path, read_only=True, report=lines.append)
    each = list(reader.restore_each(_like(_state()), newest=4))
    assert [checkpoint.step for checkpoint in each] == [4, 2]
    _assert_equal(each[1].state, _state(2))
    assert len(lines) == 2 and "step 3 in" in lines[0] and lines[1].endswith("it is left out")
    each = reader.restore_each(_like(_state()), newest=3)
    assert [checkpoint.step for checkpoint in each] == [2]


def _files(step: pathlib.Path) -> list[str]:
    return sorted(path.relative_to(step).as_posix() for path in step.rglob("*") if path.is_file())


def _damage(path: pathlib.Path, how: str) -> bool:
    data = path.read_bytes()
    if how == "deleted":
        path.unlink()
    elif not data:
        return False
    elif how == "flipped":
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :])
    elif how == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif how == "zeroed":
        path.write_bytes(b"\0" * len(data))
    return True


@pytest.mark.parametrize("how", ["truncated", "zeroed", "flipped", "deleted"])
def test_restore_names_the_damaged_file_and_falls_back(saved, tmp_path, how):
    for number, name in enumerate(_files(saved / "2")):
        directory = pathlib.Path(shutil.copytree(saved, tmp_path / str(number)))
        if not _damage(directory / "2" / name, how):
            continue
        lines: list[str] = []
        checkpoint = Checkpointer(directory, report=lines.append).restore(_like(_state()))
        _assert_equal(checkpoint.state, _state(checkpoint.step))
        if checkpoint.step == 2:  # not needed to restore
            assert name in ("_CHECKPOINT_METADATA", "commit_success.txt") and not lines
            continue
        assert checkpoint.step == 1
        assert len(lines) == 1 and "\n" not in lines[0]
        assert "step 2" in lines[0] and name in lines[0], lines


def test_restore_takes_no_other_step_where_none_will_do(copy):
    _damage(copy / "2" / "host" / "metadata", "zeroed")
    lines: list[str] = []
    reader = Checkpointer(copy, read_only=True, report=lines.append)
    with pytest.raises(CheckpointError, match="step 2 in .* is damaged") as caught:
        reader.restore(_like(_state()), 2, exact=True)
    assert "before" not in str(caught.value) and not lines
    with pytest.raises(CheckpointError, match="has no checkpoint of step 5$"):
        reader.restore(_like(_state()), 5, exact=True)
    assert reader.restore(_like(_state()), 1, exact=True).step == 1


def test_restore_sets_a_damaged_step_aside_so_that_it_can_be_saved_again(copy):
    _damage(copy / "2" / "manifest.json", "truncated")
    checkpointer = Checkpointer(copy, report=lambda line: None)
    assert checkpointer.restore(_like(_state())).step == 1
    assert (copy / "2.damaged").is_dir()
    _save(checkpointer, 2)
    checkpointer.close()
    _assert_equal(Checkpointer(copy).restore(_like(_state())).state, _state(2))


def test_restore_raises_where_no_step_is_good(copy):
    for step in ("1", "2"):
        (copy / step / "host" / "metadata").unlink()
    with pytest.raises(CheckpointError, match="step 2 .* host/metadata is missing; there is no"):
        Checkpointer(copy, report=lambda line: None).restore(_like(_state()))


def test_restore_does_not_start_anew_where_only_damaged_steps_are_left(copy):
    for step in ("1", "2"):
        (copy / step / "host" / "metadata").unlink()
    for message in ("there is no good one before it", r"damaged checkpoints only, 1\.damaged, 2"):
        with pytest.raises(CheckpointError, match=message):
            Checkpointer(copy, report=lambda line: None).restore(_like(_state()))


def test_save_replaces_a_step_whose_saving_was_interrupted(copy):
    (copy / "2" / "commit_success.txt").unlink()
    (copy / "9").mkdir()
    checkpointer = Checkpointer(copy, report=lambda line: None)
    assert checkpointer.steps() == [1]
    assert checkpointer.restore(_like(_state())).step == 1
    _save(checkpointer, 2)
    checkpointer.close()
    assert checkpointer.steps() == [1, 2]
    assert not (copy / "9").exists()


def test_restore_names_the_parameter_of_another_shape(saved):
    with pytest.raises(CheckpointError) as error:
        Checkpointer(saved).restore(_like(_state(vocabulary=9)))
    assert "params/embedding is float32[7,4] in the checkpoint, float32[9,4]" in str(error.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"half": jnp.ones((3,), jnp.float32)}, "half is bfloat16[3] in the checkpoint, float32"),
        ({"extra": jnp.ones(())}, "extra is absent in the checkpoint, float32[] by the config"),
        ({"half": None}, "half is bfloat16[3] in the checkpoint, absent by the config"),
    ],
)
def test_restore_names_a_parameter_of_another_type_or_name(saved, change, words):
    with pytest.raises(CheckpointError) as error:
        Checkpointer(saved).restore(_like({**_state(), **change}))
    assert words in str(error.value) and "\n" not in str(error.value)
    assert Checkpointer(saved).steps() == [1, 2]


def test_restore_says_that_the_precision_is_another(saved):
    like = _like(_state())
    bias = like["params"]["bias"]
    long = jax.ShapeDtypeStruct(bias.shape, np.float64, sharding=_SHARDING)
    like["params"] = {**like["params"], "bias": long}
    with pytest.raises(CheckpointError) as raised:
        Checkpointer(saved).restore(like)
    words = "is of another precision, which JAX_ENABLE_X64 chooses: params/bias is float32[300] in"
    assert words in str(raised.value)


def test_restore_refuses_the_checkpoints_of_another_program(copy):
    shutil.rmtree(copy / "2" / "host")
    (copy / "2" / "manifest.json").unlink()
    with pytest.raises(CheckpointError, match="not a checkpoint of this program"):
        Checkpointer(copy).restore(_like(_state()))


def test_wait_reports_a_save_that_failed_in_the_background(tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    checkpointer = Checkpointer(tmp_path)
    _save(checkpointer, 1)
    checkpointer.wait()
    monkeypatch.setattr(manifest, "write_manifest", fail)
    _save(checkpointer, 2)
    with pytest.raises(CheckpointError, match="step 2 .* could not be saved.*No space") as error:
        checkpointer.close()
    assert "\n" not in str(error.value)
    assert Checkpointer(tmp_path).restore(_like(_state())).step == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_save_raises_one_line_in_a_directory_that_cannot_be_written(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(CheckpointError, match="could not be saved"):
        _save(Checkpointer(tmp_path), 1)


def test_save_raises_one_line_where_a_file_is_in_the_way(tmp_path):
    (tmp_path / "checkpoints").write_text("not a directory")
    with pytest.raises(CheckpointError, match="step 1 .* could not be saved"):
        _save(Checkpointer(tmp_path / "checkpoints"), 1)


def test_the_longest_stall_is_neither_the_first_nor_the_last():
    cost = SaveCost()
    for seconds in (0.01, 0.04, 0.02, 0.01):
        cost.add(seconds)
    assert cost.describe(0.8) == {
        "saves": 4, "stall_ms": 20.0, "longest_stall_ms": 40.0, "share_of_time": 0.1,
    }  # fmt: skip


def test_nothing_saved_costs_nothing():
    assert SaveCost().describe(0.0) == {
        "saves": 0, "stall_ms": 0.0, "longest_stall_ms": 0.0, "share_of_time": 0.0,
    }  # fmt: skip
