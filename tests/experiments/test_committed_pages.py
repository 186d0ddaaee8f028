"""The pages under docs/results are what the records beside them give."""

import functools
import importlib
import shutil
from pathlib import Path

import pytest

from experiments.benchmarks import ratios
from experiments.benchmarks.scaling import measure as scaling
from experiments.benchmarks.speed import (
    gpu,
    local_attention,
    mechanisms,
    report,
    saving,
    startup,
)

NAMES = (
    "bahdanau2015_length",
    "copying",
    "coverage_vs_supervised",
    "coverage_vs_supervised_full",
    "documents",
    "encoders_as_matrices",
    "hard_vs_soft",
    "luong2015_ablation",
    "rationales",
    "transformer_vs_rnn",
    "vaswani2017_table3",
)


@pytest.mark.parametrize("name", NAMES)
def test_committed_page_is_what_the_committed_records_give(
    name, repository, tmp_path, monkeypatch
):
    monkeypatch.chdir(repository)
    experiment = importlib.import_module(f"experiments.{name.removesuffix('_full')}")
    results = Path("docs/results")
    committed = results / f"{name}.md"
    grid = experiment.make_full_grid() if name.endswith("_full") else experiment.make_grid()
    runs = [run for run in grid.runs(Path("runs"), results) if run.is_finished()]
    if not runs or not committed.exists():
        pytest.skip(f"no results of {name} are committed")
    unread = shutil.ignore_patterns("*.zip", "*.png")
    shutil.copytree(results / name, tmp_path / name, ignore=unread)
    for other in results.glob("*.md"):  # pages say which others there are
        shutil.copy(other, tmp_path)
    (tmp_path / committed.name).unlink()
    page, *others = experiment.write_report(grid, runs, tmp_path)
    assert page.read_text() == committed.read_text()
    assert all((results / path.relative_to(tmp_path)).exists() for path in others)
    if (results / name / "reading.md").exists():
        assert "\n## Reading\n" in page.read_text()


def test_results_are_a_few_files_that_take_little_room(repository):
    files = [path for path in (repository / "docs/results").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 5_000_000
    for folder in (repository / "docs/results").iterdir():
        assert sum(path.parent == folder for path in files) <= 18, folder


BESIDE = {"local_attention": local_attention, "mechanisms": mechanisms, "saving": saving}
READ = {
    **{f"speed/{name}": report.load_measured for name in BESIDE},
    "scaling/cpu": scaling.load_series,
}
MEASURED = {
    "speed/training": functools.partial(report.page, "Training speed"),
    "speed/decoding": functools.partial(report.page, "Decoding speed"),
    "speed/startup": startup.page,
    "speed/gpu": gpu.page,
    **{
        f"speed/{name}": functools.partial(report.beside, module.page)
        for name, module in BESIDE.items()
    },
    "scaling/cpu": functools.partial(scaling.page.page, "cpu"),
}


def test_committed_table_of_ratios_is_what_the_measurements_give(repository):
    folder = repository / "docs/results/speed"
    assert (folder / "ratios.md").read_text() == ratios.page(folder)


@pytest.mark.parametrize("name", MEASURED)
def test_committed_measurements_are_what_their_record_gives(name, repository):
    """Their command, too, as it was at the commit beside it."""
    page = repository / "docs/results" / f"{name}.md"
    if not page.exists():
        pytest.skip(f"no {name} has been measured")
    facts = READ.get(name, report.load)(page.with_suffix(".json"))
    assert page.read_text() == MEASURED[name](facts)
