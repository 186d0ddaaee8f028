"""Recurrent language model: stacked cells that go on from a prompt.

As with the Transformer's (`models/language_model.py`), the sources of a task's batches are ignored.
Every text begins with a state of zeros.
"""

import dataclasses
from typing import Any, ClassVar

from attention_jax.configuration import setting
from attention_jax.discovery import build_part
from attention_jax.errors import at_field
from attention_jax.layers.cell_decoder import CellDecoder
from attention_jax.layers.cell_stack import CellStack
from attention_jax.layers.parameters import Initialization
from attention_jax.layers.readout import READOUTS, Readout, ReadoutSizes
from attention_jax.models.language_model import LanguageModel
from attention_jax.ops.recurrent import CELLS


@dataclasses.dataclass(frozen=True)
class Config:
    """A recurrent language model.

    Attributes:
      name: The model.
      embedding_dim: Depth of an embedded word.
      cell: Of which it is made.
      hidden_dim: Depth of the state.
      num_layers: How many layers are stacked.
      embedding_dropout: Share of each embedded word that is dropped.
      dropout: Share of a layer's input that is dropped, from the second layer on, the same at all
        steps.
      recurrent_dropout: Share of the hidden state that is dropped, the same at all steps.
      output_dropout: Share of the features that is dropped before the vocabulary.
      tie_embeddings: Whether the embedding is the output matrix, too.
      initialization: How parameters start.
      readout: What the features are turned into predictions by; see `layers/readouts`.
      dtype: Of activations; parameters, softmax and losses are float32 always. With
        `JAX_ENABLE_X64=1`, whatever is float32 otherwise is float64.
    """

    task: ClassVar[str] = "continue"
    name: str = setting("recurrent_language_model")
    embedding_dim: int = setting(128, at_least=1)
    cell: str = setting("lstm", choices=CELLS)
    hidden_dim: int = setting(256, at_least=1)
    num_layers: int = setting(1, at_least=1)
    embedding_dropout: float = setting(0.0, at_least=0.0, below=1.0)
    dropout: float = setting(0.0, at_least=0.0, below=1.0)
    recurrent_dropout: float = setting(0.0, at_least=0.0, below=1.0)
    output_dropout: float = setting(0.0, at_least=0.0, below=1.0)
    tie_embeddings: bool = setting(False)
    initialization: Initialization = dataclasses.field(default_factory=Initialization)
    readout: Any = setting({"name": "softmax"}, named=READOUTS.config)
    dtype: str = setting("float32", choices=("float32", "bfloat16"))

    def __post_init__(self) -> None:
        """Rejects fields that would change nothing."""
        if self.num_layers == 1 and self.dropout:
            raise ValueError("dropout: expected more than one layer beside it, found one")
        if self.initialization.forget_bias and self.cell != "lstm":
            raise ValueError(
                f"initialization.forget_bias: expected only with cell 'lstm', found {self.cell!r}"
            )


def build(
    config: Config, source_vocabulary_size: int, target_vocabulary_size: int
) -> LanguageModel:
    """Builds the model; raises `ConfigError` if parts of the config do not fit."""
    stack = CellStack(
        config.cell, config.embedding_dim, config.hidden_dim, config.num_layers,
        dropout=config.dropout, recurrent_dropout=config.recurrent_dropout,
    )  # fmt: skip
    sizes = ReadoutSizes(
        target_vocabulary_size, config.hidden_dim, config.embedding_dim,
        is_tied=config.tie_embeddings,
    )  # fmt: skip
    try:
        readout = build_part(config.readout, Readout, sizes)
    except ValueError as error:
        raise at_field("config.model", error) from None
    decoder = CellDecoder(stack, config.embedding_dropout)
    return LanguageModel(config, target_vocabulary_size, decoder, readout)
