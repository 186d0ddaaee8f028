import numpy as np

from attention_jax.evaluation.bleu import bleu_statistics
from experiments.kit import disagreement

SOURCES = ["a dog runs .", "two men sit .", "she *sings* ."]
REFERENCES = ["ein Hund rennt schnell .", "zwei Männer sitzen hier .", "sie singt ein Lied ."]


def counts_of(outputs):
    return bleu_statistics(outputs, [[text] for text in REFERENCES])


def test_most_different_finds_where_only_one_system_is_right():
    right, wrong = list(REFERENCES), ["falsch falsch falsch falsch"] * 3
    other = [wrong[0], right[1], wrong[2]]
    counts = {"a": counts_of([right[0], right[1], wrong[2]]), "b": counts_of(other)}
    assert disagreement.most_different(counts, 2)[0] == 0


def test_page_shows_every_system_and_no_markup_of_the_text():
    outputs = {"a": ["ein Hund", "x", "y"], "b": ["eine Katze", "x", "y"]}
    pairs = [text for pair in zip(SOURCES, REFERENCES, strict=True) for text in pair]
    counts = {name: counts_of(texts) for name, texts in outputs.items()}
    labels = {"a": "system A", "b": "B"}
    page = "\n".join(disagreement.page(pairs, outputs, counts, labels, number=3))
    assert "| system A | ein Hund |" in page and "| B | eine Katze |" in page
    assert "she \\*sings\\* ." in page
    assert page.count("### ") == 3
    assert np.all([reference in page for reference in REFERENCES])
