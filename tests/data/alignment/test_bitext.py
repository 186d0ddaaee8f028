"""The layout of a corpus: who is in which block, and which words meet in which cell."""

import numpy as np
import pytest

from attention_jax.data.alignment import bitext as bitext_module
from attention_jax.data.alignment.bitext import links_from_states, make_bitext

SOURCES = [["a", "b"], [], ["B", "a"], ["c"], ["a"]]
TARGETS = [["x"], ["x"], ["y"], ["x", "X"], []]


def test_pairs_of_the_same_lengths_form_a_block():
    bitext = make_bitext(SOURCES, TARGETS)
    shapes = [(b.pairs.tolist(), b.target_length, b.num_states) for b in bitext.blocks]
    assert shapes == [([3], 2, 2), ([0, 2], 1, 3)]
    assert (bitext.num_pairs, bitext.num_tokens, bitext.num_target_words) == (5, 4, 2)


def test_cells_name_the_pair_of_words_without_their_case(by_words):
    bitext = make_bitext(SOURCES, TARGETS)
    cells = {tuple(bitext.blocks[0].view(bitext.cells)[0, row].tolist()) for row in (0, 1)}
    assert len(cells) == 1  # c and NULL meet x, then X
    first, second = bitext.blocks[1].view(bitext.cells)
    assert bitext.source_of[first[0, :2]].tolist() == bitext.source_of[second[0, 1::-1]].tolist()
    assert not {*first.ravel().tolist()} & {*second.ravel().tolist()}  # x and y
    null = bitext.source_of.max()
    assert {int(bitext.source_of[block.view(bitext.cells)[0, 0, -1]]) for block in bitext.blocks} \
        == {null}  # fmt: skip


def test_a_view_is_written_through():
    bitext = make_bitext(SOURCES, TARGETS, null=False)
    values = np.zeros(len(bitext.cells))
    bitext.blocks[1].view(values)[:] = 1
    assert values.tolist() == [0, 0, 1, 1, 1, 1]


def test_blocks_are_cut_where_they_grow_large(monkeypatch):
    monkeypatch.setattr(bitext_module, "_BLOCK_CELLS", 6)
    bitext = make_bitext([["a"]] * 7, [["x"]] * 7)
    assert [block.pairs.tolist() for block in bitext.blocks] == [[0, 1, 2], [3, 4, 5], [6]]
    monkeypatch.setattr(bitext_module, "_BLOCK_CELLS", 1)
    assert len(make_bitext([["a"]] * 7, [["x"]] * 7).blocks) == 7


def test_links_are_source_target_pairs_without_null():
    bitext = make_bitext(SOURCES, TARGETS)
    states = [np.array([[0, 1]]), np.array([[1], [2]])]
    assert links_from_states(bitext, states) == [[(1, 0)], [], [], [(0, 0)], []]
    assert links_from_states(bitext, states, null=False)[2] == [(2, 0)]


def test_sides_must_match():
    with pytest.raises(ValueError):
        make_bitext([["a"]], [])


def test_a_corpus_without_words_has_no_blocks():
    bitext = make_bitext([[]], [[]])
    assert bitext.blocks == () and len(bitext.cells) == 0
    assert links_from_states(bitext, []) == [[]]
