import pytest

from attention_jax.data.tasks import Texts
from attention_jax.inference.dropped_words import dropped_word_counts
from experiments import coverage_vs_supervised, disagreement, untranslated_counts
from experiments.seeds import corpus_score

DICTIONARY = {"red": "rot", "old": "alt", "dog": "Hund", "cat": "Katze", "runs": "rennt",
              "sits": "sitzt"}  # fmt: skip
SOURCES = [f"{adjective} {noun} {verb}" for adjective in ("red", "old")
           for noun in ("dog", "cat") for verb in ("runs", "sits")]  # fmt: skip


def translated(source, words=slice(None)):
    return " ".join(DICTIONARY[word] for word in source.split()[words])


def test_untranslated_counts_what_the_outputs_leave_out(tmp_path, repository, monkeypatch):
    monkeypatch.chdir(repository)
    # Every word is a content word here: none is among the most frequent of so small a text.
    monkeypatch.setattr("attention_jax.inference.dropped_words.function_words", lambda _: set())
    grid = coverage_vs_supervised.make_grid()
    whole, short = [run for run in grid.runs(tmp_path, tmp_path) if run.cell == "29k_base"][:2]
    lines = [text for source in SOURCES for text in (source, translated(source))]
    disagreement.save(whole.shared(disagreement.TEXTS), lines)
    for run, words in ((whole, slice(None)), (short, slice(1, None))):
        outputs = [translated(source, words) for source in SOURCES]
        run.record.mkdir(parents=True)
        disagreement.save(run.record / disagreement.OUTPUTS, outputs)
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


def test_counts_of_other_outputs_are_not_known(tmp_path):
    path = tmp_path / untranslated_counts.FILE
    assert untranslated_counts.load(path, {"a": ["one"]}) == {}
    outputs = {"a": ["one", "two"], "b": ["three", "four"]}
    untranslated_counts.save(path, {name: [(0, 1), (1, 2)] for name in outputs}, outputs)
    assert untranslated_counts.load(path, outputs).keys() == outputs.keys()
    again = {**outputs, "b": ["three", "five"], "c": ["six"]}
    assert untranslated_counts.load(path, again).keys() == {"a"}
