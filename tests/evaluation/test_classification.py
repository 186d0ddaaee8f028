import pytest

from attention_jax.evaluation.classification import classification_scores, scores_by_label

OUTPUTS = ["a", "a", "b", "b", "c"]
LABELS = ["a", "b", "b", "b", "a"]


def test_each_label_has_the_counts_of_a_hand():
    """a: 1 right of 2 told and 2 given; b: 2 of 2 and 3; c: 0 of 1 and none."""
    found = scores_by_label(OUTPUTS, LABELS)
    assert found["a"] == (50.0, 50.0, 50.0, 2)
    assert found["b"] == pytest.approx((100.0, 200 / 3, 80.0, 3))
    assert found["c"] == (0.0, 0.0, 0.0, 0)


def test_macro_f1_is_of_the_labels_that_there_are():
    found = classification_scores(OUTPUTS, LABELS)
    assert found == pytest.approx({"label_accuracy": 60.0, "macro_f1": 65.0})
    assert classification_scores([], []) == {"label_accuracy": 0.0, "macro_f1": 0.0}
