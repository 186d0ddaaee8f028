import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from attention_jax.evaluation import seeds
from experiments import luong2015_ablation as experiment
from tests.experiments.measured import alignments, made_record, shares, translations, write_records


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


@pytest.fixture
def records(tmp_path, numpy_rng, monkeypatch):
    """Records of all runs, where feeding and local-p are worth something, and dot the most."""
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid = experiment.make_grid()
    runs = [run for run in grid.runs(tmp_path / "runs", tmp_path) if run.seed < 2]
    records = []
    for run in runs:
        rate = 0.8 if run.cell.endswith("_feed") else 0.6
        rate += 0.05 * run.cell.startswith("local_p") + 0.1 * ("_dot" in run.cell)
        measures = {"bleu": translations(numpy_rng, rate)}
        for name in ("missing", "repeated"):
            measures[name] = shares(numpy_rng, name, 0.3)
        if run.cell.startswith(experiment.PLACES):
            measures["aer"] = alignments(numpy_rng, rate)
            measures["match"] = shares(numpy_rng, "match", rate)
        perplexity = 5.0 if run.cell == "base" else 4.0
        records.append(made_record(run, measures, perplexity=perplexity))
    write_records(runs, records)
    return grid, runs


def rows_of(section):
    return {line.split(" | ")[0].strip("| "): line for line in section.splitlines() if "|" in line}


def test_every_score_is_tried_in_every_place_with_and_without_feeding():
    cells = experiment.systems()
    assert len(cells) == 3 + 2 * len(experiment.PLACES) * len(experiment.SCORES)
    configs = {run.cell: run.resolved() for run in experiment.make_grid().runs(Path(), Path())}
    attentions = {str(config["model"]["attention"]) for config in configs.values()}
    assert len(attentions) == 1 + len(experiment.PLACES) * len(experiment.SCORES)
    for name, config in configs.items():
        assert config["model"]["decoder"]["input_feeding"] == name.endswith("_feed")


def test_steps_change_one_thing_at_a_time():
    runs = experiment.make_grid().runs(Path(), Path())
    configs = {run.cell: run.resolved()["model"] for run in runs if run.seed == 0}
    base, reverse, dropout = (configs[name] for name in experiment.STEPS[:3])
    directions = [each["sources"]["source"]["encoder"].pop("direction") for each in (base, reverse)]
    assert directions == ["forward", "backward"]
    assert base == reverse
    assert dropout.pop("embedding_dropout") and dropout.pop("output_dropout")
    assert dropout["attention"]["name"] == "none"


def test_write_report_has_our_numbers_beside_the_papers(records, tmp_path):
    grid, runs = records
    (tmp_path / grid.name).mkdir(exist_ok=True)
    (tmp_path / grid.name / "reading.md").write_text("Feeding pays.")
    page, plot = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert plot.exists() and f"({plot.relative_to(tmp_path)})" in text
    assert "## Reading\n\nFeeding pays." in text
    assert "Only 54 of 81 runs" in text
    sections = re.split("^## ", text, flags=re.MULTILINE)
    steps = rows_of(sections[1])
    assert len(steps) == 2 + len(experiment.STEPS)
    assert "5.00 ± 0.00" in steps["base"] and steps["base"].endswith("| 10.6 | 11.3 | – |")
    assert "| – | – |" in steps["base"]  # no alignment without attention
    fed = rows_of(sections[2])
    assert fed["local-p (general)"].endswith("| 5.9 | 19 | 36 |")
    assert fed["local-m (dot)"].endswith("| > 7.0 | – | – |")
    assert len(fed) == 2 + 12
    assert len(rows_of(sections[3])) == 2 + 12
    feeding = rows_of(sections[4])
    assert len(feeding) == 2 + 12
    assert "| +" in feeding["global (dot)"] and "| -" in feeding["global (dot)"]
    places, scores = rows_of(sections[5]), rows_of(sections[6])
    assert len(places) == 2 + 8 and len(scores) == 2 + 9
    assert "| +" in places["local-p (general)"] and "global (general)" not in places
    assert "| -" in scores["local-p (general)"] and "local-p (dot)" not in scores


def test_every_system_is_drawn_beside_the_same_one_without_feeding(records, tmp_path, monkeypatch):
    drawn = {}
    monkeypatch.setattr(
        experiment, "score_dots", lambda panels, title: drawn.update(panels) or Figure()
    )
    experiment.write_report(*records, tmp_path)
    assert list(drawn) == ["perplexity ↓", "BLEU ↑", "AER ↓"]
    bleu, fed = drawn["BLEU ↑"], drawn["BLEU ↑"]["with input feeding"]
    assert list(bleu["no attention"]) == ["base", "+ reverse", "+ dropout"]
    assert fed.keys() == bleu["without input feeding"].keys() and len(fed) == 12
    assert "no attention" not in {s for s, lines in drawn["AER ↓"].items() if lines}
    assert fed["global (dot)"].mean > bleu["without input feeding"]["global (dot)"].mean
