import numpy as np
import pytest
from PIL import Image

from attention_jax.plotting.figure import new_figure, save_figure


@pytest.fixture
def figure():
    figure = new_figure(3.0, 2.0)
    axes = figure.add_axes((0.1, 0.1, 0.8, 0.8))
    for slope in range(7):
        axes.plot([0, 1], [0, slope], label=f"slope {slope}")
    axes.legend()
    return figure


def test_a_palette_makes_a_png_smaller_and_hardly_changes_it(figure, tmp_path):
    whole, few = tmp_path / "whole.png", tmp_path / "few.png"
    save_figure(figure, whole)
    save_figure(figure, few, colours=64)
    assert few.stat().st_size < 0.5 * whole.stat().st_size
    pixels, dots = [], []
    for path in (whole, few):
        with Image.open(path) as drawn:
            pixels.append(np.asarray(drawn.convert("RGB"), float))
            dots.append(drawn.info["dpi"])
    assert len(np.unique(pixels[0].reshape(-1, 3), axis=0)) > 64
    assert len(np.unique(pixels[1].reshape(-1, 3), axis=0)) <= 64
    assert np.abs(pixels[0] - pixels[1]).mean() < 1.0
    assert dots[0] == dots[1]


def test_other_formats_have_no_palette(figure, tmp_path):
    save_figure(figure, tmp_path / "whole.svg")
    save_figure(figure, tmp_path / "few.svg", colours=8)
    assert (tmp_path / "whole.svg").read_bytes() == (tmp_path / "few.svg").read_bytes()
