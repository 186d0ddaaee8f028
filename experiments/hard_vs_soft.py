"""Soft, hard and monotonic attention on inflection and pronunciation; see `USAGE`.

The claims: Wu, Shapiro and Cotterell (EMNLP 2018), that hard attention summed over exactly beats a
sampled one and soft attention without input feeding; Aharoni and Goldberg (ACL 2017) and Wu and
Cotterell (ACL 2019), that monotonic attention suits inflection.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import (
    differences,
    kept_counts,
    page,
    pictures,
    program,
    sample_map,
    score_means,
    seed_ensemble,
    word_outcomes,
)
from experiments.kit.templates import titled
from experiments.kit.variants import MADE_UP, Cells, Variant, by_condition, crossed, grid_of

NAME = "hard_vs_soft"
TITLE = "Hard against soft attention: inflection and pronunciation"
USAGE = """
Compares soft, hard and monotonic attention on CoNLL-SIGMORPHON 2017 inflection (five languages;
100, 1,000 and 10,000 training pairs) and SIGMORPHON 2021 pronunciation (five languages), with equal
numbers of parameters and three seeds each. What tells most comes first: Turkish with 1,000 pairs;
exact and soft attention on all languages with as many; the strongest on pronunciations that have a
baseline.

usage: python -m experiments.hard_vs_soft [--OPTION=VALUE ...]
"""
BASE = "soft"
_DECODER = "model.decoder"


@dataclasses.dataclass(frozen=True)
class WordCondition(Variant):
    """What is learnt: a language, and how much of it.

    Attributes:
      published: Figures of others by their names: exact match, or word error of pronunciations.
    """

    published: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def is_spoken(self) -> bool:
        """Whether outputs are phonemes."""
        return self.argument == "sigmorphon2021"

    @property
    def score(self) -> str:
        """The score by which systems are compared."""
        return "wer" if self.is_spoken else "exact_match"


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

_SMOOTHED = {"objectives.nll.label_smoothing": 0.1}
# Tags are slots of their own, behind the letters: however many there are, letters keep their
# distances from the first output.
_TRANSFORMER = {
    "model.tie_embeddings": "none", "data.tags": "after", "training.num_epochs": 200.0,
}  # fmt: skip
_ROTARY = {"model.attention.refinements.rope": True, **_TRANSFORMER}
_COPIES = {"model.readout.name": "pointer_generator"}


def _summed(alignment: str, depth: int, **attention: Any) -> dict[str, Any]:
    """Returns the overrides of a sum over all alignments of a kind."""
    return {
        f"{_DECODER}.name": "transducer", f"{_DECODER}.cell": "lstm", f"{_DECODER}.bridge": "mean",
        f"{_DECODER}.hidden_dim": depth, "model.readout.name": "marginal",
        "model.readout.hidden_dim": depth, "model.readout.alignment.name": alignment,
        **{f"model.attention.{field}": value for field, value in attention.items()},
    }  # fmt: skip


# Sizes, too, so that all systems have as many parameters to 5 %.
SYSTEMS = {
    "soft_feeding": Variant("soft, input feeding", {}),
    "soft": Variant("soft", _WITHOUT_FEEDING),
    "exact": Variant("exact, order 0", _summed("independent", 320)),
    "exact_monotonic": Variant("exact, monotonic", _summed("monotonic", 320)),
    "oracle_steps": Variant("pointer, oracle STEPs", _POINTER),
    "exact_jumps": Variant(
        "exact, relative jumps", _summed("relative_jumps", 336, name="none")
    ),
    "ssnt": Variant(
        "segment to segment", _summed("segments", 320, name="bahdanau", attention_dim=160)
    ),
    "monotonic": Variant("monotonic", _MONOTONIC),
    "mocha": Variant("MoChA", _MOCHA),
    "reinforce": Variant("sampled, REINFORCE", {
        **_HARD, "objectives.reinforce.returns": "mean",
        "objectives.attention_entropy.weight": 0.002,
    }),
    "straight_through": Variant("sampled, straight through", {
        **_HARD, "model.attention.estimator.name": "straight_through",
    }),
}  # fmt: skip

# Single runs in the tests of yoyodyne, not tuned; the task's baseline is an ensemble.
_PEERS = {
    "yoyodyne, soft LSTM": 84.1, "yoyodyne, context-hard LSTM": 0.4,
    "yoyodyne, pointer-generator LSTM": 86.3,
    "yoyodyne, pointer-generator Transformer": 81.8, "yoyodyne, rotary Transformer": 87.3,
    "yoyodyne, pointer-generator rotary Transformer": 89.4,
}  # fmt: skip
_SETTINGS = {
    "medium": "1,000 training pairs", "low": "100 training pairs", "high": "10,000 training pairs",
}  # fmt: skip
_EVENNESS = (
    "The mean entropy of what an output looked at, divided by that of even weights: 0 if all of it "
    "is one letter, 1 if all letters are alike. Of sums over alignments that of the posterior."
)
_BASELINES = {"hun": 1.8, "kor": 16.3, "fre": 8.5, "eng_us": 41.94}

# What soft attention loses if at test it may read one letter alone. And what monotonic attention
# lacks: at test the expectation that it was trained with, in place of decisions; and, as its papers
# have it, what was attended to, which says where the last stop was.
FORMS = {
    "soft_decided": Variant("soft, at test its largest weight alone", {
        # Nothing is sampled, so that the objective, which has to be there, is 0.
        **_HARD, "model.attention.estimator.expectation_share": 1.0,
        "model.attention.at_test.name": "argmax", "objectives.reinforce.returns": "mean",
    }),
    "monotonic_expected": Variant(
        "monotonic, in expectation", {**_MONOTONIC, "model.attention.evaluation": "expected"}
    ),
    "monotonic_feeding": Variant("monotonic, input feeding", {
        "model.attention.name": "monotonic", "model.attention.score.attention_dim": 128,
    }),
    "mocha_feeding": Variant("MoChA, input feeding", {
        "model.attention.name": "mocha", "model.attention.score.attention_dim": 128,
        "model.attention.chunk_score.attention_dim": 128, f"{_DECODER}.hidden_dim": 240,
        f"{_DECODER}.attentional_dim": 240,
    }),
}  # fmt: skip
# Beside them, with label smoothing, as published figures have it: soft attention wherever it is
# tried, and where there are figures of their kind what copies.
COPYING = {
    "smoothed": Variant("soft, input feeding, label smoothing", _SMOOTHED),
    "pointer_generator": Variant("pointer-generator, label smoothing", {**_SMOOTHED, **_COPIES}),
    "rotary": Variant("Transformer, rotary positions", _ROTARY, "vaswani2017", "conll2017"),
    "rotary_copying": Variant(
        "pointer-generator Transformer, rotary positions", {**_ROTARY, **_COPIES},
        "vaswani2017", "conll2017",
    ),
    "transformer": Variant("Transformer", _TRANSFORMER, "vaswani2017", "conll2017"),
    "transformer_copying": Variant(
        "pointer-generator Transformer", {**_TRANSFORMER, **_COPIES}, "vaswani2017", "conll2017"
    ),
}  # fmt: skip
# Of a syllable its jamo say how it sounds, and the syllable as a whole which morpheme it may be, on
# which the length of its vowel depends.
SYLLABLES = {
    "smoothed_both": Variant(
        "soft, input feeding, label smoothing, syllables beside jamo",
        {**_SMOOTHED, "data.letters": "both"},
    ),
}  # fmt: skip
_COPIED = "turkish_medium"
_TRIED = {**SYSTEMS, **FORMS, **COPYING, **SYLLABLES}
_LANGUAGES = ("turkish", "german", "finnish", "spanish", "russian")


def conditions() -> dict[str, WordCondition]:
    """Returns what is learnt, by name, what tells most first."""
    found = {}
    for setting in _SETTINGS:
        for language in _LANGUAGES:
            name = f"{language}_{setting}"
            overrides = {"data.language": language, "data.setting": setting}
            # With 100 pairs an epoch is four updates.
            passes = {"low": 600.0, "medium": 100.0, "high": 20.0}[setting]
            overrides["training.num_epochs"] = passes
            published = _PEERS if name == "turkish_medium" else {}
            found[name] = WordCondition(
                language.title(), overrides, argument="conll2017", published=published
            )
    for language in ("hun", "ice", "fre", "kor", "eng_us"):
        passes = {"ice": 100.0, "eng_us": 8.0}.get(language, 20.0)
        overrides = {"data.language": language, "training.num_epochs": passes}
        if language == "kor":  # whose syllables are written as one character each
            overrides["data.letters"] = "parts"
        published = {"baseline of the task": _BASELINES[language]} if language in _BASELINES else {}
        found[language] = WordCondition(
            language, overrides, argument="sigmorphon2021", published=published
        )
    order = [*list(found)[:5], "hun", "ice", *list(found)[5:10], "fre", "kor"]
    return {name: found[name] for name in dict.fromkeys([*order, *found])}


def _cells() -> dict[str, Variant]:
    """Returns all cells, what tells most first; a cell is where it is first."""
    learnt = conditions()

    def some(names: Sequence[str], *systems: str) -> dict[str, Variant]:
        return crossed(
            {name: learnt[name] for name in names}, {system: _TRIED[system] for system in systems}
        )

    return {
        **some([_COPIED], *SYSTEMS, *FORMS, *COPYING),
        **some([f"{language}_medium" for language in _LANGUAGES], BASE, "exact"),
        **some([f"{language}_medium" for language in _LANGUAGES], "soft_decided"),
        **some([*_BASELINES], "soft_feeding", "oracle_steps"),
        **some([*_BASELINES], "smoothed"),
        **some(["kor"], *SYLLABLES),
        **some([*learnt], *SYSTEMS, "smoothed"),
    }


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data."""
    cells = crossed(MADE_UP, SYSTEMS) if smoke else _cells()
    return grid_of(
        NAME, cells, NAME, smoke,
        after=(
            "experiments.kit.word_outcomes", "experiments.kit.sample_map",
            "experiments.kit.seed_ensemble",
        ),
        kept={
            **kept_counts.kept(word_outcomes.FILE), sample_map.FILE: None, seed_ensemble.FILE: None,
        },
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page, and the attention maps of the first seeds in its first condition."""
    learnt = conditions()
    found = {
        name: {system: cells[system] for system in _TRIED if system in cells}
        for name, cells in by_condition(runs).items()
        if name in learnt
    }
    groups = {
        **{setting: {name: cells for name, cells in found.items() if name.endswith(f"_{setting}")}
           for setting in _SETTINGS},
        "spoken": {name: cells for name, cells in found.items() if learnt[name].is_spoken},
    }  # fmt: skip
    headings = {**_SETTINGS, "spoken": "Pronunciation"}
    pooled = differences.table_of_pools(
        BASE, {headings[group]: members for group, members in groups.items()},
        word_outcomes.of_run, _TRIED,
        ("words of all languages", "system", "languages", "exact match, against soft"),
    )  # fmt: skip
    compared = differences.table_against(
        BASE, found, word_outcomes.of_run, _TRIED,
        {name: name.replace("_", " ") for name in found},
        ("condition", "system", "exact match, against soft"),
    )  # fmt: skip
    spoken = differences.table_against(
        "smoothed", groups["spoken"], word_outcomes.of_run, _TRIED, {},
        ("language", "system", "words right, against soft attention with label smoothing"),
    )  # fmt: skip
    cells = next(iter(found.values()), {})
    firsts = {_TRIED[system].label: members[0] for system, members in cells.items()}
    picture = sample_map.write_picture(firsts, out / grid.name)
    written = page.write(
        grid, runs, out, TITLE, NAME,
        **{group: titled(headings[group], _table(members)) for group, members in groups.items()},
        differences=compared, spoken_differences=titled("Differences on pronunciation", spoken),
        pooled=titled("Differences over all languages", pooled),
        parameters=_parameters(runs),
        sharpness=titled(
            f"How even weights are: {_SETTINGS['medium']}", _sharpness(groups["medium"])
        ),
        condition=next(iter(found), "").replace("_", " "),
        picture=pictures.shown(picture, out),
    )  # fmt: skip
    return [written, *picture]


def _table(members: Mapping[str, Cells]) -> str:
    """Makes a row for each system, and for each published figure, with a column a language.

    Below them are ensembles of the seeds, of systems of which any is known.
    """
    if not members:
        return ""
    learnt = conditions()
    tried = [system for system in _TRIED if any(system in cells for cells in members.values())]
    rows = [
        [label.format(_TRIED[system].label), *row]
        for label, cell in (("{}", _cell), ("{}, ensemble of the seeds", _together))
        for system in tried
        if {*(row := [cell(learnt[name], cells.get(system)) for name, cells in members.items()])}
        != {tables.NOTHING}
    ]
    names = dict.fromkeys(label for name in members for label in learnt[name].published)
    for label in names:
        figures = [learnt[name].published.get(label) for name in members]
        rows.append([label, *(tables.NOTHING if one is None else f"{one:g}" for one in figures)])
    return tables.table(["system", *(learnt[name].label for name in members)], rows)


def _cell(condition: WordCondition, runs: Sequence[GridRun] | None) -> str:
    return score_means.means(runs, (condition.score,))[0] if runs else tables.NOTHING


def _together(condition: WordCondition, runs: Sequence[GridRun] | None) -> str:
    return tables.spread([seed_ensemble.of_runs(runs or ()).get(condition.score)])


def _sharpness(members: Mapping[str, Cells]) -> str:
    """Makes a row for each system with a column a language: the mean entropy of its weights."""
    if not members:
        return ""
    learnt = conditions()
    rows = [
        [described.label, *(_entropy(cells.get(system, ())) for cells in members.values())]
        for system, described in SYSTEMS.items()
        if any(system in cells for cells in members.values())
    ]
    table = tables.table(["system", *(learnt[name].label for name in members)], rows)
    return f"{_EVENNESS}\n\n{table}"


def _entropy(runs: Sequence[GridRun]) -> str:
    return tables.spread([run.scores().get("attention_entropy") for run in runs], digits=3)


def _parameters(runs: Sequence[GridRun]) -> str:
    """Makes a row for each system: its parameters, least and most over the languages."""
    rows = []
    for system, described in _TRIED.items():
        numbers = [
            run.facts()["num_parameters"] for run in runs if run.cell.endswith(f".{system}")
        ]
        if numbers:
            rows.append([described.label, f"{min(numbers):,}", f"{max(numbers):,}"])
    return tables.table(["system", "parameters, least", "most"], rows)


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
