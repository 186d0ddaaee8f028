"""Sources: what a model reads, each by an input and an encoder of its own, under a name.

A plain translation has one, called `source`. Its parameters are `encoder` and `source_embedding`;
those of another source NAME are `encoder_NAME`, and `NAME_embedding` or what else its input has.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from attention_jax.configuration import NamedConfigs, setting
from attention_jax.discovery import build_part
from attention_jax.layers.encoder import ENCODERS, Encoded, SequenceEncoder
from attention_jax.layers.input import INPUTS, Embedded, Input, InputSizes
from attention_jax.ops.spans import any_in_spans
from attention_jax.types import Array, Batch, Call, Params, Slots

MAIN = "source"  # the only one of a plain translation
INPUT = "input"  # below the encoder's name, the path of the embedded positions
_ENCODER = "encoder"
_TAKEN = ("target", "output")  # names of other parameters begin with them


def source_read_by(encoder_name: str) -> str:
    """Returns the name of the source that an encoder reads; see `Source.encoder_name`."""
    return encoder_name.removeprefix(_ENCODER).removeprefix("_") or MAIN


@dataclasses.dataclass(frozen=True)
class SourceConfig:
    """Source config: how a source is read.

    Attributes:
      input: What its fields are turned into vectors by; see `layers/inputs`.
      encoder: What reads the vectors; see `layers/encoders`.
    """

    input: Any = setting({"name": "tokens"}, named=INPUTS.config, unnamed="tokens")
    encoder: Any = setting({"name": "recurrent"}, named=ENCODERS.config, unnamed="recurrent")


def one_source() -> NamedConfigs:
    """Returns the sources of a plain translation, as they are by default."""
    return NamedConfigs({MAIN: SourceConfig()})


def checked_sources(configs: Mapping[str, SourceConfig]) -> NamedConfigs:
    """Orders the configs of sources: `source` first, then the others by the alphabet.

    Raises:
      ValueError: If there is none, or a name does not serve.
    """
    if not configs:
        raise ValueError("sources: expected at least one, such as 'source', found none")
    for name in configs:
        if not name.isidentifier() or name in _TAKEN:
            raise ValueError(
                f"sources.{name}: expected a name of letters, digits and underscores other than "
                f"{' and '.join(map(repr, _TAKEN))}, found {name!r}"
            )
    # A decoder starts from the first: it must not depend on the order in which a config has them.
    ordered = sorted(configs, key=lambda name: (name != MAIN, name))
    return NamedConfigs({name: configs[name] for name in ordered})


@dataclasses.dataclass(frozen=True)
class Source:
    """Source: pure functions from the fields of a batch to an encoded source.

    Attributes:
      name: What it is called.
      input: From a batch's fields to vectors.
      encoder: From vectors to a memory.
    """

    name: str
    input: Input
    encoder: SequenceEncoder

    @classmethod
    def build(cls, config: SourceConfig, sizes: InputSizes, attention: Any) -> "Source":
        """Builds the source of the name in `sizes`; `attention` is the model's mechanism.

        Raises:
          ValueError: If parts of the config do not fit.
        """
        reading = build_part(config.input, Input, sizes)
        encoder = build_part(config.encoder, SequenceEncoder, reading.depth, attention)
        return cls(sizes.name, reading, encoder)

    @property
    def encoder_name(self) -> str:
        """What the encoder's parameters are called."""
        return _ENCODER if self.name == MAIN else f"{_ENCODER}_{self.name}"

    @property
    def tables(self) -> dict[str, Any]:
        """The input's parameters, by the names that they have in the model."""
        return {f"{self.name}_{key}": tree for key, tree in self.input.parameters.items()}

    @property
    def slot_vocabulary_size(self) -> int | None:
        """How many ids a slot of the memory may have; None where slots are no single symbols."""
        return self.input.vocabulary_size if self.encoder.keeps_positions else None

    def embed(self, tables: Params, batch: Batch, call: Call = Call()) -> Embedded:
        """Embeds a batch's fields; `tables` and `batch` are as `encode` has them."""
        params = {key: tables[f"{self.name}_{key}"] for key in self.input.parameters}
        # A tied input has no parameters of its own.
        params = params or {"embedding": tables["target_embedding"]}
        return self.input.embed(params, batch, call)

    def encode(
        self,
        tables: Params,
        read: Callable[[Array, Array, Call], Encoded],
        batch: Batch,
        call: Call = Call(),
    ) -> tuple[Encoded, Slots]:
        """Encodes a batch: embeds its fields, and reads the vectors with the encoder.

        Args:
          tables: What is declared of `tables`; `target_embedding` is used where it is tied.
          read: The encoder with its parameters.
          batch: What the input reads is among the fields.
          call: Mode and key, and what may stand in place of the vectors, as `input`.

        Returns:
          The encoded source, and what its slots stand for.

        Raises:
          ValueError: If the encoder gives slots without saying what they stand for.
        """
        embedded = self.embed(tables, batch, call.fold(0))
        vectors = call.embedded.get(INPUT, embedded.vectors)
        encoded = read(vectors, embedded.mask, call.fold(1))
        if not self.encoder.keeps_positions:
            if encoded.spans is None:
                raise ValueError(
                    f"{type(self.encoder).__name__}: expected spans of an encoder whose slots are "
                    "not the positions that it reads, found none"
                )
            # A slot is a word if it stands for any: a pair of a word and EOS has to be attended to.
            is_word = any_in_spans(embedded.is_word, encoded.spans) & encoded.mask
            return encoded, Slots(encoded.mask, is_word, encoded.spans)
        encoded = dataclasses.replace(encoded, aux={**encoded.aux, **embedded.aux})
        return encoded, Slots(encoded.mask, embedded.is_word)
