"""A pyramid against none: sizes of the systems, and the page of records."""

import jax
import numpy as np
import pytest

from attention_jax.models import build_model
from attention_jax.runs.config import from_config_dict
from attention_jax.sweeps import archive
from experiments import pyramid as experiment
from tests.experiments.measured import made_record, resamples_of, sample_of


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def test_encoders_have_as_many_parameters(tmp_path):
    sizes = {}
    for run in experiment.make_grid().runs(tmp_path, tmp_path):
        if run.seed == 0 and run.cell.endswith(".content"):
            model = build_model(from_config_dict(run.resolved()).model, 4, 14)
            shapes = jax.tree.leaves(jax.eval_shape(model.init, jax.random.key(0))["encoder"])
            sizes[run.cell] = sum(int(np.prod(leaf.shape)) for leaf in shapes)
    assert len(sizes) == len(experiment.LABELS)
    assert max(sizes.values()) / min(sizes.values()) < 1.02, sizes


def speeds(run):
    """Returns steps a second, of which the first are slow, for they compile."""
    return [0.1, 5.0 if run.cell.startswith("none") else 4.0, 9.0]


def test_the_page_shows_every_system_that_is_finished(tmp_path):
    grid = experiment.make_grid()
    runs = [run for run in grid.runs(tmp_path, tmp_path) if run.cell != "none.location"]
    archive.add(runs[0].records, [
        made_record(
            run, wer=2.0 + run.seed, word_start_error=40.0,
            curves={
                "steps_per_second": {"train": [[50, 100, 150], speeds(run)]},
                "memory/host_peak": {"train": [[50, 100], [2.0**30, 2.0**31]]},
            },
            arrays={
                **sample_of("picture", seconds=0.03),
                "resamples.test.npz": resamples_of(wer=2.0 + run.cell.startswith("none")),
            },
        )
        for run in runs
    ])  # fmt: skip
    page, costs, heard = experiment.write_report(grid, runs, tmp_path)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (costs, heard))
    text = page.read_text()
    assert f"]({grid.name}/cost.png)" in text and f"]({grid.name}/attention.png)" in text
    assert text.count("| 1.25 ± 0.00 | 2048 ± 0 |") == 3  # against none, of content alone
    assert text.count("| 2048 ± 0 |") == 7  # MiB, the last and so the peak
    assert "| speakers of training | content | 3 levels | -1.00 |" in text
    assert "| speakers of training | location |" not in text  # without its base
    assert "| a new speaker | content |" not in text  # of which nothing is kept here
    assert "**Only 21 of 24 runs are finished.**" in text
    assert text.count("3.00 ± 1.00") == 7 and "| 3 levels | location | 3.00" in text
    assert text.count("| 4.00 ± 0.00 |") == 6  # steps a second
    assert "| no pyramid | location" not in text


def test_a_page_of_records_of_earlier_times_has_its_table(tmp_path):
    grid = experiment.make_grid()
    runs = grid.runs(tmp_path, tmp_path)
    archive.add(runs[0].records, [made_record(run, wer=2.0) for run in runs])
    (page,) = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert "| 3 levels | location | 2.00 ± 0.00 | – | – | – | – |" in text
    assert "Error against speed" not in text and "Differences" not in text
    assert "under the spectrogram" not in text


def test_a_tiny_run_keeps_what_its_page_shows():
    grid = experiment.make_grid(smoke=True)
    assert [*grid.kept] == ["sample_attention.npz", "resamples.test.npz"]
