"""Training as a whole: what changes its numbers, what does not, and how it ends."""

import dataclasses
import json
import shutil
import signal
import sys
import time

import jax
import numpy as np
import pytest

from attention_jax.analysis.evaluate import Evaluation
from attention_jax.decoding.translate import Translator
from attention_jax.devices.background_compilation import BackgroundCompilation
from attention_jax.errors import ConfigError, DivergenceError, RunDirectoryError, UserError
from attention_jax.experiment import adopt_config, open_checkpoints, run_experiment
from attention_jax.objectives.coverage_penalty import Term as CoveragePenalty
from attention_jax.objectives.schedule import WeightSchedule
from attention_jax.plotting.curves import read_metrics
from attention_jax.runs.checkpoints.checkpoint import Checkpointer
from attention_jax.runs.load import load_run, task_of
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.training import loop
from attention_jax.training.assembly import assemble
from attention_jax.training.loop import train
from attention_jax.training.preemption import Preempted, Preemption
from attention_jax.training.reporting.profiling import ProfileSteps
from attention_jax.training.reporting.run_log import RunLog
from attention_jax.updates.plateau import Plateau
from tests.training.tiny import tiny_config

pytestmark = pytest.mark.early


def _facts(workdir) -> dict:
    return json.loads((workdir / "run.json").read_text())


def _host(workdir, step: int) -> dict:
    """What a checkpoint remembers beside the state."""
    return json.loads((workdir / f"checkpoints/{step}/host/metadata").read_text())


def _steps(workdir, split: str) -> list[int]:
    return [line["step"] for line in read_metrics(workdir / "metrics.jsonl")
            if line["split"] == split]  # fmt: skip


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory):
    """A run of 12 steps that validates at its end only."""
    workdir = tmp_path_factory.mktemp("plain") / "run"
    run_experiment(tiny_config(evaluate_every_steps=0, checkpoint_every_steps=0), workdir)
    return workdir


def test_intervals_do_not_change_the_parameters(plain_run, tmp_path):
    config = tiny_config(
        evaluate_every_steps=5, checkpoint_every_steps=4, log_every_steps=3, keep_latest=3,
        keep_best=2, writers=("tensorboard",),
    )  # fmt: skip
    run_experiment(config, tmp_path / "run")
    assert _facts(tmp_path / "run")["parameters"] == _facts(plain_run)["parameters"]
    assert _steps(tmp_path / "run", "train") == [3, 6, 9, 12]
    assert _steps(tmp_path / "run", "validation") == [5, 10, 12]
    assert _steps(plain_run, "train") == _steps(plain_run, "validation") == [12]
    assert any((tmp_path / "run" / "tensorboard").iterdir())
    assert _facts(tmp_path / "run")["writers"] == {"tensorboard": ""}
    steps = {int(path.name) for path in (tmp_path / "run" / "checkpoints").iterdir()}
    assert {8, 10, 12} <= steps and 4 not in steps


def test_metrics_say_what_time_and_memory_went_into(plain_run):
    line = next(line for line in read_metrics(plain_run / "metrics.jsonl")
                if line["split"] == "train")  # fmt: skip
    use = _facts(plain_run)["time_use"]
    assert line["seconds/compute"] > 0 and line["seconds/data"] > 0 and line["memory/host"] > 0
    assert line["seconds/evaluation"] == 0  # the one validation comes after the line
    assert all(use[part] > 0 for part in ("compute", "data", "save", "evaluation"))
    assert use["compute"] >= line["seconds/compute"]


def test_time_is_that_of_all_processes_of_a_run(plain_run, tmp_path):
    shutil.copytree(plain_run, tmp_path / "run")
    saved = _host(tmp_path / "run", 12)["time_use"]
    run_experiment(tiny_config(), tmp_path / "run")  # which finds nothing left to train
    after = _facts(tmp_path / "run")["time_use"]
    assert all(saved[part] > 0 for part in ("compute", "data", "evaluation"))
    assert all(after[part] >= seconds for part, seconds in saved.items())


def test_profiled_steps_leave_a_trace_and_the_same_parameters(plain_run, tmp_path):
    config = tiny_config(evaluate_every_steps=0, checkpoint_every_steps=0,
                         evaluation={"splits": ()})  # fmt: skip
    run_experiment(config, tmp_path / "run", ProfileSteps(2, 3))
    assert list((tmp_path / "run" / "profile").rglob("*.xplane.pb"))
    assert _facts(tmp_path / "run")["parameters"] == _facts(plain_run)["parameters"]


def test_profiled_steps_after_the_end_are_refused(tmp_path):
    with pytest.raises(UserError, match="--profile_steps: expected steps of this training, from 1"):
        run_experiment(tiny_config(), tmp_path / "run", ProfileSteps(12, 13))
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


def test_a_missing_package_is_said_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ConfigError, match="expected the package wandb to be installed"):
        run_experiment(tiny_config(writers=("wandb",)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_run_is_complete_after_its_end(plain_run, capsys):
    before = {path: path.stat().st_mtime_ns for path in plain_run.rglob("*") if path.is_file()}
    run_experiment(tiny_config(evaluate_every_steps=0, checkpoint_every_steps=0), plain_run)
    out = capsys.readouterr().out
    assert out.startswith(f"This run is complete: {plain_run}") and "bleu" in out
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_complete_run_can_be_made_longer(plain_run, tmp_path, capsys):
    workdir = shutil.copytree(plain_run, tmp_path / "run")
    config = tiny_config(evaluate_every_steps=0, checkpoint_every_steps=0, num_steps=16)
    run_experiment(config, workdir)
    assert "continuing after step 12" in capsys.readouterr().err
    assert _steps(workdir, "train") == [12, 16]
    assert json.loads((workdir / "results.json").read_text())["test"]["step"] == 16


def test_a_run_made_longer_in_pieces_is_the_run_made_at_once(tmp_path):
    schedule = Plateau(metric="loss/nll", mode="max")  # which falls: the rate is halved each time
    config = tiny_config(
        evaluate_every_steps=40, checkpoint_every_steps=0, evaluation={"splits": ()},
        patience=3, metric="loss/nll", mode="max", keep_latest=1,
    )  # fmt: skip
    config = dataclasses.replace(config, schedule=schedule)
    for name, ends in {"once": (120,), "pieces": (30, 50, 70, 90, 120)}.items():
        for end in ends:
            training = dataclasses.replace(config.training, num_steps=end)
            run_experiment(dataclasses.replace(config, training=training), tmp_path / name)
    found = []
    for name in ("once", "pieces"):
        with Checkpointer(tmp_path / name / "checkpoints", read_only=True) as checkpointer:
            parts = assemble(config, RunDirectory(tmp_path / name))
            newest = checkpointer.restore(parts.like)
        host = {k: v for k, v in newest.host.items() if k not in ("seconds", "time_use")}
        state = jax.tree.map(lambda leaf: np.asarray(leaf).tobytes(), newest.state)
        found.append((state, host, checkpointer.steps(), load_run(tmp_path / name).step))
    assert float(newest.state.plateau.scale) < 1.0
    assert found[0] == found[1]


def test_an_end_that_validates_best_is_evaluated_until_training_goes_on(tmp_path, capsys):
    settings = dict(evaluate_every_steps=4, checkpoint_every_steps=0, evaluation={"splits": ()})
    run_experiment(tiny_config(num_steps=6, **settings), tmp_path / "run")
    assert load_run(tmp_path / "run").step == 6 and "evaluated" not in capsys.readouterr().err
    run_experiment(tiny_config(num_steps=7, metric="nll", **settings), tmp_path / "run")
    assert "\nnotice: step 6, the best, was" in f"\n{capsys.readouterr().err}"
    with Checkpointer(tmp_path / "run" / "checkpoints", read_only=True) as checkpointer:
        assert checkpointer.steps() == [4, 7]


def _files(workdir) -> dict:
    return {name: (workdir / name).read_text() for name in ("config.json", "run.json")}


def test_a_complete_run_cannot_be_called_a_shorter_one(plain_run):
    before = _files(plain_run)
    config = tiny_config(evaluate_every_steps=0, checkpoint_every_steps=0, num_steps=8)
    with pytest.raises(ConfigError, match="num_steps: expected at least the 12 steps .*, found 8"):
        run_experiment(config, plain_run)
    assert json.loads(before["config.json"]) == json.loads(_files(plain_run)["config.json"])
    assert _facts(plain_run)["finished"]


def test_what_is_refused_leaves_a_complete_run_as_it_is(plain_run):
    config = tiny_config(evaluate_every_steps=0, checkpoint_every_steps=0, num_steps=16)
    before = _files(plain_run)["config.json"]
    with pytest.raises(UserError, match="--profile_steps: expected steps of this training"):
        run_experiment(config, plain_run, ProfileSteps(1, 100))
    assert _files(plain_run)["config.json"] == before and _facts(plain_run)["finished"]


def test_a_damaged_best_step_is_told(tmp_path, capsys):
    settings = dict(evaluate_every_steps=4, keep_latest=3, metric="loss/nll", mode="max")
    run_experiment(tiny_config(**settings), tmp_path / "run")  # which is the first one
    assert load_run(tmp_path / "run").step == 4
    capsys.readouterr()
    (tmp_path / "run" / "checkpoints" / "4" / "host" / "metadata").write_bytes(b"")
    assert load_run(tmp_path / "run").step == 12
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: the best step cannot be evaluated, step 12 is: checkpoint st")
    assert "step 4" in line and "damaged" in line


def test_a_run_that_was_killed_before_it_began_may_have_another_config(tmp_path):
    directory = RunDirectory(tmp_path / "run")
    with directory.claimed():
        adopt_config(directory, tiny_config(num_steps=3))
    directory.metrics.write_text("")
    directory.checkpoints.mkdir()
    (directory.path / ".config.0123456789abcdef.partial.json").write_text("{")
    with directory.claimed():
        assert not adopt_config(directory, tiny_config(num_steps=4))
    assert not (directory.path / ".config.0123456789abcdef.partial.json").exists()
    assert directory.read_config()["training"]["num_steps"] == 4


def test_a_schedule_that_watches_outputs_needs_them_as_they_were(tmp_path):
    directory = RunDirectory(tmp_path / "run")
    plateau = Plateau(metric="bleu", mode="max")
    config = dataclasses.replace(tiny_config(), schedule=plateau)
    directory.path.mkdir()
    adopt_config(directory, config)
    directory.metrics.write_text("{}")
    other = dataclasses.replace(config, search=dataclasses.replace(config.search, beam_size=3))
    with pytest.raises(RunDirectoryError, match="search.beam_size is"):
        adopt_config(directory, other)
    adopt_config(directory, config)


def test_run_refuses_another_config(plain_run):
    config = dataclasses.replace(tiny_config(evaluate_every_steps=0), seed=5)
    with pytest.raises(RunDirectoryError, match="seed is 0 there, 5 now"):
        run_experiment(config, plain_run)


def test_moving_average_is_validated_and_patience_ends_training(tmp_path):
    config = tiny_config(
        num_steps=500, evaluate_every_steps=2, patience=2, metric="loss/nll", mode="max",
    )  # fmt: skip
    start = time.monotonic()
    run_experiment(config, tmp_path / "run")
    whole = time.monotonic() - start
    steps = _steps(tmp_path / "run", "validation")
    assert len(steps) < 100
    host = _host(tmp_path / "run", steps[-1])
    assert host["stopped"] and host["waited"] == 2
    assert _steps(tmp_path / "run", "train") == steps[-1:]  # the window that was cut short
    (cut_short,) = [line for line in read_metrics(tmp_path / "run" / "metrics.jsonl")
                    if line["split"] == "train"]  # fmt: skip
    seconds = sum(cut_short[f"seconds/{part}"] for part in ("compute", "data"))
    assert seconds <= steps[-1] / cut_short["steps_per_second"] < whole
    run = load_run(tmp_path / "run")
    assert run.step == host["best_step"]
    assert json.loads((tmp_path / "run/results.json").read_text())["test"]["step"] == run.step


def test_validation_measures_the_moving_average(plain_run):
    run = load_run(plain_run)  # its parameters are the average
    parts = assemble(run.config, run.directory)
    with Checkpointer(plain_run / "checkpoints", read_only=True) as checkpointer:
        last = checkpointer.restore(parts.like).state.params
    written = read_metrics(plain_run / "metrics.jsonl")[-1]
    assert (written["split"], written["step"]) == ("validation", run.step)
    averaged, other = (parts.validation(params)["loss"] for params in (run.params, last))
    assert written["loss"] == pytest.approx(averaged, rel=1e-5)
    assert abs(other - averaged) > 1e-3 * averaged


AVERAGED = {
    "num_steps": 7, "checkpoint_every_steps": 3, "evaluate_every_steps": 0, "keep_latest": 3,
    "averaging": {"name": "checkpoints", "count": 3},
}  # fmt: skip


@pytest.fixture(scope="module")
def averaged(tmp_path_factory):
    """A run that was left alone, and is the average of its checkpoints 3, 6 and 7."""
    workdir = tmp_path_factory.mktemp("averaged") / "run"
    run_experiment(tiny_config(**AVERAGED), workdir)
    return load_run(workdir)


def assert_same_average(workdir, averaged):
    jax.tree.map(np.testing.assert_array_equal, load_run(workdir).params, averaged.params)


def test_average_of_checkpoints_is_what_is_evaluated(averaged):
    like = assemble(averaged.config, averaged.directory).like
    with Checkpointer(averaged.directory.checkpoints, read_only=True) as checkpointer:
        saved = [checkpointer.restore(like, step).state.params for step in (3, 6, 7)]
    jax.tree.map(
        lambda mean, *leaves: np.testing.assert_allclose(
            mean, np.mean(leaves, axis=0), rtol=1e-6, atol=1e-7
        ),
        averaged.params, *saved,
    )  # fmt: skip


class _StopAt(Preemption):
    """Tells a training to stop after a step, as a signal does."""

    def __init__(self, step: int):
        super().__init__()
        self._step = step

    def requested(self, step: int = 0) -> bool:
        """Returns whether the step is reached."""
        return step == self._step


@pytest.mark.parametrize(
    "place", [(loop, "assemble"), (RunLog, "dispatched")], ids=["alignment", "compilation"]
)
def test_a_signal_before_the_first_step_is_done_is_answered_at_once(tmp_path, monkeypatch, place):
    preemption, directory = Preemption(), RunDirectory(tmp_path)
    config = tiny_config(num_steps=2)
    done = []

    def told(*arguments, **keywords):
        preemption._handle(signal.SIGTERM, None)
        done.append("went on")

    monkeypatch.setattr(*place, told)
    with directory.claimed():
        adopt_config(directory, config)
        with open_checkpoints(directory, config) as checkpointer, pytest.raises(Preempted) as left:
            train(config, directory, checkpointer, preemption)
        assert left.value.code == 75 and not done and checkpointer.steps() == []


def test_average_of_checkpoints_does_not_depend_on_interruptions(tmp_path):
    config = tiny_config(
        num_steps=6, checkpoint_every_steps=2, evaluate_every_steps=0, log_every_steps=4,
        averaging={"name": "checkpoints", "count": 2},
    )  # fmt: skip
    run_experiment(config, tmp_path / "whole")
    directory = RunDirectory(tmp_path / "cut")
    for step in (3, 5):
        with pytest.raises(Preempted), directory.claimed():
            adopt_config(directory, config)
            with open_checkpoints(directory, config) as checkpointer:
                train(config, directory, checkpointer, _StopAt(step))
        assert Checkpointer(directory.checkpoints).steps()[-1] == step
    run_experiment(config, tmp_path / "cut")
    assert_same_average(tmp_path / "cut", load_run(tmp_path / "whole"))
    assert _steps(tmp_path / "cut", "train") == [4, 6]


def test_average_of_checkpoints_does_not_depend_on_an_earlier_end(averaged, tmp_path):
    run_experiment(tiny_config(**{**AVERAGED, "num_steps": 5}), tmp_path / "twice")
    run_experiment(tiny_config(**AVERAGED), tmp_path / "twice")
    assert Checkpointer(tmp_path / "twice" / "checkpoints").steps() == [3, 6, 7]
    assert_same_average(tmp_path / "twice", averaged)


def test_average_of_checkpoints_does_not_depend_on_which_validate_best(averaged, tmp_path):
    watched = {**AVERAGED, "evaluate_every_steps": 5, "metric": "loss/nll", "mode": "max"}
    run_experiment(tiny_config(**watched), tmp_path / "watched")
    assert Checkpointer(tmp_path / "watched" / "checkpoints").steps() == [3, 5, 6, 7]
    assert_same_average(tmp_path / "watched", averaged)


def test_damaged_checkpoint_has_no_part_in_the_average(tmp_path, capsys):
    config = tiny_config(
        num_steps=8, checkpoint_every_steps=2, evaluate_every_steps=0, keep_latest=4,
        averaging={"name": "checkpoints", "count": 3},
    )  # fmt: skip
    run_experiment(config, tmp_path / "run")
    checkpoints = tmp_path / "run" / "checkpoints"
    (checkpoints / "6" / "host" / "metadata").unlink()
    averaged = load_run(tmp_path / "run")
    assert "checkpoint step 6" in capsys.readouterr().err
    like = assemble(averaged.config, averaged.directory).like
    reader = Checkpointer(checkpoints, read_only=True)
    good = [reader.restore(like, step).state.params for step in (8, 4, 2)]
    jax.tree.map(
        lambda mean, *leaves: np.testing.assert_allclose(
            mean, np.mean(leaves, axis=0), rtol=1e-6, atol=1e-7
        ),
        averaged.params, *good,
    )  # fmt: skip


def test_a_run_that_diverges_stops_and_saves_nothing_that_is_not_finite(tmp_path):
    often = tiny_config(learning_rate=1e38, checkpoint_every_steps=3, max_consecutive_nonfinite=5)
    with pytest.raises(DivergenceError, match="stopped at step 3: validation: .*no checkpoint is"):
        run_experiment(often, tmp_path / "often")
    assert not any((tmp_path / "often").glob("checkpoints/*"))
    seldom = tiny_config(learning_rate=1e38, checkpoint_every_steps=0, max_consecutive_nonfinite=5)
    with pytest.raises(DivergenceError, match="stopped at step 6: .*5 times in a row.*checkpoint"):
        run_experiment(seldom, tmp_path / "seldom")
    end = tiny_config(num_steps=3, learning_rate=1e38, checkpoint_every_steps=0)
    for _ in range(2):  # the same command again finds the same
        with pytest.raises(DivergenceError, match="training stopped at step 3: validation: "):
            run_experiment(end, tmp_path / "end")
    assert not (tmp_path / "end" / "results.json").exists()
    for line in (tmp_path / "end" / "metrics.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)


def test_a_run_that_diverges_late_names_its_last_good_checkpoint(tmp_path, monkeypatch):
    def assemble_and_spoil(*arguments, **keywords):
        parts = assemble(*arguments, **keywords)

        def spoilt(state, batch, rng):
            late = int(state.step) >= 6
            state, metrics = parts.train_step(state, batch, rng)
            average = jax.tree.map(lambda leaf: leaf * 1e38 if late else leaf, state.average)
            return dataclasses.replace(state, average=average), metrics

        return dataclasses.replace(parts, train_step=spoilt)

    monkeypatch.setattr("attention_jax.training.loop.assemble", assemble_and_spoil)
    config = tiny_config(checkpoint_every_steps=2, keep_latest=1, evaluate_every_steps=0)
    with pytest.raises(DivergenceError, match="at step 8: .*step 6 is the last good checkpoint"):
        run_experiment(config, tmp_path / "run")
    assert load_run(tmp_path / "run").step == 6
    assert not _facts(tmp_path / "run")["finished"]


def test_what_was_saved_unseen_is_neither_evaluated_nor_translated_with(tmp_path):
    config = tiny_config(learning_rate=1e38)  # finite, but too large for sums
    directory = RunDirectory(tmp_path / "run")
    with pytest.raises(Preempted), directory.claimed():
        adopt_config(directory, config)
        with open_checkpoints(directory, config) as checkpointer:
            train(config, directory, checkpointer, _StopAt(2))
    for method in ("beam", "greedy", "sample"):
        with pytest.raises(DivergenceError, match=f"checkpoint step 2 of {directory.path}: "):
            run = load_run(directory.path, {"method": method})
            Translator(run).translate(["one two"])
    with pytest.raises(DivergenceError, match=f"checkpoint step 2 of {directory.path}: "):
        run = load_run(directory.path)
        Evaluation(run, task_of(run)).evaluate("test")
    assert not directory.results.exists() and not directory.predictions("test").exists()


def test_unknown_metric_is_refused_before_training(tmp_path):
    with pytest.raises(ConfigError, match="config.training.metric: expected one of loss"):
        run_experiment(tiny_config(metric="blue"), tmp_path / "run")


def test_no_step_is_best_before_an_objective_is_switched_on(tmp_path, capsys):
    late = CoveragePenalty(weight=50.0, schedule=WeightSchedule(start_steps=4))
    config = tiny_config(num_steps=10, evaluate_every_steps=2, metric="loss/nll", mode="max")
    config = dataclasses.replace(config, objectives={**config.objectives, "coverage_penalty": late})
    # By `mode` the first steps are the best, with the least training.
    run_experiment(config, tmp_path / "run")
    assert load_run(tmp_path / "run").step == 6
    assert "\nbest loss/nll at step 6, which is evaluated\n" in capsys.readouterr().err
    said = [line for line in read_metrics(tmp_path / "run/metrics.jsonl")
            if line["split"] == "validation"]  # fmt: skip
    assert [line["step"] for line in said] == [2, 4, 6, 8, 10]


def test_the_worst_of_a_metric_is_not_kept(tmp_path):
    with pytest.raises(ConfigError, match="config.training.mode: expected 'max' for 'accuracy'"):
        run_experiment(tiny_config(metric="accuracy"), tmp_path / "run")
    config = dataclasses.replace(tiny_config(), schedule=Plateau(metric="accuracy"))
    with pytest.raises(ConfigError, match="config.schedule.mode: expected 'max' for 'accuracy'"):
        run_experiment(config, tmp_path / "run")


def test_train_step_compiles_once_for_each_bucket(tmp_path):
    config = tiny_config()
    data = dataclasses.replace(config.data, num_buckets=2, max_train_examples=512)
    config = dataclasses.replace(config, data=data)
    parts = assemble(config, RunDirectory(tmp_path / "run"))
    state = parts.start(jax.random.key(0))
    for _ in range(2 * parts.batches.batches_per_epoch):
        batch = parts.strategy.place(next(parts.batches))
        state, _ = parts.train_step(state, batch, jax.random.key(1))
    assert parts.train_step._cache_size() == len(parts.batches.buckets) > 1


def test_numbers_do_not_depend_on_when_the_update_is_compiled(tmp_path, monkeypatch):
    config = tiny_config(num_steps=8, log_every_steps=8, evaluation={"splits": ()})
    shapes = {"num_buckets": 2, "gradual_shapes": False}  # both in these few steps
    data = dataclasses.replace(config.data, **shapes, max_train_examples=512)
    config = dataclasses.replace(config, data=data)
    steps = []

    def remembered(*arguments, **keywords):
        parts = assemble(*arguments, **keywords)
        steps.append(parts.train_step)
        return parts

    monkeypatch.setattr(loop, "assemble", remembered)
    run_experiment(config, tmp_path / "ahead")
    monkeypatch.setattr(
        loop, "_compiling", lambda parts, *_: BackgroundCompilation(parts.train_step, None, [])
    )
    run_experiment(config, tmp_path / "called")
    assert [step._cache_size() for step in steps] == [0, 2]
    ahead, called = (_facts(tmp_path / name)["parameters"] for name in ("ahead", "called"))
    assert ahead == called


def test_validation_decodes_a_sample_where_asked(tmp_path):
    config = tiny_config(
        num_steps=2, metric="bleu", mode="max", evaluation={"splits": (),
        "num_validation_examples": 8},
    )  # fmt: skip
    run_experiment(config, tmp_path / "run")
    line = read_metrics(tmp_path / "run" / "metrics.jsonl")[-1]
    assert line["split"] == "validation" and {"bleu", "chrf", "nll"} <= set(line)
