"""Runs that were never trained, for tests of what evaluation says of a run."""

import dataclasses
import functools
from pathlib import Path

import jax
import numpy as np

from attention_jax.data.builders.parallel import Config as ParallelConfig
from attention_jax.data.config import SubwordsConfig
from attention_jax.data.loading import TaskData, build_task
from attention_jax.devices import build_strategy
from attention_jax.devices.placement import placed_shapes
from attention_jax.models import build_model
from attention_jax.objectives.supervised_alignment import Term
from attention_jax.runs.config import ExperimentConfig, to_plain
from attention_jax.runs.load import TrainedRun
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.updates.optimizers import build_optimizer
from attention_jax.updates.state import start_state
from tests.parameters import drawn
from tests.training.tiny import tiny_config

WORDS = {"the": "die", "cat": "Katze", "dog": "Hund", "sees": "sieht", "a": "eine", "tree": "Baum"}


def write_text(folder: Path, number: int = 24, seed: int = 0) -> tuple[str, str]:
    """Writes parallel files whose words are translated one by one, and returns their paths."""
    draw = np.random.default_rng(seed)
    sources = [" ".join(draw.choice(list(WORDS), draw.integers(2, 6))) + "." for _ in range(number)]
    targets = [
        " ".join(WORDS[word] for word in text.removesuffix(".").split()) + "." for text in sources
    ]
    paths = folder / "text.en", folder / "text.de"
    for path, texts in zip(paths, (sources, targets), strict=True):
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return str(paths[0]), str(paths[1])


def untrained_run(
    folder: Path, source: str, target: str, *, kind: str = "words", num_heads: int = 1
) -> tuple[TrainedRun, TaskData]:
    """Returns a run, which evaluates all of the text that it would train on, and its task."""
    files = {
        f"{split}_{side}": path
        for split in ("train", "validation", "test")
        for side, path in (("source", source), ("target", target))
    }
    size = 40 if kind == "bpe" else 8000
    subwords = SubwordsConfig(kind=kind, size=size)
    data = ParallelConfig(**files, subwords=subwords, eval_batch_size=32)
    config = tiny_config()
    attention = dataclasses.replace(config.model.attention, num_heads=num_heads)
    model_config = dataclasses.replace(config.model, attention=attention)
    config = dataclasses.replace(config, data=data, model=model_config)
    return untrained(config, folder)


def untrained(config: ExperimentConfig, folder: Path) -> tuple[TrainedRun, TaskData]:
    """Returns a run of a config in a new folder, with parameters at random, and its task."""
    directory = RunDirectory(folder)
    folder.mkdir()
    directory.write_config(to_plain(config))
    task = build_task(config.data, directory.vocabularies)
    vocabularies = task.source_vocabulary, task.target_vocabulary
    model = build_model(config.model, *(each.size for each in vocabularies))
    optimizer, strategy = build_optimizer(config.optimizer), build_strategy(config.sharding)
    averaging = config.training.averaging
    start = functools.partial(start_state, model, optimizer, averaging=averaging)
    like = placed_shapes(start, strategy, model.parameter_axes())
    shardings = jax.tree.map(lambda leaf: leaf.sharding, like)
    params = drawn(model, len(folder.name))
    run = TrainedRun(directory, config, *vocabularies, model, params, 0, strategy, shardings)
    return run, task


def taught(run: TrainedRun, step: str) -> TrainedRun:
    """Returns the run as if links had taught a step."""
    objectives = {**run.config.objectives, "supervised_alignment": Term(step=step)}
    return dataclasses.replace(run, config=dataclasses.replace(run.config, objectives=objectives))
