"""Supervised attention: a model that links of its data teach, and its first batch."""

import jax.numpy as jnp

from attention_jax.data.loading import build_task
from attention_jax.data.pipeline import make_train_iterator
from attention_jax.models import build_model
from attention_jax.objectives import Objective
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.training.needed_fields import with_needed_fields


def supervised_config(data, model):
    """Returns the config whose attention learns from links, where a symbol has any."""
    objectives = {"nll": {}, "supervised_alignment": {"unaligned": "ignore"}}
    training = {"num_steps": 1}
    values = {"data": data, "model": model, "objectives": objectives, "training": training}
    return from_config_dict(values)


def first_batch(config, folder):
    """Builds what a config describes, with the fields that its objectives need.

    Returns:
      (the data, the model, the first batch, the same as arrays of JAX).
    """
    task = build_task(config.data, folder / "vocab")
    objective, directory = Objective(config.objectives), RunDirectory(folder / "run")
    task = with_needed_fields(task, config.data, objective, directory)
    batch = next(iter(make_train_iterator(task, config.data, 0)))
    model = build_model(config.model, task.source_vocabulary.size, task.target_vocabulary.size)
    return task, model, batch, {name: jnp.asarray(array) for name, array in batch.items()}
