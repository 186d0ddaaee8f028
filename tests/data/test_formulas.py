"""Formulas: their markup, their pictures, and where each symbol is in them."""

import io
import resource

import numpy as np
import pytest

from attention_jax.data.builders.formulas import Config
from attention_jax.data.captions import GOLD_BOXES
from attention_jax.data.formula_grammar import Formula, draw_formulas
from attention_jax.data.formula_pictures import TooHighError, gold_boxes, render, same_picture
from attention_jax.data.loading import build_task
from attention_jax.data.pictures import cell_boxes, from_cells
from attention_jax.errors import DataError

HEIGHT, CELL = 48, 8
FORMULAS = draw_formulas(40, 20, seed=1)


def test_formulas_are_different_short_and_always_the_same():
    markups = [formula.markup for formula in FORMULAS]
    assert len(set(markups)) == 40
    assert max(len(formula.symbols) for formula in FORMULAS) <= 20
    assert markups[:9] == [formula.markup for formula in draw_formulas(9, 20, seed=1)]
    assert {"\\frac", "\\sqrt", "^", "_", "("} <= set(" ".join(markups).split())


@pytest.mark.parametrize("formula", FORMULAS[:12], ids=lambda formula: formula.markup)
def test_the_renderer_draws_the_parts_that_the_formula_has(formula):
    picture, parts = render(formula.markup, HEIGHT, CELL)
    assert picture.shape[0] == HEIGHT and picture.shape[1] % CELL == 0
    boxes = gold_boxes(formula, parts)
    for symbol, box in zip(formula.symbols, boxes, strict=True):
        if symbol in "{}^_":
            assert not box.any()
            continue
        left, top = np.floor(box[:2]).astype(int)
        right, bottom = np.ceil(box[2:]).astype(int)
        assert (picture[top:bottom, left:right] < 192).any(), symbol  # ink, if of a thin line
    # Without what is in the rectangles, nothing is left.
    rest = picture.copy()
    for left, top, right, bottom in boxes:
        rest[int(top) : int(np.ceil(bottom)), int(left) : int(np.ceil(right))] = 255
    assert (rest > 250).all()


def test_rectangles_are_of_the_symbols_in_their_order():
    formula = Formula(
        symbols="\\frac { a } { \\sqrt { b } }".split(), glyphs=[2, 5, 7], bars=[0, 5]
    )
    boxes = gold_boxes(formula, render(formula.markup, HEIGHT, CELL)[1])
    bar, a, root, b = boxes[0], boxes[2], boxes[5], boxes[7]
    assert a[3] < bar[1] and bar[3] < root[1]  # above the bar, and below
    assert root[0] < b[0] and b[2] <= root[2] + 1 and root[1] < b[1]  # b is under the root


@pytest.mark.parametrize("symbol", ["b", "7", "\\sigma"])
def test_exponents_are_above_indices_and_smaller_than_letters(symbol):
    def box(script):
        formula = Formula(["a", script, "{", symbol, "}"], glyphs=[0, 3], bars=[])
        return gold_boxes(formula, render(formula.markup, HEIGHT, CELL)[1])[3]

    plain = render(symbol, HEIGHT, CELL)[1][0]
    above, below = box("^"), box("_")
    for each in (above, below):
        assert each[3] - each[1] < 0.8 * (plain[3] - plain[1])
    assert not same_picture(f"a ^ {{ {symbol} }}", f"a _ {{ {symbol} }}", HEIGHT, CELL)
    letter = render(f"a ^ {{ {symbol} }}", HEIGHT, CELL)[1][0]
    assert above[3] < letter[3] - 2  # ends above the foot of the letter
    letter = render(f"a _ {{ {symbol} }}", HEIGHT, CELL)[1][0]
    assert below[3] > letter[3]


def test_equal_pictures_may_have_different_markup():
    assert same_picture("a", "a", HEIGHT, CELL)
    assert same_picture("{ a } + b", "a + b", HEIGHT, CELL)
    assert not same_picture("a + c", "a + b", HEIGHT, CELL)
    assert not same_picture("\\frac { a", "a", HEIGHT, CELL)
    assert not same_picture("\\sqrt { " * 200 + "a" + " }" * 200, "a", HEIGHT, CELL)
    assert not same_picture("\\sqrt { " * 200, "a", HEIGHT, CELL)
    with pytest.raises(TooHighError):
        render("\\frac { \\frac { a } { b } } { \\frac { c } { d } }", 24, CELL)


def test_the_data_set_is_rendered_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(tmp_path))
    monkeypatch.setattr("attention_jax.data.builders.formulas._EVALUATION", 3)
    monkeypatch.setattr("attention_jax.data.builders.formulas._TOLD_EVERY", 5)
    config = Config(num_formulas=5, max_symbols=8)
    task = build_task(config, tmp_path / "vocab")
    told = [f"rendering formulas, once: {number} of 11" for number in (0, 5, 10)]
    assert capsys.readouterr().err.splitlines() == told
    assert {name: len(split) for name, split in task.splits.items()} == {
        "train": 5, "validation": 3, "test": 3,
    }  # fmt: skip
    monkeypatch.setattr(Config, "_render", None)  # which nothing calls again
    split = build_task(config, tmp_path / "vocab").split("test")
    assert not capsys.readouterr().err
    assert split.content() == task.split("test").content()
    markup, cells = split.targets[1], split.extras["source"][1]
    expected, _ = render(markup, config.height, config.cell)
    np.testing.assert_array_equal(from_cells(cells, config.rows, config.cell), expected)
    assert len(split.extras[GOLD_BOXES][1]) == len(markup.split())
    for boxes, cells, links in zip(
        split.extras[GOLD_BOXES], split.extras["source"], config.gold_links(split), strict=True
    ):
        places = cell_boxes(len(cells), config.rows, config.cell)
        expected = [
            [target, place]
            for target, (left, top, right, bottom) in enumerate(boxes)
            for place, cell in enumerate(places)
            if left < right and left < cell[2] and cell[0] < right
            and top < cell[3] and cell[1] < bottom
        ]
        assert links.tolist() == expected
    scores = config.further_scores(split, [split.targets[0], "}", split.targets[2]])
    assert scores == {"exact_pictures": pytest.approx(200 / 3)}


@pytest.mark.parametrize(
    "damage",
    [
        lambda content, arrays: content[:-50],
        lambda content, arrays: b"",
        lambda content, arrays: b"garbage",
        lambda content, arrays: repacked(arrays, cells_counts=np.array([1])),
        lambda content, arrays: repacked(arrays, boxes_counts=arrays["boxes_counts"] + 1),
        lambda content, arrays: repacked(arrays, markups=np.arange(7)),
    ],
)
def test_what_is_kept_is_rendered_anew_where_it_is_damaged(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(tmp_path))
    monkeypatch.setattr("attention_jax.data.builders.formulas._EVALUATION", 2)
    config = Config(num_formulas=3, max_symbols=4, height=24)
    before = config.load()
    (path,) = (tmp_path / "formulas").glob("*.npz")
    with np.load(path) as arrays:
        path.write_bytes(damage(path.read_bytes(), dict(arrays)))
    for split, examples in config.load().items():
        for one, other in zip(before[split], examples, strict=True):
            assert one[:2] == other[:2] and one[2].keys() == other[2].keys()
            for name, array in one[2].items():
                np.testing.assert_array_equal(array, other[2][name])


def test_what_does_not_fit_is_a_line_and_fits_later(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(tmp_path))
    monkeypatch.setattr("attention_jax.data.builders.formulas._EVALUATION", 1)
    config = Config(num_formulas=1, max_symbols=4)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(DataError, match=r"\.npz cannot be written: File too large"):
            config.load()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(config.load()["train"]) == 1
    assert len([*(tmp_path / "formulas").glob("*.npz")]) == 1


def repacked(arrays, **changes):
    content = io.BytesIO()
    np.savez(content, **{**arrays, **changes})
    return content.getvalue()
