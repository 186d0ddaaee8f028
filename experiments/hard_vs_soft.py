"""Soft, hard and monotonic attention on inflection and pronunciation; see `USAGE`.

The claims: Wu, Shapiro and Cotterell (EMNLP 2018), that hard attention summed over exactly beats a
sampled one and soft attention without input feeding; Aharoni and Goldberg (ACL 2017) and Wu and
Cotterell (ACL 2019), that monotonic attention suits inflection.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.runs.files import write_text
from experiments.kit import program, seeds, tables, templates, word_outcomes
from experiments.kit.grid import SMOKE, Grid, Run
from experiments.kit.templates import section
from experiments.kit.word_outcomes import WordOutcomes

NAME = "hard_vs_soft"
TITLE = "Hard against soft attention: inflection and pronunciation"
USAGE = """
Compares soft, hard and monotonic attention on CoNLL-SIGMORPHON 2017 inflection (five languages;
100, 1,000 and 10,000 training pairs) and SIGMORPHON 2021 pronunciation (five languages), with equal
numbers of parameters and three seeds each. What tells most comes first: Turkish with 1,000 pairs.

usage: python -m experiments.hard_vs_soft [--OPTION=VALUE ...]
"""
BASE = "soft"
SEEDS = (0, 1, 2)
_DECODER = "model.decoder"
Found = Mapping[str, Mapping[str, Sequence[Run]]]


@dataclasses.dataclass(frozen=True)
class System:
    """A way to attend.

    Attributes:
      label: How tables call it.
      overrides: What it changes of `configs/hard_vs_soft.py`, sizes among it, so that all systems
        have as many parameters to 5 %.
    """

    label: str
    overrides: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Condition:
    """What is learnt.

    Attributes:
      label: How tables call it.
      argument: The data set of the config.
      overrides: Its language, and how much of it.
      published: Figures of others by their names: exact match, or word error of pronunciations.
    """

    label: str
    argument: str
    overrides: Mapping[str, Any]
    published: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def is_spoken(self) -> bool:
        """Whether outputs are phonemes."""
        return self.argument == "sigmorphon2021"


_WITHOUT_FEEDING = {
    f"{_DECODER}.input_feeding": False, f"{_DECODER}.hidden_dim": 320,
    f"{_DECODER}.attentional_dim": 320,
}  # fmt: skip
_HARD = {
    **_WITHOUT_FEEDING, "model.attention.name": "hard",
    "model.attention.score.name": "luong_general",
}  # fmt: skip
_MONOTONIC = {
    **_WITHOUT_FEEDING, "model.attention.name": "monotonic",
    "model.attention.score.attention_dim": 128,
}
_MOCHA = {
    **_MONOTONIC, "model.attention.name": "mocha", "model.attention.chunk_score.attention_dim": 128,
    f"{_DECODER}.hidden_dim": 304, f"{_DECODER}.attentional_dim": 304,
}  # fmt: skip
_POINTER = {
    "data.oracle_steps": "hmm", "model.attention.name": "step_pointer",
    f"{_DECODER}.name": "bahdanau", f"{_DECODER}.cell": "lstm", f"{_DECODER}.bridge": "mean",
    f"{_DECODER}.readout": "tanh", f"{_DECODER}.readout_dim": 256,
}  # fmt: skip


def _summed(alignment: str, depth: int, **attention: Any) -> dict[str, Any]:
    """Returns the overrides of a sum over all alignments of a kind."""
    return {
        f"{_DECODER}.name": "transducer", f"{_DECODER}.cell": "lstm", f"{_DECODER}.bridge": "mean",
        f"{_DECODER}.hidden_dim": depth, "model.readout.name": "marginal",
        "model.readout.hidden_dim": depth, "model.readout.alignment.name": alignment,
        **{f"model.attention.{field}": value for field, value in attention.items()},
    }  # fmt: skip


SYSTEMS: Mapping[str, System] = {
    "soft_feeding": System("soft, input feeding", {}),
    "soft": System("soft", _WITHOUT_FEEDING),
    "exact": System("exact, order 0", _summed("independent", 320)),
    "exact_monotonic": System("exact, monotonic", _summed("monotonic", 320)),
    "oracle_steps": System("pointer, oracle STEPs", _POINTER),
    "exact_jumps": System(
        "exact, relative jumps", _summed("relative_jumps", 336, name="none")
    ),
    "ssnt": System(
        "segment to segment", _summed("segments", 320, name="bahdanau", attention_dim=160)
    ),
    "monotonic": System("monotonic", _MONOTONIC),
    "mocha": System("MoChA", _MOCHA),
    "reinforce": System("sampled, REINFORCE", {
        **_HARD, "objectives.reinforce.returns": "mean",
        "objectives.attention_entropy.weight": 0.002,
    }),
    "straight_through": System("sampled, straight through", {
        **_HARD, "model.attention.estimator.name": "straight_through",
    }),
}  # fmt: skip

# Single runs in the tests of yoyodyne, not tuned; the task's baseline is an ensemble.
_PEERS = {"yoyodyne, pointer-generator Transformer": 89.4, "yoyodyne, soft LSTM": 84.1,
          "yoyodyne, context-hard LSTM": 0.4}  # fmt: skip
_BASELINES = {"hun": 1.8, "fre": 8.5, "kor": 16.3, "eng_us": 41.94}


def conditions() -> dict[str, Condition]:
    """Returns what is learnt, by name, what tells most first."""
    found = {}
    for setting in ("medium", "low", "high"):
        for language in ("turkish", "german", "finnish", "spanish", "russian"):
            name = f"{language}_{setting}"
            overrides = {"data.language": language, "data.setting": setting}
            # With 100 pairs an epoch is four updates.
            passes = {"low": 600.0, "medium": 100.0, "high": 20.0}[setting]
            overrides["training.num_epochs"] = passes
            published = _PEERS if name == "turkish_medium" else {}
            found[name] = Condition(language.title(), "conll2017", overrides, published)
    for language in ("hun", "ice", "fre", "kor", "eng_us"):
        passes = {"ice": 100.0, "eng_us": 8.0}.get(language, 20.0)
        overrides = {"data.language": language, "training.num_epochs": passes}
        published = {"baseline of the task": _BASELINES[language]} if language in _BASELINES else {}
        found[language] = Condition(language, "sigmorphon2021", overrides, published)
    order = [*list(found)[:5], "hun", "ice", *list(found)[5:10], "fre", "kor"]
    return {name: found[name] for name in dict.fromkeys([*order, *found])}


def cell_of(condition: str, system: str) -> str:
    """Names a cell."""
    return f"{condition}.{system}"


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data."""
    learnt = {"smoke": Condition("smoke", "smoke", {})} if smoke else conditions()
    pairs = [(name, system) for name in learnt for system in SYSTEMS]
    return Grid(
        name=f"{NAME}_smoke" if smoke else NAME,
        config={cell_of(*pair): f"configs/{NAME}.py:{learnt[pair[0]].argument}" for pair in pairs},
        overrides=SMOKE if smoke else {},
        cells={
            cell_of(name, system): {**learnt[name].overrides, **SYSTEMS[system].overrides}
            for name, system in pairs
        },
        seeds=(0,) if smoke else SEEDS,
        after=("experiments.kit.word_outcomes",),
        kept={word_outcomes.FILE: (word_outcomes.ARRAY,)},
    )


def write_report(grid: Grid, runs: Sequence[Run], out: Path) -> list[Path]:
    """Writes the page.

    Args:
      grid: The experiment.
      runs: Its finished runs.
      out: Where to write.

    Returns:
      The paths written.
    """
    found: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        condition, _, system = run.cell.partition(".")
        found.setdefault(condition, {}).setdefault(system, []).append(run)
    groups = {
        setting: [name for name in found if name.endswith(f"_{setting}")]
        for setting in ("low", "medium", "high")
    }
    spoken = [name for name in found if name in conditions() and conditions()[name].is_spoken]
    text = templates.fill(
        NAME, opening=section(tables.opening(TITLE, NAME, grid, runs)),
        **{name: _table(found, members) for name, members in groups.items()},
        spoken=_table(found, spoken), differences=_differences(found),
        parameters=_parameters(runs), reading=section(tables.reading(out / grid.name)),
        provenance=tables.provenance(runs),
    )  # fmt: skip
    page = out / f"{grid.name}.md"
    write_text(page, text + "\n")
    return [page]


def outcomes_of(runs: Sequence[Run]) -> list[WordOutcomes]:
    """Returns what is right of the words of each run."""
    arrays = [run.arrays(word_outcomes.FILE)[word_outcomes.ARRAY] for run in runs]
    return [WordOutcomes(counts.astype(np.float64)) for counts in arrays]


def _table(found: Found, members: Sequence[str]) -> str:
    """Makes a row for each system, and for each published figure, with a column a language."""
    if not members:
        return ""
    learnt = conditions()
    rows = [
        [SYSTEMS[system].label, *(_cell(learnt[name], found[name].get(system)) for name in members)]
        for system in SYSTEMS
        if any(system in found[name] for name in members)
    ]
    names = dict.fromkeys(label for name in members for label in learnt[name].published)
    for label in names:
        figures = [learnt[name].published.get(label) for name in members]
        rows.append([label, *(tables.NOTHING if one is None else f"{one:g}" for one in figures)])
    return tables.table(["system", *(learnt[name].label for name in members)], rows)


def _cell(condition: Condition, runs: Sequence[Run] | None) -> str:
    if not runs:
        return tables.NOTHING
    name = "wer" if condition.is_spoken else "exact_match"
    return tables.spread([run.scores().get(name) for run in runs])


def _differences(found: Found) -> str:
    """Compares each system with soft attention without input feeding, condition by condition."""
    rows, learnt = [], conditions()
    for name, systems in found.items():
        if BASE not in systems or name not in learnt:
            continue
        base = outcomes_of(systems[BASE])
        for system, runs in systems.items():
            if system == BASE:
                continue
            test = seeds.compare(base, outcomes_of(runs))
            rows.append([
                name.replace("_", " "), SYSTEMS[system].label, f"{test.difference:+.2f}",
                tables.interval(test), tables.probability(test.p_value, seeds.RESAMPLES),
            ])  # fmt: skip
    headings = ["condition", "system", "exact match, against soft", "95 % interval", "p"]
    return tables.table(headings, rows) if rows else ""


def _parameters(runs: Sequence[Run]) -> str:
    """Makes a row for each system: its parameters, least and most over the languages."""
    rows = []
    for system, described in SYSTEMS.items():
        numbers = [
            run.facts()["num_parameters"] for run in runs if run.cell.endswith(f".{system}")
        ]
        if numbers:
            rows.append([described.label, f"{min(numbers):,}", f"{max(numbers):,}"])
    return tables.table(["system", "parameters, least", "most"], rows)


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
