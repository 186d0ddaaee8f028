"""Areas of gold rectangles: even attention, counted over the captions that are right."""

import types

import numpy as np
import pytest

from attention_jax.data.builders.formulas import Config
from attention_jax.data.captions import GOLD_BOXES, PICTURE
from attention_jax.data.examples import Split
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.sweeps.kept_files import kept_arrays
from experiments.kit import gold_areas

CONFIG = Config(height=48, cell=16)  # three cells a column
CELL, COLUMN, NOWHERE = [0, 0, 16, 16], [16, 0, 32, 48], [0, 0, 0, 0]


def captions(*boxes):
    """Returns a split of captions with these rectangles, whose pictures have two columns."""
    texts = [" ".join("ab"[: len(each)]) for each in boxes]
    vocabulary = SymbolVocabulary.train("symbols", texts)
    return Split(
        texts, texts, references=[[text] for text in texts], numbers=[*range(len(texts))],
        name="test", source_vocabulary=vocabulary, target_vocabulary=vocabulary,
        extras={
            PICTURE.name: [np.zeros((6, 256), np.uint8)] * len(texts),
            GOLD_BOXES: [np.array(each) for each in boxes],
        },
    )  # fmt: skip


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Records a run with these outputs, and returns the finished one."""

    def finished(split, outputs):
        monkeypatch.setattr(gold_areas, "task_of", lambda run: run)
        directory = RunDirectory(tmp_path)
        rows = zip(outputs, split.targets, strict=True)
        directory.write_table(
            directory.prediction_table("test"), [("output", "reference"), *rows]
        )
        run = types.SimpleNamespace(
            directory=directory, config=types.SimpleNamespace(data=CONFIG),
            split=lambda name: split,
        )  # fmt: skip
        gold_areas.record(run)
        return types.SimpleNamespace(
            keeps=lambda name: (tmp_path / name).exists(),
            arrays=lambda name: kept_arrays(tmp_path / name, "sums"),
        )

    return finished


def test_even_attention_has_the_area_of_each_rectangle_of_right_captions(recorded):
    """A cell is a sixth of the picture, a column half; the third output is wrong."""
    split = captions([CELL, COLUMN], [NOWHERE], [CELL])
    run = recorded(split, ["a b", "a", "b"])
    assert gold_areas.even_share(run) == pytest.approx(100 * (1 / 6 + 1 / 2) / 2)


def test_where_nothing_is_gold_nothing_is_compared(recorded):
    split = captions([CELL], [CELL])
    assert gold_areas.even_share(recorded(split, ["b", "b"])) is None
    del split.extras[GOLD_BOXES]
    assert gold_areas.even_share(recorded(split, ["a", "a"])) is None
    assert gold_areas.even_share(types.SimpleNamespace(keeps=lambda name: False)) is None
