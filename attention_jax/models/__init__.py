"""Assembled networks, found by the name of their config; they know no data set."""

from typing import Any

from attention_jax.discovery import Parts, module_of
from attention_jax.types import Model

MODELS = Parts(__name__, former={"rnn_seq2seq": "encoder_decoder"})


def build_model(config: Any, source_vocabulary_size: int, target_vocabulary_size: int) -> Model:
    """Builds the model that `config.name` names.

    Args:
      config: The model's own config dataclass.
      source_vocabulary_size: How many source ids there are, special ones included.
      target_vocabulary_size: How many target ids there are, special ones included.

    Raises:
      ConfigError: If parts of the config do not fit one another.
    """
    return module_of(config).build(config, source_vocabulary_size, target_vocabulary_size)
