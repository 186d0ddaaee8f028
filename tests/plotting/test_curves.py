"""Learning curves: what is read from the log and what is drawn of it."""

import json

import numpy as np
import pytest

from attention_jax.data.tasks import pronounce
from attention_jax.errors import DataError, RunDirectoryError
from attention_jax.plotting.curves import curves_by_metric, learning_curves, read_metrics
from attention_jax.plotting.figure import save_figure
from attention_jax.training.reporting.metrics_writer import MetricsWriter


def records(steps=60):
    for step in range(1, steps + 1):
        yield {
            "step": step,
            "split": "train",
            "loss": 3 / step,
            "learning_rate": 1e-3,
            "tokens_per_second": 1e4,
        }
        if step % 10 == 0:
            yield {"step": step, "split": "validation", "loss": 4 / step, "per": 90 / step,
                   "wer": 99 - step}  # fmt: skip


def test_read_metrics_leaves_out_lines_cut_short(tmp_path):
    path = tmp_path / "metrics.jsonl"
    text = [json.dumps(record) for record in records(3)]
    path.write_text(f'{text[0]}\n{text[1][:9]}{{"step"\n\n{text[2]}\n{text[1][:20]}')
    assert [record["step"] for record in read_metrics(path)] == [1, 3]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("7", "expected an object, found 7"),
        ('{"split": "train"}', "expected a value named 'step', found none"),
        ('{"step": "5", "split": "train"}', 'expected a whole number at step, found "5"'),
        ('{"step": 5, "split": null}', "expected text at split, found null"),
        ('{"step": 5, "split": "train", "loss": [1]}', "expected .* at loss, found a list"),
        (f'{{"step": 5, "split": "train", "loss": 1{"0" * 400}}}', "expected .* at loss, found 1"),
        (f'{{"step": 1{"0" * 30}, "split": "train"}}', "expected a whole number at step, found"),
        (f'{{"step": 5, "split": {"[" * 9000}{"]" * 9000}}}', "expected at most 100 values"),
    ],
)
def test_a_line_of_something_else_is_named(tmp_path, line, message):
    path = tmp_path / "metrics.jsonl"
    path.write_text(f'{{"step": 1, "split": "train", "note": "text"}}\n{line}\n')
    with pytest.raises(DataError, match=rf"metrics\.jsonl:2: {message}"):
        read_metrics(path)
    with pytest.raises(RunDirectoryError, match=rf"metrics\.jsonl:2: {message}"):
        MetricsWriter(path, step=10)
    assert path.read_text().count("\n") == 2


def test_curves_by_metric_takes_the_later_record_of_a_step():
    logged = [
        {"step": 2, "split": "train", "loss": 5.0},
        {"step": 1, "split": "train", "loss": 7.0},
        {"step": 2, "split": "train", "loss": 4.0, "note": "text", "flag": True},
        {"split": "train", "loss": 1.0},
        {"step": 3, "loss": 1.0},
    ]
    curves = curves_by_metric(logged)
    assert set(curves) == {"loss"} and set(curves["loss"]) == {"train"}
    steps, values = curves["loss"]["train"]
    np.testing.assert_array_equal(steps, [1, 2])
    np.testing.assert_array_equal(values, [7.0, 4.0])


def test_learning_curves_draw_a_panel_for_each_kind_of_metric(tmp_path):
    figure = learning_curves(records(), "run", pronounce.TASK.metrics)
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == ["loss", "error rate (%)", "learning rate"]
    losses, rates, schedule = figure.axes
    legend = [text.get_text() for text in losses.get_legend().get_texts()]
    assert legend == ["train", f"validation, best {4 / 60:.3f}"]
    legend = [text.get_text() for text in rates.get_legend().get_texts()]
    assert legend == ["validation PER, best 1.5", "validation WER, best 39.0"]
    np.testing.assert_array_equal(losses.lines[0].get_ydata(), [3 / s for s in range(1, 61)])
    assert schedule.lines[0].get_ydata()[0] == 1e-3
    save_figure(figure, tmp_path / "curves.png")


def test_learning_curves_go_through_every_point():
    noise = np.random.default_rng(0).normal(size=400)
    logged = [
        {"step": step, "split": "train", "loss": float(error)} for step, error in enumerate(noise)
    ]
    (line,) = learning_curves(logged).axes[0].lines
    np.testing.assert_array_equal(line.get_ydata(), noise)


def test_learning_curves_draw_every_objective():
    logged = [
        {**record, "nll": 2.0, "loss/nll": 2.1, "loss/coverage_loss": 5 / record["step"]}
        for record in records()
    ]
    figure = learning_curves(logged)
    assert [axes.get_ylabel() for axes in figure.axes] == ["loss", "coverage loss", "learning rate"]
    curves = [line.get_ydata() for line in figure.axes[1].lines]
    train, validation = (curve for curve in curves if len(curve) > 1)  # not the best of them
    np.testing.assert_array_equal(train, [5 / step for step in range(1, 61)])
    np.testing.assert_array_equal(validation, [5 / step for step in range(10, 61, 10)])
    alone = [{**record, "loss/pointer_loss": record["loss"]} for record in records()]
    assert [axes.get_ylabel() for axes in learning_curves(alone).axes] == ["loss", "learning rate"]


@pytest.mark.parametrize("first", [30_000.0, 1.3])
def test_perplexity_is_on_a_logarithmic_axis(first):
    logged = [
        {"step": step, "split": "validation", "perplexity": 1 + (first - 1) / 3**step}
        for step in range(20)
    ]
    figure = learning_curves(logged)
    axes = figure.axes[0]
    assert (axes.get_ylabel(), axes.get_yscale()) == ("perplexity", "log")
    figure.draw_without_rendering()
    low, high = axes.get_ylim()
    assert low < 1.01 and high > first  # nothing is cut off
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert sum(low <= float(label) <= high for label in labels) >= 2


@pytest.mark.parametrize(
    "logged",
    [
        [],
        [{"step": 1, "split": "train", "loss": float("nan")}],
        [{"step": 1, "split": "validation", "bleu": float("nan")}],
        [{"step": 1, "split": "train", "loss": 2.0}],
        [{"step": s, "split": "train", "loss": float("inf") if s == 9 else 1.0} for s in range(30)],
    ],
)
def test_learning_curves_of_little_or_broken_data(logged, tmp_path):
    save_figure(learning_curves(logged), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_learning_curves_keep_early_outliers_from_flattening_the_rest():
    logged = [
        {"step": step, "split": "train", "loss": 1000.0 if step == 1 else 2.0 + 1 / step}
        for step in range(1, 201)
    ]
    assert learning_curves(logged).axes[0].get_ylim()[1] < 5


def test_learning_curves_draw_the_loss_once_where_nll_is_all_of_it():
    rounding = 1 + 1e-7
    logged = [{**record, "nll": record["loss"] * rounding} for record in records()]
    losses = learning_curves(logged).axes[0]
    assert len(losses.lines) == len(learning_curves(records()).axes[0].lines)
    legend = [text.get_text() for text in losses.get_legend().get_texts()]
    assert legend == ["train", f"validation, best {4 / 60:.3f}"]


@pytest.mark.parametrize("split", ["train", "validation"])
def test_learning_curves_draw_nll_beside_a_loss_that_is_more(split):
    logged = [
        {**record, "nll": record["loss"] * (0.9 if record["split"] == split else 1)}
        for record in records()
    ]
    legend = learning_curves(logged).axes[0].get_legend().get_texts()
    names = [text.get_text().split(",")[0] for text in legend]
    assert names == ["train loss", "validation loss", "train nll", "validation nll"]


def test_learning_curves_draw_nll_where_no_loss_was_logged():
    logged = [{"step": step, "split": "train", "nll": 3 / step} for step in range(1, 9)]
    assert len(learning_curves(logged).axes[0].lines) == 1


def test_a_title_may_be_a_path_of_any_bytes(tmp_path):
    figure = learning_curves(list(records()), title="runs/a\udcff\nb")
    save_figure(figure, tmp_path / "curves.png")
    assert figure.get_suptitle() == "runs/a  b"
