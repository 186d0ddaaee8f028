"""Assembled networks, found by the name of their config; they know no data set."""

import importlib
import pkgutil
from typing import Any

from attention_jax.types import Model


def model_names() -> list[str]:
    """Lists the models: the modules of this package."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def find_config(name: str) -> type:
    """Returns a model's config dataclass; raises `KeyError` with the list of names if none."""
    if name not in model_names():
        raise KeyError(model_names())
    return importlib.import_module(f"{__name__}.{name}").Config


def build_model(config: Any, source_vocabulary_size: int, target_vocabulary_size: int) -> Model:
    """Builds the model that `config.name` names.

    Args:
      config: The model's own config dataclass.
      source_vocabulary_size: How many source ids there are, special ones included.
      target_vocabulary_size: How many target ids there are, special ones included.

    Raises:
      ConfigError: If parts of the config do not fit one another.
    """
    module = importlib.import_module(f"{__name__}.{config.name}")
    return module.build(config, source_vocabulary_size, target_vocabulary_size)
