"""Small parallel texts: the drawn texts, the map of a sentence, and the page of records."""

import dataclasses

import numpy as np
import pytest

from attention_jax.evaluation import seeds
from attention_jax.runs.config import from_config_dict
from attention_jax.sweeps import archive
from experiments import small_text as experiment
from experiments.kit import sample_map
from tests.experiments.measured import made_record


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def test_every_cell_is_a_config(tmp_path):
    runs = experiment.make_grid().runs(tmp_path, tmp_path)
    configs = {run.cell: from_config_dict(run.resolved()) for run in runs if run.seed == 0}
    assert len(runs) == 3 * len(configs) == 3 * len(experiment.systems())
    for cell, config in configs.items():
        assert config.data.train_table.endswith(f"pairs.{cell.partition('.')[0]}.tsv")
    assert configs["6000.longer"].training.num_epochs == 40.0
    assert configs["6000.less_dropout"].model.output_dropout == 0.3
    by_hand = {config.data.batch_size for cell, config in configs.items() if "." in cell}
    assert by_hand == {80}


def test_smaller_texts_are_parts_of_larger_ones(tmp_path, monkeypatch):
    known = [(f"word {n}", f"Wort {n}") for n in range(40_000)]
    monkeypatch.setattr(experiment.pairs_of_tatoeba, "read_pairs", lambda archive: list(known))
    monkeypatch.setattr(experiment.storage, "obtain", lambda *arguments: tmp_path)
    experiment.draw_texts(tmp_path / "drawn")
    texts = [
        (tmp_path / "drawn" / f"pairs.{size}.tsv").read_text().splitlines()
        for size in experiment.SIZES
    ]
    assert [len(lines) for lines in texts] == list(experiment.SIZES)
    for smaller, larger in zip(texts, texts[1:], strict=False):
        assert larger[: len(smaller)] == smaller
    assert texts[0] != [f"{source}\t{target}" for source, target in known[:1000]]


@dataclasses.dataclass(frozen=True, eq=False)
class _Shares:
    """How much of each sentence is right."""

    counts: np.ndarray

    def score(self, sums):
        return 100 * sums[..., 0] / sums[..., 1]


@pytest.fixture
def finished(tmp_path, numpy_rng):
    """Three cells of the grid with records, of which one is better than the base."""
    weights = np.float32(numpy_rng.dirichlet(np.ones(3), 2))
    of_map = sample_map.arrays(weights, ["I", "go", "</s>"], ["Ich", "</s>"])
    grid, records = experiment.make_grid(), []
    runs = [
        run for run in grid.runs(tmp_path / "runs", tmp_path)
        if run.cell in ("1000", "6000", "6000.longer")
    ]  # fmt: skip
    for run in runs:
        right = numpy_rng.binomial(10, 0.7 if run.cell == "6000.longer" else 0.4, 200)
        found = seeds.resampled(_Shares(np.stack([right, np.full(200, 10)], -1).astype(float)))
        bleu = np.array([found.sentences, found.score, *found.draws])
        arrays = {sample_map.FILE: of_map, "resamples.test.npz": {"bleu": bleu}}
        curves = {"attention/entropy": {"validation": [[200, 400], [0.9, 0.31]]}}
        began = "2026-01-01T10:00:00+00:00"
        # The later seeds ran beside one another, and took longer.
        ended = "10:12:30" if run.seed == 0 else "10:21:30"
        facts = {"started": [began], "finished": f"2026-01-01T{ended}+00:00",
                 "hardware": {"cpus": 1 + (run.seed == 0),
                              "processor": "Intel(R) Xeon(R) Processor (AVX-512)"}}  # fmt: skip
        records.append(made_record(run, arrays=arrays, curves=curves, facts=facts, bleu=13.0))
    archive.add(runs[0].records, records)
    return grid, runs


def test_the_page_compares_settings_by_hand_with_the_printed_command(
    finished, tmp_path, monkeypatch
):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    page, picture = experiment.write_report(*finished, tmp_path)
    text = page.read_text()
    row = (
        "| 1,000 | as printed | 3 | 400 | 12.5 (Intel Xeon) | 13.00 ± 0.00 | 8.00 ± 0.00 |"
        " 0.31 ± 0.00 |"
    )
    assert row in text and "| 6,000 | rate 0.001, 40 epochs, batches of 80 | 3 | 400 |" in text
    start = "| 6,000 | rate 0.001, 40 epochs, batches of 80 | +"
    (tested,) = [line for line in text.splitlines() if line.startswith(start)]
    assert "| < 0.0" in tested
    assert picture.read_bytes().startswith(b"\x89PNG") and "small_text/maps.png" in text
