"""Further sources: texts beside the source of each example, such as the same in another language.

Each has a name, under which a batch holds its ids and the model reads them
(`model.sources.NAME`). All texts that are read share the source's vocabulary.
"""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from attention_jax.configuration import setting
from attention_jax.data.batch_plan import permutation
from attention_jax.data.config import Corpus, TranslationConfig
from attention_jax.data.examples import Examples, encoded
from attention_jax.data.field import SOURCE_AXIS, Field
from attention_jax.errors import DataError
from attention_jax.types import SpecialIds

_TAKEN = ("source", "target", "output", "index")  # names of other arrays, or beginnings of them
_SHUFFLING_KEY = 20_160_600


@dataclasses.dataclass(frozen=True, kw_only=True)
class SeveralSourcesConfig(TranslationConfig):
    """Config of a translation data set whose examples may have several sources.

    Further fields are those of `data.config.TranslationConfig`.

    Attributes:
      shuffled_sources: Names of further sources whose texts are dealt out to other examples of the
        split, by a fixed permutation: a control, for they tell nothing then.
    """

    shuffled_sources: tuple[str, ...] = setting(())

    def check_further_sources(self) -> None:
        """Checks names of sources; raises `ValueError` at the first that does not serve."""
        for name in self.further_sources:
            if not name.isidentifier() or name in _TAKEN:
                raise ValueError(
                    "data: expected names of further sources of letters, digits and underscores, "
                    f"other than {', '.join(_TAKEN)}, found {name!r}"
                )
        for name in self.shuffled_sources:
            if name not in self.further_sources:
                known = ", ".join(self.further_sources) or "none"
                raise ValueError(
                    f"shuffled_sources: expected names of further sources ({known}), found {name!r}"
                )

    def load(self) -> Corpus:
        """Returns the examples of every split; see `DataConfig.load`."""
        splits = super().load()
        if not self.shuffled_sources:
            return splits
        return {name: shuffled(examples, self.shuffled_sources)
                for name, examples in splits.items()}  # fmt: skip


def shuffled(examples: Sequence, names: Sequence[str]) -> list:
    """Deals what stands beside sources out to other examples, by a fixed permutation."""
    order = permutation(len(examples), _SHUFFLING_KEY)
    return [
        (source, references, {**others, **{name: examples[other][2][name] for name in names}})
        for (source, references, others), other in zip(examples, order, strict=True)
    ]


def text_source(name: str) -> Field:
    """Field of a further source: token ids, int32 `B S`, ending in EOS.

    It is as long as the sources of the batch, which is as long as the longest of them.
    """
    return Field(
        name=name, axes=(SOURCE_AXIS,), values=functools.partial(_ids, name),
        padding=SpecialIds.PAD, mask=f"{name}_mask", fingerprint=np.ndarray.tobytes,
        is_input=True, is_text=True,
    )  # fmt: skip


def _ids(name: str, examples: Examples) -> list[Int[np.ndarray, " _"]]:
    texts = examples.extras.get(name)
    if texts is None:
        raise DataError(f"source {name!r}: expected a text for each example, found none")
    return encoded(examples.source_vocabulary, texts)
