"""pictures: the user's own folder of images with a table of captions."""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.data.captioned_files import CaptionedFiles
from attention_jax.data.captions import PictureConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(CaptionedFiles, PictureConfig):
    """Images in a folder, and tables of their captions.

    Further fields are those of `data.captioned_files.CaptionedFiles` and
    `data.captions.PictureConfig`.
    """

    name: str = setting("pictures", choices=("pictures",))

    def __post_init__(self) -> None:
        """Checks the tables, and the height."""
        CaptionedFiles.__post_init__(self)
        PictureConfig.__post_init__(self)
