"""Penn Treebank text in Mikolov's preparation: a million words, for language models."""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.data.config import Corpus
from attention_jax.data.running_text import RunningTextConfig, without_sources


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(RunningTextConfig):
    """Newspaper text with 10,000 words and `<unk>`, numbers as `N`, without punctuation.

    Further fields are those of `data.running_text.RunningTextConfig`.
    """

    name: str = setting("ptb", choices=("ptb",))

    def load(self) -> Corpus:
        lines = {
            name: [text for example in split for text in example[1]]
            for name, split in super().load().items()
        }
        return without_sources({name: self.texts(split) for name, split in lines.items()})
