import dataclasses
import hashlib
import json

import numpy as np
import pytest

from attention_jax.data.builders.smoke import Config as SmokeConfig
from attention_jax.data.examples import Inputs
from attention_jax.data.loading import build_task
from attention_jax.data.pipeline import make_eval_batches, make_train_iterator
from attention_jax.errors import DataError
from attention_jax.types import SpecialIds

CONFIG = SmokeConfig(batch_size=24, num_buckets=4, eval_batch_size=24)
TOKENS = dataclasses.replace(CONFIG, batch_unit="tokens", batch_size=256, batch_multiple=8)
# Of two epochs with TOKENS and seed 11, by whether shapes are gradual.
STREAMS = {False: "252d34cfccc2defe", True: "0e60afdd915eeef3"}


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return build_task(CONFIG, tmp_path_factory.mktemp("vocab"))


def _take(iterator, count):
    return [next(iterator) for _ in range(count)]


def _assert_same(batch, other):
    assert set(batch) == set(other)
    for name in batch:
        np.testing.assert_array_equal(batch[name], other[name], err_msg=name)


def _joined(batches):
    """The global batch of the batches that each of several processes sees."""
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def test_batch_holds_the_examples_it_names(task):
    split = task.split("train")
    for batch in _take(make_train_iterator(task, CONFIG, 0), 20):
        for row, index in enumerate(batch["index"]):
            for side, ids in (("source", split.source_ids), ("target", split.target_ids)):
                expected = ids[index] if index >= 0 else np.zeros(0)
                padding = batch[side].shape[1] - len(expected)
                np.testing.assert_array_equal(
                    batch[side][row], np.pad(expected, (0, padding)).astype(np.int32)
                )
                np.testing.assert_array_equal(
                    batch[f"{side}_mask"][row], np.arange(batch[side].shape[1]) < len(expected)
                )
        assert batch["source"].dtype == batch["index"].dtype == np.int32
        assert batch["source_mask"].dtype == bool


def test_ids_end_in_eos(task):
    batch = next(make_train_iterator(task, CONFIG, 0))
    for side in ("source", "target"):
        lengths = batch[f"{side}_mask"].sum(axis=1)
        rows = np.flatnonzero(lengths)
        assert (batch[side][rows, lengths[rows] - 1] == SpecialIds.EOS).all()
        assert (batch[side][:, 0] != SpecialIds.BOS).all()


@pytest.mark.parametrize("config", [CONFIG, TOKENS], ids=["sentences", "tokens"])
@pytest.mark.parametrize("process_count", [2, 4])
def test_order_is_the_same_on_any_number_of_processes(task, config, process_count):
    alone = make_train_iterator(task, config, 3)
    together = [
        make_train_iterator(task, config, 3, process, process_count)
        for process in range(process_count)
    ]
    for _ in range(alone.batches_per_epoch + 5):
        _assert_same(next(alone), _joined([next(iterator) for iterator in together]))


@pytest.mark.parametrize("config", [CONFIG, TOKENS], ids=["sentences", "tokens"])
def test_every_example_comes_once_an_epoch(task, config):
    iterator = make_train_iterator(task, config, 0)
    for epoch in range(2):
        assert iterator.epoch == epoch
        batches = _take(iterator, iterator.batches_per_epoch)
        indices = np.concatenate([batch["index"] for batch in batches])
        np.testing.assert_array_equal(
            np.sort(indices[indices >= 0]), np.arange(len(task.split("train")))
        )


@pytest.mark.parametrize("position", [0, 1, 17, 93, 200])
def test_restore_continues_exactly_on_other_processes(task, position):
    iterator = make_train_iterator(task, CONFIG, 7)
    _take(iterator, position)
    state = json.loads(json.dumps(iterator.state()))
    following = _take(iterator, 12)
    resumed = [make_train_iterator(task, CONFIG, 7, process, 2) for process in range(2)]
    for other in resumed:
        _take(other, 3)
        other.restore(state)
        assert other.state() == state
    for batch in following:
        _assert_same(batch, _joined([next(other) for other in resumed]))


def test_state_counts_what_was_handed_out(task):
    iterator = make_train_iterator(task, CONFIG, 0)
    assert iterator.state() == {"epoch": 0, "batch": 0}
    _take(iterator, iterator.batches_per_epoch + 2)
    assert iterator.state() == {"epoch": 1, "batch": 2}


@pytest.mark.parametrize("state", [{"epoch": 0, "batch": 10**6}, {"epoch": -1, "batch": 0}])
def test_restore_rejects_positions_that_do_not_exist(task, state):
    with pytest.raises(DataError, match="data position: expected a batch below"):
        make_train_iterator(task, CONFIG, 0).restore(state)


def test_seed_decides_the_order(task):
    first, same, other = (next(make_train_iterator(task, CONFIG, seed)) for seed in (1, 1, 2))
    _assert_same(first, same)
    assert not np.array_equal(first["index"], other["index"])


def test_shapes_are_few_and_fixed(task):
    for count in (1, 4):
        config = dataclasses.replace(CONFIG, num_buckets=count)
        iterator = make_train_iterator(task, config, 0)
        batches = _take(iterator, 2 * iterator.batches_per_epoch)
        shapes = {(*batch["source"].shape, batch["target"].shape[1]) for batch in batches}
        assert len(shapes) == len(iterator.buckets) == count


@pytest.mark.parametrize("position", [0, 17])
def test_one_of_each_shape_comes_as_training_meets_them(task, position):
    iterator, same = (make_train_iterator(task, CONFIG, 5) for _ in range(2))
    for each in (iterator, same):
        _take(each, position)
    first = {}
    for batch in _take(same, same.batches_per_epoch):
        first.setdefault((batch["source"].shape, batch["target"].shape), batch)
    found = list(iterator.one_of_each_shape(10**6))
    assert len(found) == len(first) == CONFIG.num_buckets
    for batch, expected in zip(found, first.values(), strict=True):
        _assert_same(batch, expected)
    # Not those that a short training never meets; and nothing has been handed out.
    assert len(list(iterator.one_of_each_shape(1))) == 1 and not [*iterator.one_of_each_shape(0)]
    assert iterator.state()["batch"] == position


def test_batch_size_in_tokens_counts_target_positions(task):
    iterator = make_train_iterator(task, TOKENS, 0)
    for batch in _take(iterator, 50):
        rows, length = batch["target"].shape
        assert rows % TOKENS.batch_multiple == 0
        assert rows * length <= TOKENS.batch_size < (rows + TOKENS.batch_multiple) * length


def test_long_examples_are_dropped_in_training_only(task):
    config = dataclasses.replace(CONFIG, max_source_length=6)
    iterator = make_train_iterator(task, config, 0)
    lengths = np.array([len(ids) for ids in task.split("train").source_ids])
    assert iterator.dropped == (lengths > 6).sum() > 0
    batches = _take(iterator, iterator.batches_per_epoch)
    indices = np.concatenate([batch["index"] for batch in batches])
    np.testing.assert_array_equal(np.sort(indices[indices >= 0]), np.flatnonzero(lengths <= 6))
    longest = max(
        batch["source"].shape[1] for batch in make_eval_batches(task.split("test"), config)
    )
    assert longest >= 9

    targets = dataclasses.replace(CONFIG, max_target_length=5)
    lengths = np.array([len(ids) for ids in task.split("train").target_ids])
    assert make_train_iterator(task, targets, 0).dropped == (lengths > 5).sum() > 0


def test_nothing_short_enough_is_an_error(task):
    config = dataclasses.replace(CONFIG, max_source_length=2)
    with pytest.raises(DataError, match="expected training pairs of at most 2 and 64 tokens"):
        make_train_iterator(task, config, 0)


@pytest.mark.parametrize(("process_count", "multiple", "rows"), [(5, 1, 25), (2, 8, 32)])
def test_rows_that_cannot_be_shared_are_filled_up_at_the_end(task, process_count, multiple, rows):
    alone = make_train_iterator(task, CONFIG, 0)
    together = [
        make_train_iterator(task, CONFIG, 0, process, process_count, rows_multiple=multiple)
        for process in range(process_count)
    ]
    batches = [next(iterator) for iterator in together]
    assert {len(batch["index"]) for batch in batches} == {rows // process_count}
    joined = _joined(batches)
    _assert_same(next(alone), {name: array[:24] for name, array in joined.items()})
    assert (joined["index"][24:] == -1).all() and not joined["source_mask"][24:].any()
    parts = [make_eval_batches(task.split("test"), CONFIG, process, 5) for process in range(5)]
    assert {len(batch["index"]) for part in parts for batch in part} == {5}


@pytest.mark.parametrize("process_count", [1, 2, 4])
@pytest.mark.parametrize("gradual", STREAMS)
def test_stream_of_examples_is_the_same_on_any_number_of_processes(task, process_count, gradual):
    config = dataclasses.replace(TOKENS, gradual_shapes=gradual)
    iterators = [
        make_train_iterator(task, config, 11, process, process_count)
        for process in range(process_count)
    ]
    digest = hashlib.sha256()
    for _ in range(2 * iterators[0].batches_per_epoch):
        indices = _joined([next(iterator) for iterator in iterators])["index"]
        digest.update(indices.astype("<i4").tobytes())
    assert digest.hexdigest()[:16] == STREAMS[gradual]


def test_only_the_first_epoch_has_gradual_shapes(task):
    gradual, free = (
        make_train_iterator(task, dataclasses.replace(CONFIG, gradual_shapes=choice), 0)
        for choice in (True, False)
    )
    size = gradual.batches_per_epoch
    first, other = ([batch["index"] for batch in _take(each, size)] for each in (gradual, free))
    assert not all(map(np.array_equal, first, other))
    assert {tuple(index) for index in first} == {tuple(index) for index in other}
    for batch, same in zip(_take(gradual, size), _take(free, size), strict=True):
        _assert_same(batch, same)


@pytest.mark.parametrize("process_count", [1, 2])
def test_eval_batches_hold_every_example_once(task, process_count):
    split = task.split("validation")
    parts = [
        make_eval_batches(split, CONFIG, process, process_count) for process in range(process_count)
    ]
    assert len({len(part) for part in parts}) == 1
    for _ in range(2):  # again from the start
        batches = [_joined(batch) for batch in zip(*parts, strict=True)]
        assert len(batches) == len(parts[0])
        assert all(len(batch["index"]) == CONFIG.eval_batch_size for batch in batches)
        indices = np.concatenate([batch["index"] for batch in batches])
        np.testing.assert_array_equal(np.sort(indices[indices >= 0]), np.arange(len(split)))
    empty = batches[-1]["index"] < 0
    assert not batches[-1]["source_mask"][empty].any()


def test_eval_batches_take_sources_without_targets(task):
    inputs = Inputs(["12", "", "987654321"], task.source_vocabulary)
    [batch] = make_eval_batches(inputs, CONFIG)
    assert set(batch) == {"source", "source_mask", "index"}
    lengths = batch["source_mask"].sum(axis=1)
    order = np.argsort(batch["index"])[-3:]
    np.testing.assert_array_equal(lengths[order], [3, 1, 10])
