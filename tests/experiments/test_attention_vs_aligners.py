"""Attention against aligners: the systems of the grid, and the page of records."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from attention_jax.analysis.gold_links import GoldLinks
from attention_jax.evaluation import seeds
from attention_jax.evaluation.pharaoh import marked_links
from attention_jax.evaluation.word_weights import WordWeights
from attention_jax.models import build_model
from attention_jax.objectives import build_objective
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.files import write_json
from attention_jax.sweeps.kept_files import kept_arrays, kept_lines
from experiments import attention_vs_aligners as experiment
from experiments.kit import linked_words
from tests.experiments.measured import alignments, made_record, translations, write_records

GOLDS = ["0-0 1-1 2?2", "0-0"]


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def test_the_taught_know_the_word_that_they_align(tmp_path):
    for run in experiment.make_grid().runs(tmp_path, tmp_path):
        config = from_config_dict(run.resolved())
        objective = build_objective(run.resolved()["objectives"])
        objective.check(build_model(config.model, 50, 60))
        is_taught = not run.cell.endswith(experiment.BASE)
        assert objective.alignment_shift == is_taught
        assert (config.data.alignment.method != "none") == is_taught
        languages = (config.data.source_language, config.data.target_language)
        assert "_".join(languages) == run.cell.partition(".")[0]


WHOLE = np.uint16(10_000)
# Of the first pair's three words, the right links; the second has a word of each, as a fraction.
WEIGHTS = {linked_words.WEIGHTS: {"0": WHOLE * np.eye(3, dtype=np.uint16), "1": np.eye(1)}}


def of_links(links):
    """Returns what a record keeps of these links and of the gold ones."""
    return {linked_words.LINKS: links, linked_words.GOLD: GOLDS}


@pytest.fixture
def runs(tmp_path, numpy_rng):
    """Two seeds of the base and the module, the module's German to English of one seed only."""
    found = [
        run for run in experiment.make_grid().runs(tmp_path / "runs", tmp_path)
        if run.seed < 2 and run.cell.endswith((experiment.BASE, "module_spelling"))
        and (run.seed, run.cell) != (1, "de_en.module_spelling")
    ]  # fmt: skip
    records = []
    for run in found:
        measures = {"bleu": translations(numpy_rng, 0.7), "aer": alignments(numpy_rng, 0.8, 2)}
        right = ["0-0 1-1 2-2", "0-0"]
        wrong = ["0-0 1-1", "1-1"] if run.cell.startswith("en") else ["0-0 2-1", "1-1"]
        record = made_record(run, measures, arrays=WEIGHTS)
        is_base = run.cell.endswith(experiment.BASE)
        links = of_links(wrong if is_base else right)
        records.append(dataclasses.replace(record, lines=links))
    write_records(found, records)
    return found


def test_links_of_both_directions_are_counted_together(runs):
    by_name = {run.name: run for run in runs}
    pair = by_name["en_de.base/seed0"], by_name["de_en.base/seed0"]
    # 0-0, 1-1, and of the other direction 2-1, which is the link (1, 2): beside (1, 1), and grown.
    measure = linked_words.symmetrized(*pair, "union")
    assert measure.counts.tolist() == [[3, 2, 2, 2], [1, 1, 0, 0]]
    measure = linked_words.symmetrized(*pair, "intersection")
    assert measure.counts.tolist() == [[1, 2, 1, 1], [1, 1, 0, 0]]


@pytest.mark.parametrize("two_way", [True, False])
@pytest.mark.parametrize("has_gold", [True, False])
def test_links_and_weights_of_pairs_with_gold_links_are_kept(
    tmp_path, monkeypatch, has_gold, two_way
):
    weights = WordWeights.of(np.array([[0.25, 0.75], [1.0, 0.0]]))
    opposite = WordWeights.of(np.array([[0.5, 0.5], [0.0, 1.0]]))
    turned = SimpleNamespace(linking=SimpleNamespace(words=opposite)) if two_way else None
    attention = SimpleNamespace(linking=SimpleNamespace(words=weights), turned=turned)
    compared = SimpleNamespace(forward=[None, attention, None])
    monkeypatch.setattr(linked_words, "compare_with_gold", lambda *_: compared)
    gold = GoldLinks({1: marked_links([(1, 0)], [(0, 1)])}) if has_gold else None
    run = SimpleNamespace(directory=SimpleNamespace(path=tmp_path))
    linked_words.record(run, None, gold)
    assert kept_lines(tmp_path / linked_words.LINKS) == ["0-1 1-0"][:has_gold]
    assert kept_lines(tmp_path / linked_words.GOLD) == ["1-0 0?1"][:has_gold]
    arrays = kept_arrays(tmp_path / linked_words.WEIGHTS, "weights")
    assert {name: each.tolist() for name, each in arrays.items()} == (
        {"0": (10_000 * weights.whole).tolist()} if has_gold else {}
    )
    arrays = kept_arrays(tmp_path / linked_words.OPPOSITE, "weights")
    assert {name: each.tolist() for name, each in arrays.items()} == (
        {"0": (10_000 * opposite.whole).tolist()} if has_gold and two_way else {}
    )


@pytest.mark.parametrize(
    ("how", "counts"),
    [("union", [[4, 2, 2, 3], [1, 1, 1, 1]]), ("product", [[2, 2, 1, 2], [1, 1, 1, 1]]),
     ("geometric_mean", [[2, 2, 1, 2], [1, 1, 1, 1]])],
)  # fmt: skip
def test_a_run_of_a_two_way_aligner_is_joined_with_itself(runs, tmp_path, how, counts):
    """Its own direction links 0-0, 1-1 and 2-2, the opposite one 0-0, 1-2 and 2-2."""
    [run] = [
        each for each in experiment.make_grid().runs(tmp_path / "others", tmp_path / "two")
        if each.name == "en_de.two_way_spelling/seed0"
    ]  # fmt: skip
    opposite = np.uint16([[1, 0, 0], [0, 0, 1], [0, 0, 1]])
    arrays = {**WEIGHTS, linked_words.OPPOSITE: {"0": WHOLE * opposite, "1": np.eye(1)}}
    record = made_record(run, arrays=arrays)
    write_records([run], [dataclasses.replace(record, lines=of_links(["0-0 1-1 2-2", "0-0"]))])
    assert linked_words.is_two_way(run) and not linked_words.is_two_way(runs[0])
    found = experiment._joined({experiment.FORWARD: {"two_way_spelling": [run]}}, how)
    assert found["two_way_spelling"][0]["aer"].counts.tolist() == counts
    assert not any(name.startswith("de_en.two_way") for name in experiment.make_grid().cells)


@pytest.mark.parametrize("how", ["product", "geometric_mean"])
def test_links_of_both_directions_weights_are_counted(runs, how):
    by_name = {run.name: run for run in runs}
    pair = by_name["en_de.base/seed0"], by_name["de_en.base/seed0"]
    measure = linked_words.symmetrized(*pair, how)
    assert measure.counts.tolist() == [[3, 2, 2, 3], [1, 1, 1, 1]]


def test_the_page_shows_both_directions_beside_the_aligners(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    scores = {"forward": 8.5, "reverse": 7.5, "symmetrized": 7.25}
    folder = tmp_path / experiment.teachers.NAME
    folder.mkdir()
    write_json(folder / experiment.teachers.TEACHERS, {"29k_hmm": scores, "4k_hmm": scores})
    written, plot = experiment.write_report(runs[0].grid, runs, tmp_path)
    text = written.read_text()
    assert "| hmm | 8.50 | 7.50 | 7.25 |" in text and "4k" not in text
    each, both = [line for line in text.splitlines()
                  if line.startswith("| alignment module, taught by spelling | ")][:2]  # fmt: skip
    assert each.count("|") == 6
    assert both.count("0.00 | 0.00 to 0.00") == 3
    assert "AER against attention, untaught" in text and "BLEU against attention" in text
    assert plot.exists() and plot.relative_to(tmp_path).as_posix() in text


def test_without_gold_links_there_is_no_aer_of_both(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(linked_words, "_links", lambda run, file: [])
    (written,) = experiment.write_report(runs[0].grid, runs, tmp_path)
    text = written.read_text()
    assert "| both directions |" not in text and "aer.png" not in text
