"""Normalizers by name, for configs: softmax, sparsemax, 1.5-entmax, and those of your own files.

A normalizer file in `layers/normalizers` holds `PAPER` and `NORMALIZER`, a function as
`ops.normalizers.Normalizer` describes it. Its file name is its name in configs.
"""

from collections.abc import Iterator, Mapping

from attention_jax.discovery import Parts
from attention_jax.ops.normalizers import NORMALIZERS as BUILT_IN
from attention_jax.ops.normalizers import Normalizer

_FILES = Parts("attention_jax.layers.normalizers", defines="NORMALIZER")


class Normalizers(Mapping[str, Normalizer]):
    """All normalizers; files are looked for when somebody asks."""

    def __getitem__(self, name: str) -> Normalizer:
        """Returns a normalizer; raises `KeyError` if there is none of that name."""
        # Built-in ones need no file, and cannot be replaced by one.
        return BUILT_IN[name] if name in BUILT_IN else _FILES.find(name).NORMALIZER

    def __iter__(self) -> Iterator[str]:
        """Lists their names."""
        return iter([*BUILT_IN, *_FILES.names()])

    @property
    def own(self) -> str:
        """Where one of the user's own would be, for messages."""
        return _FILES.own

    def __len__(self) -> int:
        """Counts them."""
        return len(BUILT_IN) + len(_FILES.names())


NORMALIZERS = Normalizers()
