"""formulas: rendered formulas and their markup, made in code."""

import dataclasses
import hashlib
import importlib.metadata
import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from attention_jax.array_files import Form, read_arrays
from attention_jax.configuration import setting
from attention_jax.data import storage
from attention_jax.data.captions import GOLD_BOXES, PICTURE, UNITS, PictureConfig
from attention_jax.data.config import Corpus
from attention_jax.data.examples import Split
from attention_jax.data.formula_grammar import draw_formulas
from attention_jax.data.formula_pictures import TooHighError, gold_boxes, render, same_picture
from attention_jax.data.pictures import to_cells
from attention_jax.data.text.vocabulary import write_atomically
from attention_jax.errors import DataError

_SEED = 0
_EVALUATION = 500  # formulas of validation, and of test
_TOLD_EVERY = 5000  # formulas, while they are rendered
_VERSION = 2  # of what the rendering of a formula gives
_FORMS = {
    "markups": Form("U", 1), "cells": Form("u", 2), "cells_counts": Form("i", 1),
    "boxes": Form("f", 2), "boxes_counts": Form("i", 1),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(PictureConfig):
    """Formulas drawn by a fixed seed, rendered by Matplotlib's mathtext.

    Further fields are those of `data.captions.PictureConfig`. Each symbol that leaves ink has a
    gold rectangle.

    Attributes:
      num_formulas: Of training; validation and test have 500 each. No formula is in two splits.
      max_symbols: Of a formula's markup, braces among them.
    """

    name: str = setting("formulas", choices=("formulas",))
    brings_links: ClassVar[bool] = True
    height: int = setting(48, at_least=24)
    caption_units: str = setting("symbols", choices=UNITS)
    bleu_tokenizer: str = setting("none", choices=("none",))
    num_formulas: int = setting(8000, at_least=1)
    max_symbols: int = setting(20, at_least=3)

    def load(self) -> Corpus:
        """Returns the formulas of every split, rendered once and kept in the cache."""
        sizes = {"test": _EVALUATION, "validation": _EVALUATION, "train": self.num_formulas}
        examples = iter(self._rendered(sum(sizes.values())))
        splits = {name: [next(examples) for _ in range(size)] for name, size in sizes.items()}
        return {name: splits[name] for name in ("train", "validation", "test")}

    def further_scores(self, split: Split, outputs: Sequence[str]) -> Mapping[str, float]:
        """Exact match of pictures: renders the outputs again, and compares them pixel by pixel."""
        pairs = zip(outputs, split.targets, strict=True)
        same = [same_picture(*pair, self.height, self.cell) for pair in pairs]
        return {"exact_pictures": 100.0 * sum(same) / len(same)}

    def _rendered(self, count: int) -> list[tuple[str, tuple[str, ...], Mapping[str, np.ndarray]]]:
        known = {
            "count": count, "symbols": self.max_symbols, "height": self.height, "cell": self.cell,
            "colours": self.colours, "version": _VERSION,
            "matplotlib": importlib.metadata.version("matplotlib"),
        }  # fmt: skip
        digest = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
        path = storage.cache_root() / "formulas" / f"{digest[:16]}.npz"
        with storage.exclusive(path.with_suffix(".lock")):
            try:
                return _read(path)
            except (FileNotFoundError, DataError):  # none yet, or a damaged one
                self._render(count, path)
            return _read(path)

    def _render(self, count: int, path: Path) -> None:
        """Writes formulas, those that are too high for a picture left out."""
        found: list[tuple[str, np.ndarray, np.ndarray]] = []
        # A few more, for those that do not fit.
        for formula in draw_formulas(count + count // 4 + 20, self.max_symbols, _SEED):
            if len(found) == count:
                break
            try:
                picture, parts = render(formula.markup, self.height, self.cell)
            except TooHighError:
                continue
            picture = picture.repeat(3, axis=-1) if self.colours == "rgb" else picture
            if len(found) % _TOLD_EVERY == 0:
                said = f"rendering formulas, once: {len(found):,} of {count:,}"
                print(said, file=sys.stderr, flush=True)
            found.append((formula.markup, to_cells(picture, self.cell), gold_boxes(formula, parts)))
        if len(found) < count:
            raise DataError(
                f"config.data.height: expected {count} formulas that are not higher, found "
                f"{len(found)} of {self.height} pixels"
            )
        markups, cells, boxes = zip(*found, strict=True)
        content = io.BytesIO()
        np.savez_compressed(
            content, markups=np.array(markups),
            cells=np.concatenate(cells), cells_counts=[*map(len, cells)],
            boxes=np.concatenate(boxes), boxes_counts=[*map(len, boxes)],
        )  # fmt: skip
        write_atomically(path, content.getvalue())


def _read(path: Path) -> list[tuple[str, tuple[str, ...], Mapping[str, np.ndarray]]]:
    """Reads what was rendered; raises `DataError` if it is damaged."""
    expected = f"{path}: expected rendered formulas"
    arrays = read_arrays(path.read_bytes(), _FORMS, expected)
    counts = {name: arrays[f"{name}_counts"] for name in ("cells", "boxes")}
    for name, each in counts.items():
        if len(each) != len(arrays["markups"]) or each.sum() != len(arrays[name]):
            raise DataError(f"{expected}, found others in number than their {name}")
    apart = [np.split(arrays[name], np.cumsum(each)[:-1]) for name, each in counts.items()]
    return [
        (f"formula {number}", (markup,), {PICTURE.name: cells, GOLD_BOXES: boxes})
        for number, (markup, cells, boxes) in enumerate(
            zip(arrays["markups"].tolist(), *apart, strict=True)
        )
    ]
