"""imported: no examples at all; what a model was trained on elsewhere is not known.

The section is that of a run whose parameters another program has learnt: it says how texts become
tokens and how outputs are judged.
"""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.data.config import Corpus, TranslationConfig
from attention_jax.errors import DataError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(TranslationConfig):
    """Data of an imported run, whose fields are those of `data.config.TranslationConfig`."""

    name: str = setting("imported", choices=("imported",))

    def load(self) -> Corpus:
        raise DataError(
            "config.data.name: expected data with examples, found 'imported', of a model that was "
            "trained elsewhere: to evaluate it, --source= and --target= name texts; to train it "
            "further, see docs/weights.md"
        )
