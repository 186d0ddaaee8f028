"""Numerical regression test of whole configs: trains and searches a little, and keeps every number.

After a redesign that must not change results, the same cases are run again and compared with the
earlier record, bit for bit.
"""

import dataclasses
import hashlib
import importlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from absl import flags

from attention_jax.commands import cli
from attention_jax.data.examples import Inputs
from attention_jax.decoding.searcher import Searcher
from attention_jax.devices import fetch
from attention_jax.errors import UserError
from attention_jax.paths import expanded
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.search import SearchConfig
from attention_jax.training.assembly import assemble

USAGE = """
Numerical regression test of whole configs: trains each for a few steps, searches ten sentences, and
records or compares every number.

usage: python -m experiments.benchmarks.regression --out=FILE.npz [--against=FILE.npz]
         [--only=CASE,CASE] [--steps=N]

  --out      where losses, gradient norms, parameters, outputs and weights are written
  --against  an earlier record, which this one is compared with; another number is exit code 1
  --only     some of the cases only
  --steps    training steps of each case (20)

Configs on real data, at small size, are tried where ATTENTION_JAX_DATA names their files.
"""
_SENTENCES = 10
_SMALL = {
    "data.max_train_examples": 2000,
    "data.batch_size": 16,
    "data.num_buckets": 2,
    "data.subwords.size": 500,
}
# Small sizes by the last name of a field; those that a config has are set.
_SIZES = {
    "embedding_dim": 32,
    "target_embedding_dim": 32,
    "hidden_dim": 48,
    "attention_dim": 40,
    "attentional_dim": 48,
    "readout_dim": 32,
}
_REAL = {
    "quickstart": None,
    "bahdanau2015": "multi30k",
    "luong2015": "multi30k",
    "gnmt2016": "multi30k",
    "vaswani2017": "multi30k",
    "cohn2016_symmetric": "multi30k",
    "mi2016": "multi30k",
    "transformer_lm": "multi30k",
}
_HELPERS = ("__init__", "common")


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, when it runs and not when it is imported."""
    flags.DEFINE_string("out", None, "The record.")
    flags.DEFINE_string("against", None, "An earlier record.")
    flags.DEFINE_list("only", [], "Names of cases.")
    flags.DEFINE_integer("steps", 20, "Training steps.", lower_bound=1)
    return argv


def main() -> int:
    """Records every case, and compares it with an earlier record if there is one."""
    out, known = expanded(cli.require("out")), cases()
    only = cli.value("only") or list(known)
    unknown = sorted(set(only) - set(known))
    if unknown:
        raise UserError(f"--only: expected some of {', '.join(known)}, found {unknown[0]!r}")
    before = _read(cli.value("against"))
    arrays: dict[str, np.ndarray] = {}
    for name in only:
        arrays |= {f"{name}/{key}": value for key, value in record(known[name]).items()}
        print(f"{name}: loss {arrays[f'{name}/loss'][-1]:.6f}", flush=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(out, **arrays)
    if before is None:
        return 0
    found = list(differences(before, arrays))
    print(*found or [f"{len(arrays)} arrays: equal to the bit"], sep="\n")
    return 1 if found else 0


def cases() -> dict[str, Any]:
    """Returns the configs to run, by name: the smoke form of each, and some on real data."""
    found = {}
    folder = Path(importlib.import_module("configs").__file__).parent
    for name in sorted(path.stem for path in folder.glob("*.py")):
        if name not in _HELPERS:
            found[f"{name}:smoke"] = importlib.import_module(f"configs.{name}").get_config("smoke")
    for name, argument in _REAL.items():
        config = importlib.import_module(f"configs.{name}").get_config(argument)
        _shrink(config)
        found[f"{name}:{argument or 'default'}"] = config
    return found


def _shrink(config: Any) -> None:
    """Makes a config small in place: few pairs, narrow layers, the same parts."""
    for path, value in _SMALL.items():
        *groups, field = path.split(".")
        group = config
        for each in groups:
            group = group.get(each, {})
        # Most configs leave the size of their sample to its default.
        if field in group or field == "max_train_examples":
            # ConfigDicts are locked against new fields, and most configs do not set this one.
            with group.unlocked():
                group[field] = value

    def narrow(group: Any) -> None:
        for field, value in group.items():
            if field in _SIZES:
                group[field] = _SIZES[field]
            elif hasattr(value, "items"):
                narrow(value)

    narrow(config.model)
    if config.model.attention.get("name") == "multi_head" and "head_dim" in config.model.attention:
        config.model.attention.head_dim = 8


def record(config: Any) -> dict[str, np.ndarray]:
    """Trains and searches a case.

    Returns:
      `loss` and `gradient_norm` of each step; `parameters`, a hash that does not depend on names;
      `tokens`, `scores` and `weights` of the best hypotheses of ten sentences, end to end.
    """
    steps = flags.FLAGS.steps
    with config.unlocked():
        config.training["num_steps"] = steps
        if "num_epochs" in config.training:
            del config.training["num_epochs"]
    experiment = from_config_dict(config)
    # Untrained models write up to the length limit, and a few tokens tell as much.
    search = dataclasses.replace(experiment.search, max_length_factor=1.0, max_length_constant=2)
    with tempfile.TemporaryDirectory() as path:
        parts = assemble(experiment, RunDirectory(path))
        init_rng, step_rng = jax.random.split(jax.random.key(experiment.seed))
        state, losses, norms = parts.start(init_rng), [], []
        for _ in range(steps):
            batch = parts.strategy.place(next(parts.batches), experiment.training.accumulate_steps)
            state, metrics = parts.train_step(state, batch, step_rng)
            values = parts.objective.summary(jax.device_get(metrics))
            losses.append(values["loss"])
            norms.append(values["gradient_norm"])
        params = fetch(state.params)
        found = {
            "loss": np.array(losses),
            "gradient_norm": np.array(norms),
            "parameters": _hash(params),
        }
        return {**found, **_searched(parts, experiment, search, params)}


def _searched(
    parts: Any, experiment: Any, search: SearchConfig, params: Any
) -> dict[str, np.ndarray]:
    split = parts.task.split("validation").sample(_SENTENCES)
    if experiment.task.continues:  # its sources are prompts here, whatever they mean
        fields = experiment.task.input_fields
        split = Inputs(split.sources, split.source_vocabulary, fields)
    decoder = Searcher(_model(experiment, parts.task), search, seed=experiment.seed)
    best = [found[0] for found in decoder(params, split, experiment.data)]
    return {
        "tokens": np.concatenate([each.tokens for each in best]),
        "scores": np.array([each.score for each in best]),
        "weights": np.concatenate([each.weights.ravel() for each in best]),
    }


def _model(experiment: Any, task: Any) -> Any:
    from attention_jax.models import build_model

    sizes = task.source_vocabulary.size, task.target_vocabulary.size
    return build_model(experiment.model, *sizes)


def _hash(params: Any) -> np.ndarray:
    """Hashes all leaves, sorted by their own hashes, so that renaming changes nothing."""
    leaves = sorted(hashlib.sha256(leaf.tobytes()).digest() for leaf in jax.tree.leaves(params))
    return np.frombuffer(hashlib.sha256(b"".join(leaves)).digest(), np.uint8)


def _read(path: str | None) -> Mapping[str, np.ndarray] | None:
    if path is None:
        return None
    try:
        with np.load(path) as file:
            return dict(file)
    except (OSError, ValueError) as error:
        raise UserError(f"--against: expected a record, found {error}") from None


def differences(
    before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]
) -> Iterator[str]:
    """Yields a line for every array that differs from its record, with the largest difference."""
    for name, new in after.items():
        old = before.get(name)
        if old is None:
            yield f"{name}: not in the earlier record"
        elif old.shape != new.shape:
            yield f"{name}: shape {old.shape} before, {new.shape} now"
        elif not np.array_equal(old, new, equal_nan=True):
            if name.endswith(("parameters", "tokens")):
                yield f"{name}: differs"
            else:
                gap = np.max(np.abs(old - new) / np.maximum(np.abs(old), 1e-3))
                yield f"{name}: differs by up to {gap:.1e} of its value"


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
