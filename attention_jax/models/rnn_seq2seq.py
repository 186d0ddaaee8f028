"""The recurrent encoder-decoder: `encoder_decoder` under the name of its recurrent configs."""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.models import encoder_decoder

build = encoder_decoder.build


@dataclasses.dataclass(frozen=True)
class Config(encoder_decoder.Config):
    """An encoder-decoder whose parts are recurrent unless chosen otherwise.

    Attributes:
      name: The model.
    """

    name: str = setting("rnn_seq2seq")
