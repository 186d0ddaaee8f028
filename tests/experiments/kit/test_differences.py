"""Differences from a base: a row for each other system, under each condition that has the base."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest

from attention_jax.evaluation import seeds
from experiments.kit.differences import rows_against, table_against, table_of_pools
from experiments.kit.variants import Variant

SYSTEMS = {name: Variant(name.title()) for name in ("base", "better", "worse")}


@dataclasses.dataclass(frozen=True, eq=False)
class Right:
    """How many of some answers are right."""

    counts: np.ndarray

    def score(self, sums):
        return 100 * sums[..., 0] / sums[..., 1]


@pytest.fixture
def cells(numpy_rng, monkeypatch):
    """Three seeds of each system, which stand for their runs."""
    monkeypatch.setattr(seeds, "RESAMPLES", 100)

    def counted(share):
        return Right(np.stack([numpy_rng.random(300) < share, np.ones(300)], axis=-1).astype(float))

    shares = {"worse": 0.2, "base": 0.5, "better": 0.9}
    return {name: [counted(share) for _ in range(3)] for name, share in shares.items()}


def test_rows_are_of_all_but_the_base(cells):
    worse, better = rows_against("base", cells, lambda run: run, SYSTEMS)
    assert worse[0] == "Worse" and worse[1].startswith("-") and worse[3].startswith("< 0.0")
    first, second = (
        np.mean([run.counts[:, 0] for run in cells[name]]) for name in ("base", "better")
    )
    assert better[:2] == ["Better", f"{100 * (second - first):+.2f}"]
    low, high = map(float, better[2].split(" to "))
    assert low < float(better[1]) < high
    assert rows_against("absent", cells, lambda run: run, SYSTEMS) == []


def test_a_table_has_the_conditions_that_have_the_base(cells):
    without = {name: runs for name, runs in cells.items() if name != "base"}
    found = {"known": cells, "other": cells, "lacking": without}
    headings = ("corpus", "system", "right")
    table = table_against("base", found, lambda run: run, SYSTEMS, {"known": "Known"}, headings)
    rule, *rows = table.splitlines()[1:]
    assert table.startswith("| corpus | system | right | 95 % interval | p |")
    assert [row.split(" | ")[0] for row in rows] == ["| Known"] * 2 + ["| other"] * 2
    lacking = {"lacking": without}
    assert table_against("base", lacking, lambda run: run, SYSTEMS, {}, headings) == ""


class Seed(NamedTuple):
    """What stands for a run."""

    seed: int
    right: Right


def test_a_pool_is_tested_over_the_sentences_of_all_its_conditions(cells, numpy_rng):
    """Conditions that lack a system or the base, and seeds that one of them lacks, do not count."""

    def seeded(numbers, shares):
        return {
            name: [
                Seed(number, Right(np.stack([numpy_rng.random(size) < share, np.ones(size)], -1)))
                for number in numbers
            ]
            for name, (size, share) in shares.items()
        }

    one = seeded((0, 1, 2), {"base": (100, 0.5), "better": (100, 0.9), "worse": (100, 0.1)})
    other = seeded((1, 2), {"base": (300, 0.5), "better": (300, 0.9)})
    pools = {"both": {"one": one, "other": other, "none": {"better": []}}, "single": {"one": one}}
    headings = ("pool", "system", "of", "right")
    table = table_of_pools("base", pools, lambda run: run.right, SYSTEMS, headings)
    (row,) = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    means = [
        np.mean([
            np.concatenate([one[name][seed].right.counts, other[name][seed - 1].right.counts])[:, 0]
            for seed in (1, 2)
        ])
        for name in ("base", "better")
    ]  # fmt: skip
    assert row[:4] == ["both", "Better", "2", f"{100 * (means[1] - means[0]):+.2f}"]
    assert row[5].startswith("< 0.0")
    alone = {"single": pools["single"]}
    assert table_of_pools("base", alone, lambda run: run.right, SYSTEMS, headings) == ""
