import itertools

from matplotlib.transforms import Bbox

from attention_jax.plotting.figure import new_figure
from attention_jax.plotting.labels import place_labels


def test_names_of_crowded_points_hide_neither_one_another_nor_points(numpy_rng):
    figure = new_figure(6.0, 4.0)
    axes = figure.subplots()
    points = {
        f"a system called {number}": tuple(numpy_rng.normal(scale=0.05, size=2))
        for number in range(12)
    }
    axes.scatter(*zip(*points.values(), strict=True), s=4)
    axes.set(xlim=(-1, 1), ylim=(-1, 1))
    place_labels(axes, points, dict.fromkeys(points, "black"))
    texts = [text for text in axes.texts if text.get_text()]
    assert {text.get_text() for text in texts} == points.keys()
    boxes = [text.get_window_extent() for text in texts]
    for one, other in itertools.combinations(boxes, 2):
        assert Bbox.intersection(one, other) is None
    for x, y in axes.transData.transform(list(points.values())):
        assert not any(box.contains(x, y) for box in boxes)
    frame = axes.get_window_extent()
    assert all(frame.contains(*corner) for box in boxes for corner in box.corners())
