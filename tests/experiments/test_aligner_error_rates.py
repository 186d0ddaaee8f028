import dataclasses
import json
from types import SimpleNamespace

import pytest

from attention_jax.errors import UserError
from attention_jax.evaluation.pharaoh import marked_links
from experiments import aligner_error_rates as teachers
from experiments import coverage_vs_supervised as experiment

DICTIONARY = {"a": "ein", "dog": "Hund", "cat": "Katze", "runs": "rennt", "sits": "sitzt"}


@pytest.fixture
def pairs():
    sources = [["a", noun, verb] for noun in ("dog", "cat") for verb in ("runs", "sits")]
    return sources, [[DICTIONARY[word] for word in words] for words in sources]


@pytest.mark.parametrize("method", ["ibm1", "hmm", "agreement", "spelling"])
def test_teacher_scores_are_of_the_test_pairs(pairs, method):
    train = tuple(side * 5 for side in pairs)
    test = ([["a", "cat", "runs"], ["a", "dog", "sits"]], [["ein", "Katze", "rennt"], ["sitzt"]])
    golds = {0: marked_links([(0, 0), (1, 1), (2, 2)])}
    found = teachers.teacher_scores(method, train, test, golds)
    assert found.keys() == {"forward", "reverse", "symmetrized"}
    assert all(value == pytest.approx(0.0) for value in found.values())
    wrong = {0: marked_links([(0, 2), (1, 0), (2, 1)])}
    assert all(
        value == pytest.approx(100.0)
        for value in teachers.teacher_scores(method, train, test, wrong).values()
    )


def test_teachers_and_others_are_measured_unless_they_are_recorded(tmp_path, monkeypatch):
    values, asked = {"full": False, "out": str(tmp_path)}, []
    monkeypatch.setattr(teachers, "cli", SimpleNamespace(value=values.get))
    scores = {"forward": 1.0, "reverse": 2.0, "symmetrized": 3.0}
    monkeypatch.setattr(teachers, "_measured", lambda run, method: asked.append(method) or scores)
    teachers.main()
    path = tmp_path / "coverage_vs_supervised" / experiment.TEACHERS
    found = json.loads(path.read_text())
    assert {name.partition("_")[2] for name in found} == {"hmm", "eflomal", "agreement", "spelling"}
    assert len(asked) == len(found) == 8
    path.write_text(json.dumps({**found, "29k_eflomal": {"forward": 9.0}}))
    teachers.main()
    assert len(asked) == 8 and json.loads(path.read_text())["29k_eflomal"] == {"forward": 9.0}


def test_a_grid_without_teachers_is_refused(tmp_path, monkeypatch):
    values = {"full": False, "out": str(tmp_path)}
    monkeypatch.setattr(teachers, "cli", SimpleNamespace(value=values.get))
    untaught = dataclasses.replace(experiment.make_grid(), cells={"29k_base": {}})
    monkeypatch.setattr(experiment, "make_grid", lambda smoke: untaught)
    with pytest.raises(UserError, match="expected cells with a teacher, found none"):
        teachers.main()
