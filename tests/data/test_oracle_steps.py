"""Oracle actions: a case by hand, the way back, and which texts an alignment has seen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_jax.data import oracle_steps
from attention_jax.data.examples import Split
from attention_jax.data.oracle_steps import oracle_actions, with_oracle_steps
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.errors import DataError
from attention_jax.ops.step_pointer import STEP
from attention_jax.types import SpecialIds

A, B, C = STEP + 1, STEP + 2, STEP + 3
PAIRS = [("ab", "xy"), ("ba", "yx"), ("aab", "xxy"), ("b", "y"), ("bab", "yxy"), ("a", "x")]


def test_golden():
    """Source abc, target xyz, links x-a, y-b and z-b: x STEP y z STEP."""
    assert oracle_actions([(0, 0), (1, 1), (1, 2)], [A, B, C], 3) == [A, STEP, B, C, STEP]


@pytest.mark.parametrize(
    ("links", "slots", "actions"),
    [
        ([], 2, [A, B, STEP]),
        ([(2, 0), (0, 1)], 3, [STEP, STEP, A, B]),  # never back
        ([(1, 1)], 2, [A, STEP, B]),
        ([(0, 0), (2, 0), (2, 1)], 4, [STEP, STEP, A, B, STEP]),  # the last of several
        ([(0, 0)], 1, [A, B]),
    ],
)
def test_steps_lead_to_the_slot_of_the_next_symbol(links, slots, actions):
    assert oracle_actions(links, [A, B], slots) == actions


@given(data=st.data(), slots=st.integers(1, 6), target=st.lists(st.integers(STEP + 1, 9)))
def test_actions_write_the_target_and_pass_every_slot(data, slots, target):
    symbols = st.integers(0, max(len(target) - 1, 0))
    pairs = st.tuples(st.integers(0, slots - 1), symbols)
    links = data.draw(st.lists(pairs)) if target else []
    actions = oracle_actions(links, target, slots)
    assert [action for action in actions if action != STEP] == target
    assert actions.count(STEP) == slots - 1
    pointers = np.cumsum([action == STEP for action in actions])
    written = [pointer for pointer, action in zip(pointers, actions, strict=True) if action != STEP]
    for slot, symbol in links:
        assert written[symbol] >= slot


def splits(source_kind="characters", sources=PAIRS):
    texts = [source for source, _ in sources], [target for _, target in PAIRS]
    vocabularies = (
        SymbolVocabulary.train(source_kind, texts[0]),
        SymbolVocabulary.train("character_actions", texts[1]),
    )
    return {
        name: Split(
            sources=texts[0][:size], targets=texts[1][:size], numbers=[*range(size)],
            references=[[text] for text in texts[1][:size]], name=name,
            source_vocabulary=vocabularies[0], target_vocabulary=vocabularies[1],
        )
        for name, size in (("train", 6), ("test", 2))
    }  # fmt: skip


def written(split):
    return [split.target_vocabulary.tokens(ids) for ids in split.target_ids]


@pytest.mark.parametrize("method", ["ibm1", "hmm"])
def test_letters_are_aligned_and_kept(method, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(tmp_path))
    found = with_oracle_steps(splits(), method)
    for split in found.values():
        for ids, text in zip(split.target_ids, split.targets, strict=True):
            assert ids.dtype == np.int32 and ids[-1] == SpecialIds.EOS
            assert split.target_vocabulary.decode(ids) == text
    assert written(found["train"])[0] == ["x", "<step>", "y", "</s>"]
    assert written(found["train"])[2][-3:] == ["<step>", "y", "</s>"]
    # A sample, or a part that is drawn, keeps its STEPs.
    part = found["train"].select([3, 0])
    assert written(part) == [["y", "</s>"], ["x", "<step>", "y", "</s>"]]


def test_a_pointer_passes_tags_that_stand_before_letters(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(tmp_path))
    tagged = [(f"{source}\tN;PL", target) for source, target in PAIRS]
    kinds = {"tags_before": 2, "tags_after": 0, "tags_apart": 0}
    for kind, passed in kinds.items():
        first = written(with_oracle_steps(splits(kind, tagged), "hmm")["train"])[0]
        assert first == [*["<step>"] * passed, "x", "<step>", "y", "</s>"]


def test_training_pairs_are_aligned_by_themselves(monkeypatch):
    sizes = []

    def align_once(sources, targets, method, directions):
        sizes.append((len(sources), len(targets), method, directions))
        return [[[] for _ in sources]]

    monkeypatch.setattr(oracle_steps, "align_once", align_once)
    with_oracle_steps(splits(), "ibm1")
    assert sizes == [(6, 6, "ibm1", ("forward",)), (8, 8, "ibm1", ("forward",))]


def test_nothing_to_align_is_one_line():
    empty = {name: split.select([]) for name, split in splits().items()}
    with pytest.raises(DataError, match="data.oracle_steps: expected pairs to be aligned"):
        with_oracle_steps(empty, "hmm")
