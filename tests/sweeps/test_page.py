"""The page of a sweep: means, tests, order and curves are those of its records."""

import numpy as np
import pytest

from attention_jax.analysis.resamples import read_resamples
from attention_jax.errors import RunDirectoryError, UserError
from attention_jax.evaluation.seeds import compare
from attention_jax.sweeps import archive
from attention_jax.sweeps.archive import Record
from attention_jax.sweeps.measure import Measure, chosen_measure
from attention_jax.sweeps.page import by_cell, write_page
from attention_jax.sweeps.sweep import Plan, open_sweep

CONFIG = "configs/quickstart.py:smoke"
RATE = "optimizer.learning_rate"
FILE = "resamples.test.npz"


@pytest.fixture(scope="module", autouse=True)
def in_repository(repository):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(repository)
        yield


@pytest.fixture
def sweep(tmp_path):
    """Three cells of two seeds, without any record."""
    rates = {"base": "0.1", "good": "0.2", "like|it": "1"}
    cells = {name: {RATE: rate} for name, rate in rates.items()}
    return open_sweep(str(tmp_path / "sweep"), Plan.asked(CONFIG, (), cells, 2))


@pytest.fixture
def finish(sweep, numpy_rng):
    """Keeps records of runs with a score by cell; every seed differs a little."""
    common = numpy_rng.normal(0, 2, 1000)  # of the examples that were drawn

    def keep(run, level, text="t1", curve=True, resamples=True, more=None, **validation):
        score = level + 0.5 * run.seed
        draws = score + common + numpy_rng.normal(0, 0.2, 1000)
        arrays = {FILE: {"bleu": np.array([200, score, *draws])}} if resamples else {}
        found = {"step": 9, "bleu": score, "perplexity": 3.0 + run.seed}
        results = {"test": {**found, **(more or {})}}
        if validation:
            results["validation"] = validation
        steps = [2, 4, 6][: 3 - run.seed]  # the second seed stopped early
        curves = {"nll": {"validation": [steps, [level / step for step in steps]]}} if curve else {}
        facts = {"seed": run.seed, "finished": "2026", "evaluations": {"test": {"text": text}}}
        made = (run.cell, run.seed, run.overrides, run.resolved())
        archive.add(run.records, [Record(*made, facts, results, curves, arrays)])

    return keep


@pytest.fixture
def finished(sweep, finish):
    levels = {"base": 30.0, "good": 20.0, "like|it": 30.1}
    for run in sweep.runs:
        finish(run, levels[run.cell])
    return sweep


MEASURE = Measure("nll", "validation", "min")


def rows_of(text):
    return {line.split(" | ")[0].strip("| "): line for line in text.splitlines() if "|" in line}


def test_scores_are_means_over_seeds_with_stars_against_the_first(finished):
    table, *_ = write_page(finished, MEASURE)
    assert table.splitlines()[0] == "| cell | seeds | BLEU | perplexity |"
    rows = rows_of(table)
    assert rows["base"] == "| base | 2 | 30.25 ± 0.35 | 3.50 ± 0.71 |"
    assert rows["good"] == "| good | 2 | 20.25 ± 0.35 ** | 3.50 ± 0.71 |"
    assert rows[r"like\|it"] == r"| like\|it | 2 | 30.35 ± 0.35 | 3.50 ± 0.71 |"
    page = (finished.directory / "sweep.md").read_text()
    assert table in page and "* p < 0.05, ** p < 0.01" in page and "1,000 draws" in page
    assert f"- good: `{RATE}=0.2`" in page


def test_differences_are_tested_over_examples_and_seeds(finished):
    write_page(finished, MEASURE)
    page = (finished.directory / "sweep.md").read_text()
    section = page.partition("## Differences from base")[2].partition("##")[0]
    scores = {
        cell: [read_resamples(run.arrays(FILE), run.name)["bleu"] for run in runs]
        for cell, runs in by_cell(finished).items()
    }
    found = compare(scores["base"], scores["good"])
    assert found.difference == pytest.approx(-10)
    interval = f"{found.low:.2f} to {found.high:.2f}"
    assert f"| good | -10.00 | {interval} | < 0.002 | 0 of 4 |" in section
    assert len(section.strip().splitlines()) == 4


def test_cells_are_put_in_order_by_any_metric(finished):
    *_, best, end = write_page(finished, MEASURE)
    assert best.startswith("Best by validation nll ↓: good, ")
    assert best.endswith(str(finished.directory / "good"))
    assert end.endswith(f"open {finished.directory / 'sweep.md'}")
    *_, best, _ = write_page(finished, Measure("perplexity", "test", "max"))
    assert best.startswith("Best by test perplexity ↑: base, 3.5000 ± 0.7071,")
    lines = write_page(finished, Measure("wer", "validation", "min"))
    assert len(lines) == 3 and "Best" not in "".join(lines)
    rising = ["good", "base", "like|it"]
    for better, order in (("min", rising), ("max", rising[::-1])):
        assert Measure("bleu", "test", better).ordered(by_cell(finished)) == order


def test_results_count_more_than_what_was_logged(sweep, finish):
    """The parameters that are evaluated may be an average, which was never logged."""
    run = sweep.runs[0]
    finish(run, 30.0)
    assert MEASURE.of(run) == pytest.approx(5.0)  # the best of 15, 7.5 and 5
    assert Measure("nll", "validation", "max").of(run) == pytest.approx(15.0)
    finish(run, 30.0, nll=7.0)
    assert MEASURE.of(run) == 7.0
    finish(run, 30.0, curve=False)
    assert MEASURE.of(run) is None and MEASURE.mean([run]) is None


def test_plots_are_drawn_of_what_there_is(finished):
    write_page(finished, MEASURE)
    page = (finished.directory / "sweep.md").read_text()
    for name in ("curves", "scores"):
        assert f"(plots/{name}.png)" in page
        assert (finished.directory / "plots" / f"{name}.svg").stat().st_size
    write_page(finished, Measure("wer", "validation", "min"))
    assert "curves.png" not in (finished.directory / "sweep.md").read_text()


@pytest.mark.parametrize("place", ["sweep.md", "plots/curves.png", "plots/scores.svg"])
def test_what_is_in_the_way_of_a_page_is_one_line(finished, place):
    (finished.directory / place).mkdir(parents=True)
    with pytest.raises(RunDirectoryError, match=rf"{place} cannot be written"):
        write_page(finished, MEASURE)
    assert not [*finished.directory.rglob("*.partial*")]


def test_a_page_of_a_part_says_so(sweep, finish):
    finish(sweep.runs[0], 30.0)
    (overview, _, best, _) = write_page(sweep, MEASURE)
    assert list(rows_of(overview)) == ["cell", "---", "base"] and "base, 5.0000, in" in best
    page = (sweep.directory / "sweep.md").read_text()
    assert "**Only 1 of 6 runs are finished.**" in page and "## Differences" not in page


def test_what_was_evaluated_on_another_text_is_not_tested(sweep, finish):
    for run in sweep.runs:
        finish(run, 30.0 if run.cell == "base" else 10.0, text=f"t{run.cell == 'good'}")
    overview, *_ = write_page(sweep, MEASURE)
    rows = rows_of(overview)
    assert "**" not in rows["good"] and "**" in rows[r"like\|it"]
    page = (sweep.directory / "sweep.md").read_text()
    assert "Not tested, for test is another text there: good." in page


def test_alignment_errors_of_attributions_are_in_the_table(sweep, finish):
    for run in sweep.runs[:1]:
        finish(run, 30.0, more={"match_occlusion": 80.0, "aer_occlusion": 20.0, "aer": 25.0})
    overview, *_ = write_page(sweep, MEASURE)
    assert overview.splitlines()[0] == "| cell | seeds | BLEU | aer | perplexity | aer occlusion |"
    assert rows_of(overview)["base"] == "| base | 1 | 30.00 | 25.00 | 3.00 | 20.00 |"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, MEASURE),
        ("bleu", Measure("bleu", "validation", "max")),
        ("test.accuracy", Measure("accuracy", "test", "max")),
        ("aer", Measure("aer", "validation", "min")),
        ("test.aer_value_norms", Measure("aer_value_norms", "test", "min")),
        ("test.match_occlusion", Measure("match_occlusion", "test", "max")),
        ("test.mine:max", Measure("mine", "test", "max")),
    ],
)
def test_a_metric_says_which_values_are_good(sweep, text, expected):
    assert chosen_measure(text, sweep) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("aerial", "expected aerial:min or aerial:max"),
        ("mine", "expected mine:min or mine:max, for nothing says which is better, found 'mine'"),
        ("a b", r"expected \[SPLIT.\]NAME\[:min|max\], found 'a b'"),
        ("bleu:low", "found 'bleu:low'"),
    ],
)
def test_a_metric_that_nobody_knows_is_one_line(sweep, text, words):
    with pytest.raises(UserError, match=f"--metric: .*{words}"):
        chosen_measure(text, sweep)
