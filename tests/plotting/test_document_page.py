import numpy as np

from attention_jax.plotting.document_page import ShownDocument, ShownSentence, document_page
from attention_jax.plotting.figure import ATTENTION

DOCUMENT = ShownDocument(
    "7", "pos", "neg",
    [
        ShownSentence(["not", "<good>"], np.array([0.2, 0.8]), 0.75, (False, True)),
        ShownSentence(["end"], np.array([0.0]), 0.25),
    ],
)  # fmt: skip


def test_words_are_shaded_by_weight_and_sentences_have_bars():
    page = document_page("a & b", [DOCUMENT])
    assert "<title>a &amp; b</title>" in page and "0 of 1 documents here" in page
    assert '<b class="w2">not</b> <b class="w9"><u>&lt;good&gt;</u></b>' in page
    assert f".w9 {{ background: {ATTENTION}99; }}" in page and f"background: {ATTENTION};" in page
    assert "<span>end</span>" in page  # without weight, no shade
    assert 'style="width: 100%" title="75.0 % of the document"' in page
    assert 'style="width: 33%"' in page
    assert '<span class="wrong">pos, not neg</span>' in page
    assert "<script" not in page and "http" not in page


def test_a_document_without_sentences_has_a_heading():
    page = document_page("t", [ShownDocument("1", "a", "a", [])])
    assert "<h2>1: a</h2>" in page and "1 of 1 documents" in page
