"""Start-up times: commands and caches of the contenders, and the page of a record."""

import json
import sys

import pytest

from attention_jax.commands.cli import load_config
from attention_jax.configuration import typed
from attention_jax.models import MODELS
from attention_jax.runs.config import from_config_dict
from experiments.benchmarks.speed import benchmark, startup, startup_config, startup_plans
from experiments.benchmarks.speed.harness import Measurement
from experiments.benchmarks.speed.project_model import model_fields


@pytest.fixture
def setting(tmp_path):
    interpreters = dict.fromkeys(("project", "torch", "joeynmt"), sys.executable)
    return benchmark.Setting(interpreters, tmp_path, threads=2, keep_memory=False)


@pytest.fixture
def made(setting):
    return {workload.name: workload for workload in startup.make_workloads(setting)}


def plan(setting, workload, place, tmp_path):
    """The plan of a side, and the process that it times."""
    made = startup_plans.plan_of(workload.sides[place], setting, tmp_path / "kept")
    return made, made.start(tmp_path)


def result(workload, setting, measured, failures=()):
    return benchmark.result_of(workload, setting, measured, dict(failures))


def measurement(seconds, **facts):
    ready = {"units": {"starts": 1}, "version": "jax 1", **facts}
    return Measurement([seconds] * 3, [0.0] * 3, 1, ready, 1.0, 100.0)


@pytest.mark.parametrize("name", startup_config.MODELS)
def test_the_config_is_that_of_the_comparison(name, tmp_path, made, repository):
    path = repository / "experiments/benchmarks/speed/startup_config.py"
    config = load_config(f"{path}:{name}")
    for side in ("source", "target"):
        config.data[f"train_{side}"] = str(tmp_path / f"inputs/startup.{side}")
    found = from_config_dict(config)
    fields = model_fields(startup_config.MODELS[name])
    assert found.model == typed(MODELS.config("encoder_decoder"), fields, "config.model")
    assert found.training.num_steps == startup_plans.STEPS
    assert found.data.batch_size == startup.BATCH


def test_the_text_has_the_lengths_that_are_told(made, tmp_path):
    lines = (tmp_path / "inputs/startup.source").read_text().splitlines()
    assert len(lines) == startup.LINES
    assert {len(line.split()) for line in lines} == {startup.LENGTH}


def test_caches_are_filled_before_or_empty(setting, made, tmp_path):
    filled, start = plan(setting, made["rnn"], 0, tmp_path)
    assert len(filled.before) == 1
    assert start.environment["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path / "kept/xla")
    assert start.until == "step 3/3" and "launch.train" in start.command
    empty, start = plan(setting, made["rnn"], 1, tmp_path)
    assert not empty.before
    assert start.environment["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path / "xla")


def test_byte_code_is_compiled_before_or_not(setting, made, tmp_path):
    filled, start = plan(setting, made["translate"], 0, tmp_path)
    assert len(filled.before) == 2 and not start.until
    assert start.environment["PYTHONPYCACHEPREFIX"] == str(tmp_path / "kept/bytecode")
    assert len(start.said.split()) == startup.LENGTH
    _, start = plan(setting, made["translate"], 1, tmp_path)
    assert start.environment["PYTHONPYCACHEPREFIX"] == str(tmp_path / "bytecode")
    assert start.environment["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path / "kept/xla")


def test_peers_train_the_same_model_on_the_same_text(setting, made, tmp_path):
    _, start = plan(setting, made["rnn"], 2, tmp_path)
    task = json.loads(start.command[-1])
    assert task["sizes"]["hidden"] == 512 and not task["compiled"] and task["threads"] == 2
    assert task["source"] == str(tmp_path / "inputs/startup.source")
    _, start = plan(setting, made["rnn"], 5, tmp_path)
    config = json.loads((tmp_path / "joeynmt.yaml").read_text())
    assert config["data"]["train"] == str(tmp_path / "inputs/startup")
    assert config["model"]["decoder"]["hidden_size"] == 512
    assert start.until == "Step:        3,"


def test_a_first_run_tells_what_compiling_took():
    lines = ["compiling", "the update is compiled for all 16 batch shapes: 38s of waiting", "bye"]
    metrics = [
        {"step": 5, "split": "train", "seconds/compilation": 20.0},
        {"step": 5, "split": "validation", "nll": 1.0},
        {"step": 9, "split": "train", "seconds/compilation": 18.5},
    ]
    found = startup_plans.facts_of_first_run(lines, metrics)
    assert found == {"shapes": 16, "steps": 9, "waited_seconds": 38.5}


def test_page_has_seconds_ratios_and_what_compiling_took(setting, made):
    rnn, first = made["rnn"], made["first_rnn"]
    names = [side.name for side in rnn.sides]
    measured = {names[0]: measurement(2.0), names[1]: measurement(5.0)}
    facts = {"shapes": 16, "steps": 40, "waited_seconds": 38.5}
    results = {
        "rnn": [result(rnn, setting, measured, [("PyTorch", "no package torch is installed")])],
        "first_rnn": [result(first, setting, {"attention_jax": measurement(90.0, **facts)})],
    }
    text = startup.page(results)
    assert f"| {names[0]} | 2.00 (2.00–2.00) | 1 | 100 | 0.00 |" in text
    assert f"| {names[1]} | 5.00 (5.00–5.00) | 2.50 (2.50–2.50) | 100 | 0.00 |" in text
    assert "| PyTorch | not measured: no package torch is installed |  |  |  |" in text
    assert "| attention_jax | 90.00 (90.00–90.00) | 38.5 | 16 | 40 | 100 | 0.00 |" in text
    assert "freed memory as the system has it" in text and "jax 1" in text


def test_a_peer_that_is_not_installed_is_left_out(setting, made, monkeypatch):
    asked = {}

    def measure(plans, conditions, environment, log):
        asked.update(plans)
        return {name: measurement(1.0) for name in plans}, {}

    monkeypatch.setattr(startup, "version_of", lambda name, python: {"project": "1"}.get(name))
    monkeypatch.setattr(startup, "measure_starts", measure)
    found = startup.run_starts(made["translate"], setting, log=lambda line: None)
    assert list(asked) == ["attention_jax", "attention_jax, no byte-code"]
    assert found["failures"] == {"JoeyNMT": "no package joeynmt is installed"}


def test_caches_have_paths_that_a_compiler_can_be_given(setting, made, monkeypatch):
    """torch.compile writes its cache's path unquoted into the command of the C++ compiler."""
    started = {}

    def measure(plans, conditions, environment, log):
        started.update({name: plan.start(setting.workdir) for name, plan in plans.items()})
        return {name: measurement(1.0) for name in plans}, {}

    monkeypatch.setattr(startup, "version_of", lambda name, python: "1")
    monkeypatch.setattr(startup, "measure_starts", measure)
    startup.run_starts(made["rnn"], setting, log=lambda line: None)
    paths = {start.environment["TORCHINDUCTOR_CACHE_DIR"] for start in started.values()}
    assert "torch.compile, filled cache" in started
    assert not any(set(path) & set(" ,") for path in paths)
