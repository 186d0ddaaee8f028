import numpy as np
import pytest

from attention_jax.analysis.dropped_words import MAX_WORDS, dropped_word_counts
from attention_jax.data.examples import Texts
from attention_jax.errors import RunDirectoryError
from attention_jax.evaluation.seeds import corpus_score
from attention_jax.sweeps import archive
from attention_jax.sweeps.archive import Record
from attention_jax.sweeps.kept_files import keep_lines
from experiments import coverage_vs_supervised
from experiments.kit import disagreement
from experiments.kit import dropped_word_counts as untranslated_counts

DICTIONARY = {"red": "rot", "old": "alt", "dog": "Hund", "cat": "Katze", "runs": "rennt",
              "sits": "sitzt"}  # fmt: skip
SOURCES = [f"{adjective} {noun} {verb}" for adjective in ("red", "old")
           for noun in ("dog", "cat") for verb in ("runs", "sits")]  # fmt: skip


def translated(source, words=slice(None)):
    return " ".join(DICTIONARY[word] for word in source.split()[words])


def test_untranslated_counts_what_the_outputs_leave_out(tmp_path, repository, monkeypatch):
    monkeypatch.chdir(repository)
    # Every word is a content word here: none is among the most frequent of so small a text.
    monkeypatch.setattr("attention_jax.analysis.dropped_words.function_words", lambda _: set())
    grid = coverage_vs_supervised.make_grid()
    whole, short = [run for run in grid.runs(tmp_path, tmp_path) if run.cell == "29k_base"][:2]
    lines = [text for source in SOURCES for text in (source, translated(source))]
    keep_lines(whole.shared(disagreement.TEXTS), lines)
    for run, words in ((whole, slice(None)), (short, slice(1, None))):
        outputs = [translated(source, words) for source in SOURCES]
        its = Record(run.cell, run.seed, {}, {}, {}, {}, lines={disagreement.OUTPUTS: outputs})
        archive.add(run.records, [its])
    targets = [translated(source) for source in SOURCES]
    train = Texts(SOURCES, targets, [[target] for target in targets], list(range(len(SOURCES))))
    path = tmp_path / untranslated_counts.FILE
    sources, outputs = disagreement.texts([whole, short])
    counts = dropped_word_counts(train, sources, outputs)
    untranslated_counts.save(path, counts, outputs)
    counted = untranslated_counts.load(path, outputs)
    assert counted.keys() == outputs.keys()
    assert all(measure.counts[:, 1].tolist() == [3] * len(SOURCES) for measure in counted.values())
    found = {name: corpus_score(measure) for name, measure in counted.items()}
    assert found[disagreement.REFERENCE] == found[whole.name] == pytest.approx(0, abs=1)
    assert found[short.name] == pytest.approx(100 / 3, abs=3)


def test_pairs_that_are_too_long_for_the_aligner_do_not_count(monkeypatch):
    monkeypatch.setattr("attention_jax.analysis.dropped_words.function_words", lambda _: set())
    targets = [translated(source) for source in SOURCES]
    train = Texts(SOURCES, targets, [[target] for target in targets], list(range(len(SOURCES))))
    long = " ".join(["word"] * (MAX_WORDS + 1))
    outputs = {"long": [*targets[1:], long], "none": [*targets[1:], ""]}
    counts = dropped_word_counts(train, [*SOURCES[1:], SOURCES[0]], outputs)
    assert counts["long"][-1] == (0, 0) and counts["none"][-1] == (3, 3)


def test_counts_of_other_outputs_are_not_known(tmp_path):
    path = tmp_path / untranslated_counts.FILE
    assert untranslated_counts.load(path, {"a": ["one"]}) == {}
    outputs = {"a": ["one", "two"], "b": ["three", "four"]}
    untranslated_counts.save(path, {name: [(0, 1), (1, 2)] for name in outputs}, outputs)
    assert untranslated_counts.load(path, outputs).keys() == outputs.keys()
    again = {**outputs, "b": ["three", "five"], "c": ["six"]}
    assert untranslated_counts.load(path, again).keys() == {"a"}


def test_counts_in_another_form_are_one_line(tmp_path):
    path = tmp_path / untranslated_counts.FILE
    np.savez(path, a=np.zeros((2, 2), np.uint8))
    message = "with checksums, counts, names, found a; python -m experiments.dropped_words counts"
    with pytest.raises(RunDirectoryError, match=message):
        untranslated_counts.load(path, {"a": ["one"]})
