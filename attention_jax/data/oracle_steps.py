"""Oracle actions for hard monotonic attention: STEPs among the symbols of a target.

A pointer walks over the source, from its first symbol to its last. The oracle lets it STEP until it
is on the symbol that the next one of the target is linked to, and then writes that.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Int

from attention_jax.data.alignment.cache import align_once
from attention_jax.data.examples import Split
from attention_jax.data.field import TARGET
from attention_jax.data.text.symbol_kinds import is_tag
from attention_jax.errors import DataError
from attention_jax.ops.step_pointer import STEP
from attention_jax.types import SpecialIds

Sides = tuple[list[list[str]], list[list[str]]]


def oracle_actions(
    links: Sequence[tuple[int, int]],
    target: Sequence[int],
    num_slots: int,
    step: int = STEP,
) -> list[int]:
    """Inserts STEPs into a target, such that each symbol is written from its slot.

    The pointer never goes back: a symbol that is linked to an earlier slot, or to none, is written
    where the pointer is. After the last symbol it goes on to the last slot.

    Args:
      links: (slot, target symbol), the alignment.
      target: Ids of the symbols, without EOS.
      num_slots: How many slots of the source the pointer walks over.
      step: Id of STEP.

    Returns:
      The ids, of which those that are not `step` are the target's, in its order.

    Source:
      Aharoni and Goldberg (2017), section 2.1, algorithm 1.
    """
    slot_of: dict[int, int] = {}
    for slot, symbol in links:
        slot_of[symbol] = max(slot, slot_of.get(symbol, 0))
    actions, pointer = [], 0
    for number, written in enumerate(target):
        steps = max(slot_of.get(number, 0) - pointer, 0)
        actions += [*[step] * steps, written]
        pointer += steps
    return actions + [step] * (num_slots - 1 - pointer)


def with_oracle_steps(splits: Mapping[str, Split], method: str) -> dict[str, Split]:
    """Returns splits whose targets are actions.

    The training pairs are aligned by themselves. To align those of another split, an aligner is
    trained on both; nothing is learnt from what it finds there, of which only losses are measured.

    Args:
      splits: With target vocabularies that have a STEP; `train` among them.
      method: The aligner.

    Raises:
      DataError: If there is nothing to align.
    """
    training = _symbols(splits["train"])
    found = {}
    for name, split in splits.items():
        own = training if name == "train" else _symbols(split)
        sides = own if name == "train" else tuple(a + b for a, b in zip(training, own, strict=True))
        if not all(map(any, sides)):
            raise DataError("data.oracle_steps: expected pairs to be aligned, found none")
        (aligned,) = align_once(*sides, method=method, directions=("forward",))
        links = aligned[len(sides[0]) - len(split) :]
        found[name] = dataclasses.replace(
            split, extras={**split.extras, TARGET.name: _actions(split, links)}
        )
    return found


def _actions(split: Split, aligned: Sequence[Sequence[tuple[int, int]]]) -> list[np.ndarray]:
    return [
        _ids(split, source, target, links)
        for source, target, links in zip(split.sources, split.targets, aligned, strict=True)
    ]


def _ids(
    split: Split, source: str, target: str, links: Sequence[tuple[int, int]]
) -> Int[np.ndarray, " T"]:
    slots = _letter_slots(split.source_vocabulary.split(source))
    links = [(slots[letter], symbol) for letter, symbol in links]
    actions = oracle_actions(links, split.target_vocabulary.encode(target), slots[-1] + 1)
    return np.array([*actions, SpecialIds.EOS], np.int32)


def _symbols(split: Split) -> Sides:
    """Returns what is aligned: the letters of sources, without tags, and the targets' symbols."""
    sources = [
        [symbols[slot] for slot in _letter_slots(symbols)]
        for symbols in map(split.source_vocabulary.split, split.sources)
    ]
    return sources, [split.target_vocabulary.split(target) for target in split.targets]


def _letter_slots(symbols: Sequence[str]) -> list[int]:
    return [slot for slot, symbol in enumerate(symbols) if not is_tag(symbol)]
