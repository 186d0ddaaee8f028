"""emoji_names: names of emoji in one language and in another, beside their pictures."""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.data.builders import emoji
from attention_jax.data.captions import BESIDE
from attention_jax.data.config import Corpus, check_languages
from attention_jax.data.pictures import CHANNELS
from attention_jax.data.seen_texts import SeenTextConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(SeenTextConfig):
    """The names that Unicode's CLDR has for emoji, and Noto's pictures of 32 x 32 pixels.

    Further fields are those of `data.seen_texts.SeenTextConfig`.

    Attributes:
      source_language: Of the names that are read.
      target_language: Of the names that are written.
      symbols: What names are written in: `words` or `characters`.
      split_by: What is in one split only: a `base` with all of its skin tones, or a `picture`.
    """

    name: str = setting("emoji_names", choices=("emoji_names",))
    height: int = setting(32, choices=(32,))
    colours: str = setting("rgb", choices=tuple(CHANNELS))
    source_language: str = setting("en", choices=emoji.LANGUAGES)
    target_language: str = setting("de", choices=emoji.LANGUAGES)
    symbols: str = setting("characters", choices=("characters", "words"))
    split_by: str = setting("base", choices=("base", "picture"))

    def __post_init__(self) -> None:
        """Checks the sizes, and that the languages are two."""
        super().__post_init__()
        check_languages(self.source_language, self.target_language)

    @property
    def units(self) -> tuple[str, str]:  # type: ignore[override]
        """Kinds of the symbols of both texts."""
        return self.symbols, self.symbols

    def with_pictures(self) -> Corpus:
        """Cuts the sheet of pictures, and names them twice.

        Raises:
          DataError: If a file cannot be obtained, or is not as it was.
        """
        languages = self.source_language, self.target_language
        splits: dict[str, list[tuple]] = {"train": [], "validation": [], "test": []}
        for each in emoji.named_pictures(languages, self.split_by, self.colours, self.cell):
            source, target = each.names
            splits[each.split].append((source, (target,), {BESIDE.name: each.cells}))
        return splits
