"""Heat maps: what is drawn where, and tokens that plots choke on."""

from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread

from attention_jax.plotting.figure import printable, save_figure
from attention_jax.plotting.heat_map import HeatMap, heat_map, heat_map_grid, that_fit_a_page


def eye(rows, columns):
    return np.eye(rows, columns)


def test_heat_map_puts_source_across_and_target_down():
    figure = heat_map(eye(3, 4), list("abcd"), ["x", "y", "z"], "abcd → xyz")
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == list("abcd")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "y", "z"]
    low, high = axes.get_ylim()
    assert low > high  # the first target token is at the top
    assert any(text.get_text() == "abcd → xyz" for text in axes.texts)
    np.testing.assert_array_equal(axes.collections[0].get_array(), eye(3, 4))


def test_heat_map_names_its_axes():
    axes = heat_map(eye(1, 2), ["a", "b"], ["x"]).axes[0]
    assert [text.get_text() for text in axes.texts] == ["source →", "target ↓"]


@pytest.mark.parametrize(
    "weights",
    [
        eye(4, 4),  # monotone attention falls from left to right
        np.array([[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0]], np.float64),
    ],
)
def test_heat_map_shows_each_weight_in_its_row_and_column(tmp_path, weights):
    figure = heat_map(weights, list("abcd"), list("wxyz"))
    save_figure(figure, tmp_path / "plots" / "map.png")
    image = imread(tmp_path / "plots" / "map.png")[..., 0]  # the colour of attention has no red
    box = figure.axes[0].get_position()
    rows, columns = image.shape
    for row in range(4):
        for column in range(4):
            x = int((box.x0 + (column + 0.5) / 4 * box.width) * columns)
            y = int((1 - box.y1 + (row + 0.5) / 4 * box.height) * rows)
            assert (image[y, x] < 0.1) == weights[row, column]


def test_heat_map_has_one_scale_whatever_the_weights():
    figure = heat_map_grid(
        [HeatMap(eye(2, 2) * scale, ["a", "b"], ["c", "d"]) for scale in (0.1, 1.0)]
    )
    for axes in figure.axes[:2]:
        assert axes.collections[0].norm.vmin == 0 and axes.collections[0].norm.vmax == 1


def test_heat_map_turns_only_labels_that_are_too_wide():
    def turned(source):
        axes = heat_map(eye(1, len(source)), source, ["x"]).axes[0]
        return [label.get_rotation() == 90 for label in axes.get_xticklabels()]

    assert turned([*"attentio", "</s>"]) == [False] * 8 + [True]
    assert turned(["the", "agreement", "on", "European", "a"]) == [True] * 5


def test_large_grids_stay_on_a_page_by_smaller_cells_and_then_by_fewer_maps(tmp_path):
    def page(number, length):
        words = [f"word{position}" for position in range(length)]
        maps = [HeatMap(eye(length, length), words, words, " ".join(words))] * number
        kept = that_fit_a_page(maps, columns=2)
        figure = heat_map_grid(kept, columns=2)
        width, height = figure.get_size_inches()
        save_figure(figure, tmp_path / "map.png")
        rows, columns, _ = imread(tmp_path / "map.png").shape
        cell = figure.axes[0].get_position().width * width / length
        return len(kept), cell, (width, height), (columns, rows)

    number, cell, _, _ = page(4, 8)
    assert number == 4 and cell == pytest.approx(0.27)
    number, cell, size, pixels = page(12, 40)
    assert 2 <= number < 12 and 0.15 <= cell < 0.2
    assert size[0] <= 16.0 and size[1] <= 20.0 and pixels[0] <= 2400 and pixels[1] <= 3000
    number, cell, size, pixels = page(4, 250)  # one that no page holds
    assert number == 1 and cell == pytest.approx(0.15) and max(size) > 20.0
    assert 3900 < max(pixels) <= 4000


def test_heat_map_shortens_a_title_that_is_wider_than_the_picture():
    figure = heat_map(eye(1, 4), list("abcd"), ["x"], "t" * 200)
    (title,) = [text for text in figure.axes[0].texts if text.get_text().startswith("tt")]
    assert title.get_text().endswith("t…") and len(title.get_text()) < 100
    figure.canvas.draw()
    assert title.get_window_extent().x1 <= figure.bbox.x1


def test_heat_map_grid_lays_panels_out_without_overlap():
    maps = [
        HeatMap(eye(rows, columns), ["token"] * columns, ["t"] * rows, "a title " * rows)
        for rows, columns in [(2, 9), (7, 3), (4, 4), (1, 1), (3, 6)]
    ]
    figure = heat_map_grid(maps, columns=2)
    width, height = figure.get_size_inches()
    boxes = [axes.get_position() for axes in figure.axes]
    assert len(boxes) == 6
    for index, one in enumerate(boxes):
        assert 0 <= one.x0 < one.x1 <= 1 and 0 <= one.y0 < one.y1 <= 1
        assert not any(one.overlaps(other) for other in boxes[:index])
    cells = [
        (box.width * width / columns, box.height * height / rows)
        for box, (rows, columns) in zip(
            boxes, [(2, 9), (7, 3), (4, 4), (1, 1), (3, 6)], strict=False
        )
    ]
    np.testing.assert_allclose(cells, cells[0][0])


def test_heat_map_texts_stay_inside_the_figure():
    maps = [
        HeatMap(eye(3, 4), ["ausgezeichnet", "a", "b", "c"], ["Donaudampf", "x", "y"], "t" * 60),
        HeatMap(eye(2, 2), ["a", "b"], ["x", "y"], "short"),
    ]
    figure = heat_map_grid(maps)
    figure.canvas.draw()
    frame = figure.bbox
    for axes in figure.axes:
        for text in [*axes.get_xticklabels(), *axes.get_yticklabels(), *axes.texts]:
            box = text.get_window_extent()
            assert frame.x0 <= box.x0 and box.x1 <= frame.x1
            assert frame.y0 <= box.y0 and box.y1 <= frame.y1


@pytest.mark.parametrize(
    "tokens",
    [
        ["日本", "語", "。"],
        ["$", "$x^$", "\\frac{"],
        ["\n", "\x00", ""],
        ["_nolegend_", "%", "#{}"],
        ["مرحبا", "שלום", "हिन्दी"],
        ["😀", "▁the", "é"],
    ],
)
def test_heat_map_draws_any_token(tokens, tmp_path):
    figure = heat_map(eye(3, 3), tokens, tokens, " ".join(tokens))
    save_figure(figure, tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_an_svg_is_well_formed_and_the_same_for_the_same_figure(tmp_path):
    texts = []
    for name in ("a.svg", "b.svg"):
        save_figure(heat_map(eye(3, 4), list("stuv"), list("xyz"), "a < b & c"), tmp_path / name)
        texts.append((tmp_path / name).read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    ElementTree.fromstring(texts[0])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (40, 60)])
def test_heat_map_of_any_size(shape, tmp_path):
    figure = heat_map(np.zeros(shape), ["s"] * shape[1], ["t"] * shape[0])
    save_figure(figure, tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    labels = figure.axes[0].get_yticklabels()
    assert [label.get_text() for label in labels] == ["t"] * shape[0]


def test_heat_map_refuses_tokens_that_do_not_match():
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(2, 2\)"):
        heat_map(np.eye(2), ["a", "b", "c"], ["x", "y"])
    with pytest.raises(ValueError, match="at least one"):
        heat_map_grid([])


def test_printable_keeps_what_can_be_seen():
    assert printable("▁the") == "▁the"
    assert printable("a\tb") == "a b"
    assert printable("\n") == printable("") == "␣"
    assert printable("\u200b") == "U+200B"
    assert printable(" \u2060\ufe0f\n") == "U+2060 U+FE0F"
    for char in "\u200d\u00ad\u200e\u2800\u115f\ufeff\U000e0100":
        assert printable(char) == f"U+{ord(char):04X}"
