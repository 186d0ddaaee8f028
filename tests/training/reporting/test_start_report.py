"""What a training says before its first step: what takes long, and what may surprise."""

import dataclasses
import re

import pytest

from attention_jax.data.builders.parallel import Config as ParallelConfig
from attention_jax.data.captions import PICTURE
from attention_jax.data.config import SubwordsConfig
from attention_jax.data.field import TARGET
from attention_jax.devices.memory_per_device import sharding_line
from attention_jax.objectives import build_objective
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.training.assembly import assemble
from attention_jax.training.reporting.start_report import start_lines
from attention_jax.updates.schedules import lookup
from tests.training.tiny import tiny_config

_SHARDING = {
    "strategy": "jit",
    "device": "cpu",
    "mesh": {"data": 1, "fsdp": 1, "tensor": 1},
    "parameter_bytes": 396,
    "parameter_bytes_per_device": 396,
    "optimizer_bytes": 792,
    "optimizer_bytes_per_device": 792,
}


@pytest.fixture
def lines(tmp_path):
    """The lines that a tiny training says after `step` of its updates."""

    def said(*, step=0, schedule=None, num_buckets=1, objectives=None, mesh=None, **training):
        config = tiny_config(log_every_steps=5, **training)
        if objectives is not None:
            config = dataclasses.replace(config, objectives=build_objective(objectives).terms)
        if schedule is not None:
            name = schedule.pop("name")
            config = dataclasses.replace(config, schedule=lookup(name)(**schedule))
        data = dataclasses.replace(
            config.data, num_buckets=num_buckets, max_train_examples=64 if num_buckets == 1 else 512
        )
        parts = assemble(dataclasses.replace(config, data=data), RunDirectory(tmp_path / "run"))
        shapes = [(b.rows, b.source_length, b.target_length) for b in parts.batches.buckets]
        facts = _SHARDING | ({} if mesh is None else {"mesh": mesh})
        found = start_lines(parts, 99, facts, step=step, seconds=61.0, settings=config.training)
        first, sharding, *rest = found
        assert sharding == sharding_line(facts)
        return [first, *rest], shapes

    return said


def test_opening_says_what_is_compiled(lines):
    found, shapes = lines(num_buckets=3)
    assert found[0].startswith("512 training examples, ") and len(found) == 2 < len(shapes)
    shapes.sort(key=lambda shape: (shape[2], shape[1]))
    first, last = (" x ".join(map(str, shape)) for shape in (shapes[0], shapes[-1]))
    assert found[1] == (
        f"compiling the update for {len(shapes)} batch shapes, {first} to {last} "
        "(examples x source x target tokens); step 5 is shown next"
    )
    assert "for 1 batch shape, 16 x " in lines()[0][1]


@pytest.mark.parametrize(
    ("mesh", "accumulate_steps", "computed"),
    [((1, 1), 1, None), ((4, 4), 1, None), ((4, 3), 1, 24), ((32, 2), 1, 64), ((4, 1), 6, 24)],
)
def test_opening_notes_batches_that_are_filled_up(lines, mesh, accumulate_steps, computed):
    sizes = dict(zip(("data", "fsdp"), mesh, strict=True)) | {"tensor": 2}
    found, shapes = lines(mesh=sizes, accumulate_steps=accumulate_steps)
    assert shapes[0][0] == 16
    parts = mesh[0] * mesh[1] * accumulate_steps
    notice = (
        f"notice: batches of 16 examples are filled up to {computed} rows, which {parts} parts "
        f"share; config.data.batch_size is best a multiple of {parts}"
    )
    assert found[1:-1] == ([notice] if computed else [])


def test_opening_counts_no_vocabulary_of_pictures(tmp_path):
    parts = assemble(tiny_config(), RunDirectory(tmp_path / "run"))
    seen = dataclasses.replace(parts.task.task, fields=(PICTURE, TARGET))
    pictures = dataclasses.replace(parts, task=dataclasses.replace(parts.task, task=seen))
    for given, sizes in ((parts, "vocabularies of 14 and 14 "), (pictures, "a vocabulary of 14 ")):
        first = next(
            start_lines(given, 99, _SHARDING, step=0, seconds=0.0, settings=tiny_config().training)
        )
        assert f"{sizes}tokens, 99 parameters" in first


def test_opening_says_which_pairs_are_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    usable = [f"number {each}\tNummer {each}" for each in range(40)]
    bad = ["nothing\t", "\tnichts", f"{'x' * 20_000}\tx"]
    table = tmp_path / "text.tsv"
    table.write_text("\n".join([*usable, *bad, f"{'long ' * 90}\tlang"]) + "\n")
    data = ParallelConfig(
        train_table=str(table), validation_table=str(tmp_path / "other.tsv"),
        test_table=str(tmp_path / "other.tsv"), batch_size=16,
        subwords=SubwordsConfig(kind="words"),
    )  # fmt: skip
    (tmp_path / "other.tsv").write_text("number 1\tNummer 1\n")
    config = dataclasses.replace(tiny_config(), data=data)
    for name in ("first", "with prepared text"):
        parts = assemble(config, RunDirectory(tmp_path / name))
        first, _, *notices, small, _ = start_lines(
            parts, 99, _SHARDING, step=0, seconds=0.0, settings=config.training
        )
        assert small.startswith("warning: the examples of the validation (1) are fewer than ")
        assert first.startswith("40 training examples, ")
        assert notices == [
            "notice: left out 3 pairs of the training text with an empty side or one of more than "
            "10,000 characters",
            "notice: left out 1 of 41 training pairs with more tokens than "
            "config.data.max_source_length or max_target_length",
        ]


def _notices(folder, pairs, subwords=SubwordsConfig(kind="words"), **search):
    """The notices of the opening of a training on these pairs of words."""
    table = folder / "text.tsv"
    table.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    tables = {f"{split}_table": str(table) for split in ("train", "validation", "test")}
    data = ParallelConfig(**tables, batch_size=16, subwords=subwords)
    config = dataclasses.replace(tiny_config(), data=data)
    config = dataclasses.replace(config, search=dataclasses.replace(config.search, **search))
    parts = assemble(config, RunDirectory(folder / "run"))
    found = start_lines(parts, 99, _SHARDING, step=0, seconds=0.0, settings=config.training)
    return [line for line in found if line.startswith("notice: ")]


@pytest.mark.parametrize(("kind", "is_noted"), [("bpe", True), ("characters", False)])
def test_opening_notes_targets_of_a_few_subwords(tmp_path, monkeypatch, kind, is_noted):
    """Sentences between whose words there are no spaces become a subword or two."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    clauses = ["猫が好きです", "犬が好きです", "雨が降った", "山に登った"]
    pairs = [(f"a{number % 7} b", clauses[number % 4]) for number in range(40)]
    found = _notices(tmp_path, pairs, subwords=SubwordsConfig(kind=kind, size=60))
    assert [("a mean target has" in line and "=characters" in line) for line in found] == (
        [True] if is_noted else []
    )


def test_opening_says_which_training_targets_no_search_finds(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pairs = [(f"{'a ' * 9}{number}", f"b{number}") for number in range(20)]
    pairs += [(f"c{number}", f"{'d ' * 20}{number}") for number in range(5)]
    (short, raised) = _notices(tmp_path, pairs, min_length_ratio=0.5)
    assert short == (
        "notice: 20 of 25 training targets are too short for config.search.min_length_ratio (0.5) "
        "and min_length_constant (0), "
        "so that outputs like them are never found; choose less, 0 for no limit"
    )
    assert raised == (
        "notice: as training targets are, outputs may be long: config.search.max_length_factor "
        "(2) and max_length_constant (18)"
    )
    (long,) = _notices(tmp_path, pairs, max_length_factor=1.0, max_length_constant=19)
    assert long == (
        "notice: 5 of 25 training targets are too long for config.search.max_length_factor (1) and "
        "max_length_constant (19), so that outputs like them are never found; by default they "
        "follow the training targets"
    )
    assert not _notices(tmp_path, pairs, max_length_factor=1.0, max_length_constant=20)


@pytest.mark.parametrize(("step", "shown"), [(0, 5), (4, 5), (5, 10), (11, 12)])
def test_opening_says_which_step_is_shown_next(lines, step, shown):
    assert lines(step=step)[0][-1].endswith(f"; step {shown} is shown next")


def test_opening_says_where_a_run_goes_on_and_that_nothing_is_left(lines):
    assert lines(step=12)[0][1:] == ["continuing after step 12 (1m 01s so far)"]
    assert lines(step=3)[0][1] == "continuing after step 3 (1m 01s so far)"


@pytest.mark.parametrize(
    ("schedule", "notice"),
    [
        ({"name": "constant", "warmup_steps": 6}, None),
        ({"name": "constant", "warmup_steps": 7}, "for 7 of 12 steps; .*lower .*warmup_steps"),
        ({"name": "warmup_cosine", "warmup_epochs": 2.0}, "8 of 12 steps; .*lower .*warmup_epochs"),
        ({"name": "noam"}, "rises for 4,000 of 12 steps; .*lower config.schedule.warmup_steps"),
        ({"name": "luong5"}, None),
    ],
)
def test_opening_notes_a_warmup_of_most_of_the_training(lines, schedule, notice):
    found = [line for line in lines(schedule=dict(schedule))[0] if line.startswith("notice: ")]
    assert len(found) == (notice is not None)
    if notice:
        assert re.search(notice, found[0])


def test_opening_notes_a_length_without_effect(lines):
    assert "notice" not in str(lines(num_epochs=3.0)[0])  # 4 steps each, as many as num_steps
    assert lines(num_epochs=2.0)[0][1] == (
        "notice: training ends with config.training.num_epochs, after 8 steps; its num_steps would "
        "be 12"
    )
    assert "ends with config.training.num_steps, after 12 " in lines(num_epochs=9.0)[0][1]


@pytest.mark.parametrize(
    ("count", "every", "saved"), [(3, 5, None), (3, 4, None), (4, 5, 3), (2, 0, 1), (1, 0, None)]
)
def test_opening_notes_fewer_checkpoints_than_are_averaged(lines, count, every, saved):
    found = lines(
        averaging={"name": "checkpoints", "count": count}, keep_latest=4,
        checkpoint_every_steps=every,
    )[0]  # fmt: skip
    notices = [line for line in found if line.startswith("notice: ")]
    assert len(notices) == (saved is not None)
    if saved:
        assert f"count is {count}, but checkpoint_every_steps ({every}) saves {saved}" in notices[0]


@pytest.mark.parametrize("start", [11, 12])
def test_opening_notes_what_begins_after_the_end(lines, start):
    found, _ = lines(
        objectives={"nll": {}, "coverage_penalty": {"schedule": {"start_steps": start}}},
        freezing={"parameters": ("vector",), "start_steps": start + 1},
    )
    notices = [line for line in found if line.startswith("notice: ")]
    assert [words in str(notices) for words in ("coverage_penalty.schedule", "freezing")] == [
        start == 12, True,
    ]  # fmt: skip
    assert notices[-1] == (
        f"notice: config.training.freezing.start_steps is {start + 1}, but training ends after 12 "
        "steps, so that it never begins"
    )
