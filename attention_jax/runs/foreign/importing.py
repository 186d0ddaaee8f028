"""Import of a foreign model: a folder of another program becomes a run that is ready to be used."""

import dataclasses
import functools
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np

from attention_jax.data.text.storage import save_vocabularies
from attention_jax.discovery import Parts
from attention_jax.errors import RunDirectoryError, UserError
from attention_jax.models import build_model
from attention_jax.objectives import Objective
from attention_jax.runs import provenance
from attention_jax.runs.checkpoints.checkpoint import Checkpointer
from attention_jax.runs.checkpoints.run_identity import origin
from attention_jax.runs.checkpoints.weights import named_leaves
from attention_jax.runs.config import ExperimentConfig, from_config_dict, to_plain
from attention_jax.runs.foreign.folder import Folder
from attention_jax.runs.foreign.model import ForeignModel
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.types import Model, Params
from attention_jax.updates.optimizers import build_optimizer
from attention_jax.updates.state import TrainState, start_state

FAMILIES = Parts("attention_jax.runs.foreign.families", defines="read")


def read_foreign(path: str | Path) -> ForeignModel:
    """Reads a model of any family.

    Raises:
      UserError: If the folder holds no whole model, or one of another architecture.
    """
    folder = Folder(path)
    name = folder.json("config.json", {"model_type": str})["model_type"]
    if name not in FAMILIES:
        raise UserError(
            f"{folder.path / 'config.json'}: model_type: expected one of "
            f"{', '.join(FAMILIES.names())}, found {name!r}"
        )
    return FAMILIES.find(name).read(folder)


def import_model(path: str | Path, workdir: str | Path) -> RunDirectory:
    """Writes a run whose parameters are those of a foreign model.

    All is read and checked before anything is written. The checkpoint is of step 0, and the run
    counts as complete: there is nothing that it was trained on.

    Args:
      path: The folder.
      workdir: The run's directory, which must not hold anything yet.

    Raises:
      UserError: If the folder holds no whole model, or the directory cannot be written.
    """
    foreign, directory = read_foreign(path), RunDirectory(workdir)
    config = from_config_dict(_config(foreign, directory))
    model = build_model(config.model, foreign.source.size, foreign.target.size)
    state = _state(config, model, foreign.params)
    with directory.claimed():
        if directory.config.exists():
            raise RunDirectoryError(f"{directory.path}: expected a new directory, found a run")
        try:
            _write(directory, config, foreign, state, path)
        except UserError:
            # Without it, the rest is what a training that never began leaves, and is removed.
            shutil.rmtree(directory.checkpoints, ignore_errors=True)
            raise
    return directory


def _write(
    directory: RunDirectory,
    config: ExperimentConfig,
    foreign: ForeignModel,
    state: TrainState,
    path: str | Path,
) -> None:
    directory.write_config(to_plain(config))
    save_vocabularies(directory.vocabularies, foreign.source, foreign.target)
    directory.add_to_run(
        **provenance.describe_run(seed=config.seed),
        started=[provenance.now()], imported_from=str(Path(path).absolute()),
    )  # fmt: skip
    with Checkpointer(directory.checkpoints) as checkpointer:
        checkpointer.save(0, state, data={}, config=origin(config, directory), host={})
    directory.add_to_run(finished=provenance.now())


def _config(foreign: ForeignModel, directory: RunDirectory) -> dict[str, Any]:
    """Returns the config of the run, which also is what a further training begins from."""
    is_joint = foreign.source is foreign.target
    return {
        "data": {
            "name": "imported",
            "subwords": {"kind": foreign.source.kind, "joint": is_joint},
            # For a training that names this config and other data.
            "vocabularies": str(directory.vocabularies),
        },
        "model": foreign.model,
        # Without moments, which would make the checkpoint three times as large.
        "optimizer": {"name": "sgd"},
        "training": {"num_steps": 1},
        "search": foreign.search,
        "evaluation": {"splits": ()},
    }


def _state(config: ExperimentConfig, model: Model, params: Params) -> TrainState:
    """Returns the train state before the first step, with given parameters."""
    start = functools.partial(
        start_state, model, build_optimizer(config.optimizer), averaging=config.training.averaging,
        carried=Objective(config.objectives).start(),
    )  # fmt: skip
    key = jax.random.key(config.seed)
    like = jax.eval_shape(start, key).params
    _check(named_leaves(params), named_leaves(like))
    typed = jax.tree.map(lambda leaf, known: np.asarray(leaf, known.dtype), params, like)
    # Compiled without the parameters that it would draw.
    rest = jax.jit(lambda key: dataclasses.replace(start(key), params={}))(key)
    return dataclasses.replace(rest, params=jax.tree.map(jax.numpy.asarray, typed))


def _check(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Raises `UserError` if a family has not made what its own config asks for."""
    shapes = [{name: leaf.shape for name, leaf in tree.items()} for tree in (found, expected)]
    if shapes[0] != shapes[1]:
        one, other = (dict(sorted(tree.items() - rest.items())) for tree, rest in
                      (shapes, reversed(shapes)))  # fmt: skip
        raise UserError(f"config.json: expected parameters {other}, found {one}")
