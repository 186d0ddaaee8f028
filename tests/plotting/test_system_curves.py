import numpy as np
import pytest

from attention_jax.plotting.figure import OUTLINE, save_figure
from attention_jax.plotting.system_curves import system_curves

STEPS = np.array([10, 20, 30])


def test_a_system_of_every_panel_is_grey_and_the_others_can_be_told_apart(tmp_path):
    base = (STEPS, np.array([30.0, 12.0, 9.0]))
    many = {f"system {n}": (STEPS, np.array([30.0, 12.0, 9.0]) + n) for n in range(9)}
    figure = system_curves({"few": {"base": base}, "many": {"base": base, **many}}, "score")
    few, crowded = ([line.get_label() for line in axes.lines] for axes in figure.axes)
    assert few == ["base"] and crowded == ["base", *many]
    looks = [(line.get_color(), line.get_linestyle()) for line in figure.axes[1].lines]
    assert looks[0][0] == OUTLINE and len(set(looks)) == len(looks)
    np.testing.assert_array_equal(figure.axes[1].lines[3].get_ydata(), many["system 2"][1])
    save_figure(figure, tmp_path / "curves.png")


def test_no_panels_are_refused():
    with pytest.raises(ValueError, match="at least one group"):
        system_curves({}, "score")
