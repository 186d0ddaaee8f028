import pytest

from attention_jax.data.tasks import Texts
from experiments import coverage_vs_supervised, disagreement, untranslated, untranslated_counts
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
    texts = [text for source in SOURCES for text in (source, translated(source))]
    disagreement.save(whole.shared(disagreement.TEXTS), texts)
    for run, words in ((whole, slice(None)), (short, slice(1, None))):
        outputs = [translated(source, words) for source in SOURCES]
        run.record.mkdir(parents=True)
        disagreement.save(run.record / disagreement.OUTPUTS, outputs)
    targets = [translated(source) for source in SOURCES]
    train = Texts(SOURCES, targets, [[target] for target in targets], list(range(len(SOURCES))))
    path = tmp_path / untranslated_counts.FILE
    untranslated_counts.save(path, untranslated.untranslated(train, [whole, short]))
    counted = untranslated_counts.load(path)
    assert all(measure.counts[:, 1].tolist() == [3] * len(SOURCES) for measure in counted.values())
    found = {name: corpus_score(measure) for name, measure in counted.items()}
    assert found[untranslated_counts.REFERENCE] == found[whole.name] == pytest.approx(0, abs=1)
    assert found[short.name] == pytest.approx(100 / 3, abs=3)
