"""Texts beside pictures: what data sets share whose source is a text with a picture beside it."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.data.captions import BESIDE, Pixels
from attention_jax.data.config import Corpus, DataConfig
from attention_jax.data.further_sources import shuffled


@dataclasses.dataclass(frozen=True, kw_only=True)
class SeenTextConfig(Pixels, DataConfig):
    """What every data set of texts beside pictures has.

    A model reads pictures if it has a source called `picture`; one without reads the texts alone.
    Further fields are those of `data.captions.Pixels`.

    Attributes:
      shuffled_pictures: Whether pictures are dealt out to other examples of the split, by a fixed
        permutation: a control, for they tell nothing then.
      bleu_tokenizer: How BLEU splits outputs into words; see `TranslationConfig`.
    """

    task: ClassVar[str] = "translate_seen"
    shuffled_pictures: bool = setting(False)
    bleu_tokenizer: str = setting("13a", choices=("13a", "intl", "zh", "char"))

    @property
    def source_sizes(self) -> Mapping[str, Mapping[str, int]]:  # type: ignore[override]
        """The picture stands beside the source."""
        return {BESIDE.name: self.picture_sizes}

    def with_pictures(self) -> Corpus:
        """Returns the examples of every split, each with its own picture.

        Raises:
          DataError: If they cannot be obtained.
        """
        raise NotImplementedError

    def load(self) -> Corpus:
        """Returns the examples of every split; see `DataConfig.load`."""
        splits = self.with_pictures()
        if not self.shuffled_pictures:
            return splits
        return {name: shuffled(examples, (BESIDE.name,)) for name, examples in splits.items()}
