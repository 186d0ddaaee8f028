"""Hard against soft attention: the cells of the grid, their sizes, and the page of records."""

import dataclasses
import shutil

import jax
import numpy as np
import pytest

from attention_jax.errors import RunDirectoryError
from attention_jax.evaluation import seeds
from attention_jax.models import build_model
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.load import load_run
from attention_jax.runs.run_directory import read_json
from attention_jax.sweeps import archive
from attention_jax.sweeps.kept_files import kept_arrays
from experiments import hard_vs_soft as experiment
from experiments.kit import kept_counts, sample_map, seed_ensemble, word_outcomes
from tests.experiments.measured import made_record

VOCABULARIES = 77, 42  # of Turkish with 1,000 pairs


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def test_systems_have_as_many_parameters(tmp_path):
    compared = {**experiment.SYSTEMS, **experiment.FORMS}
    runs = experiment.make_grid().runs(tmp_path, tmp_path)[: len(compared)]
    sizes = {}
    for run in runs:
        model = build_model(from_config_dict(run.resolved()).model, *VOCABULARIES)
        shapes = jax.tree.leaves(jax.eval_shape(model.init, jax.random.key(0)))
        sizes[run.cell.partition(".")[2]] = sum(int(np.prod(leaf.shape)) for leaf in shapes)
    assert sizes.keys() == compared.keys()
    middle = np.mean([min(sizes.values()), max(sizes.values())])
    assert max(abs(size / middle - 1) for size in sizes.values()) < 0.05, sizes


def test_what_tells_most_comes_first(tmp_path):
    """What has records; then exact against soft on all languages; then what has a baseline."""
    runs = experiment.make_grid().runs(tmp_path, tmp_path)
    beside = len(experiment.FORMS) + len(experiment.COPYING)
    tried = 20 * len(experiment.SYSTEMS) + beside + 19 + len(experiment.SYLLABLES) + 4
    assert len(runs) == len({(run.cell, run.seed) for run in runs}) == 3 * tried
    cells = [tuple(run.cell.split(".")) for run in runs[:tried]]
    everything = len(experiment.SYSTEMS) + beside
    assert {condition for condition, _ in cells[:everything]} == {"turkish_medium"}
    assert cells[everything : everything + 20] == [
        *((f"{language}_medium", system) for language in ("german", "finnish", "spanish", "russian")
          for system in ("soft", "exact")),
        *((f"{language}_medium", "soft_decided")
          for language in ("german", "finnish", "spanish", "russian")),
        *((language, system) for language in ("hun", "kor", "fre", "eng_us")
          for system in ("soft_feeding", "oracle_steps")),
    ]  # fmt: skip
    conditions = [*dict.fromkeys(condition for condition, _ in cells[::-1])]
    assert len(conditions) == 20 and {"eng_us", "turkish_high"} <= set(conditions[:6])


@pytest.mark.parametrize("condition", ["finnish_low", "eng_us"])
def test_a_cell_is_a_config(condition, tmp_path):
    for run in experiment.make_grid().runs(tmp_path, tmp_path):
        condition_of, _, system = run.cell.partition(".")
        if condition_of == condition and system in ("soft", "oracle_steps", "exact"):
            config = from_config_dict(run.resolved())
            assert config.data.language == condition.removesuffix("_low")
            assert getattr(config.data, "letters", "whole") == "whole"
            assert config.task.label == ("inflection" if "_" == condition[7:8] else "pronunciation")


def test_korean_is_read_in_jamo(tmp_path):
    for run in experiment.make_grid().runs(tmp_path, tmp_path):
        letters = {"kor.soft": "parts", "kor.oracle_steps": "parts", "kor.smoothed_both": "both"}
        if run.cell in letters:
            assert from_config_dict(run.resolved()).data.letters == letters[run.cell]


def test_soft_attention_that_decides_is_trained_as_soft_attention_is(tmp_path):
    runs = experiment.make_grid().runs(tmp_path, tmp_path)
    soft, decided = (
        next(from_config_dict(run.resolved()) for run in runs if run.cell == f"turkish_medium.{of}")
        for of in ("soft", "soft_decided")
    )
    attention = decided.model.attention
    assert attention.score == soft.model.attention and attention.at_test.name == "argmax"
    assert attention.estimator.expectation_share == 1.0
    assert dataclasses.replace(decided.model, attention=soft.model.attention) == soft.model
    assert dict(decided.objectives) == {
        **soft.objectives, "reinforce": decided.objectives["reinforce"],
    }  # fmt: skip


def test_systems_that_copy_differ_from_soft_attention_as_they_say(tmp_path):
    runs = experiment.make_grid().runs(tmp_path, tmp_path)
    configs = {
        run.cell.partition(".")[2]: from_config_dict(run.resolved())
        for run in runs
        if run.cell.startswith("turkish_medium.") and run.seed == 0
    }
    assert configs["soft_feeding"].objectives["nll"].label_smoothing == 0.0
    for name in experiment.COPYING:
        assert configs[name].objectives["nll"].label_smoothing == 0.1
        assert configs[name].data.setting == "medium"
    assert configs["pointer_generator"].model.readout.name == "pointer_generator"
    assert configs["rotary"].data.tags == "after" and configs["smoothed"].data.tags == "apart"
    for name in ("rotary", "transformer"):  # soft, and beside it what copies; else the same
        soft, copying = (configs[each].model for each in (name, f"{name}_copying"))
        assert (soft.readout.name, copying.readout.name) == ("softmax", "pointer_generator")
        assert dataclasses.replace(copying, readout=soft.readout) == soft
        assert ("rope" in soft.attention.refinements) == (name == "rotary")
        assert build_model(copying, *VOCABULARIES)


def test_outcomes_are_read_from_predictions(tmp_path):
    table = tmp_path / "predictions.test.tsv"
    table.write_text('source\toutput\treference\nev N;PL\tev"ler\tevler\nel N\tel\tel\n')
    found = word_outcomes.outcomes(table, spaced=False)
    np.testing.assert_array_equal(found.counts, [[0, 1, 5, 1], [1, 0, 2, 1]])
    assert found.score(found.counts.sum(0)) == 50.0
    np.testing.assert_array_equal(
        word_outcomes.outcomes(table, spaced=True).counts[0], [0, 1, 1, 1]
    )
    table.write_text("source\toutput\treference\n")
    with pytest.raises(RunDirectoryError, match="expected predictions, found none"):
        word_outcomes.outcomes(table, spaced=False)


def test_a_run_leaves_its_outcomes(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    run = load_run(tmp_path / "run")
    word_outcomes.record(run)
    counts = kept_arrays(tmp_path / "run" / word_outcomes.FILE, "counts")[kept_counts.ARRAY]
    assert counts.shape == (128, 4) and counts[:, 0].mean() > 0.9
    assert counts[:, 2].sum() > 2 * len(counts)  # words, not letters
    assert read_json(run.directory.run)["num_parameters"] > 10_000


def test_the_page_shows_systems_beside_published_figures(tmp_path, numpy_rng, monkeypatch):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid = experiment.make_grid()
    shown = ("turkish_medium", "german_medium.soft", "german_medium.exact", "hun")
    runs = [run for run in grid.runs(tmp_path / "runs", tmp_path) if run.cell.startswith(shown)]
    records = []
    for run in runs:
        is_right = numpy_rng.random(200) < (0.6 if run.cell.endswith(".soft") else 0.9)
        counts = np.stack([is_right, 1 - is_right, 0 * is_right + 5, 0 * is_right + 1], axis=-1)
        together = {"seeds": np.arange(run.seed + 1), "wer": np.float64(11.5 - run.seed)}
        records.append(made_record(
            run, config=run.resolved(), exact_match=100 * is_right.mean(), wer=12.5,
            **({"attention_entropy": 0.0125} if run.cell == "german_medium.soft" else {}),
            arrays={
                **({seed_ensemble.FILE: together} if run.cell.startswith("hun.soft") else {}),
                word_outcomes.FILE: {kept_counts.ARRAY: np.float32(counts)},
                sample_map.FILE: sample_map.arrays(np.eye(3), ["e", "v", "</s>"], ["e", "v", "l"]),
            },
        ))  # fmt: skip
    archive.add(runs[0].records, records)
    page, picture = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert "| yoyodyne, pointer-generator rotary Transformer | 89.4 |" in text
    assert "| yoyodyne, pointer-generator Transformer | 81.8 |" in text
    assert "| baseline of the task | 1.8 |" in text
    assert "| pointer, oracle STEPs | 12.50 ± 0.00 |" in text
    assert "| soft, ensemble of the seeds | 9.50 |" in text  # of all three, not of the first two
    assert "pointer, oracle STEPs, ensemble" not in text
    (row,) = [line for line in text.splitlines()
              if line.startswith("| turkish medium | pointer, oracle STEPs | +")]  # fmt: skip
    assert "| < 0.0" in row
    (row,) = [line for line in text.splitlines()
              if line.startswith("| 1,000 training pairs | exact, order 0 | 2 | +")]  # fmt: skip
    assert "| < 0.0" in row and "| Pronunciation | " not in text  # of one language alone
    assert "| soft, input feeding | 1,234 | 1,234 |" in text
    assert "| soft | – | 0.013 ± 0.000 |" in text  # Turkish, German
    assert picture.read_bytes().startswith(b"\x89PNG") and "hard_vs_soft/maps.png" in text


def test_every_condition_has_a_word_whose_attention_is_kept():
    languages = {each.overrides["data.language"] for each in experiment.conditions().values()}
    assert languages == set(sample_map.WORDS)
