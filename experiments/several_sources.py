"""Several sources against each alone; see `USAGE`.

The claims: Zoph and Knight (NAACL 2016), that a decoder which reads two languages translates better
than from the better one alone; Libovický and Helcl (ACL 2017), that attention to all sources, flat
or hierarchical, serves at least as well as contexts side by side; Libovický, Helcl and Mareček (WMT
2018), how the Transformer may attend to them.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.evaluation import seeds
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import (
    attention_record,
    measure_tables,
    page,
    page_texts,
    pictures,
    program,
    sample_attention,
    sentence_measures,
)
from experiments.kit.templates import titled
from experiments.kit.variants import Cells, Variant, by_cell, grid_of

NAME = "several_sources"
TITLE = "Several sources: from English and French, or from one of them"
USAGE = """
Compares translation into German from English, from French and from both on Multi30k: BLEU with its
significance, and AER; three seeds each. What reads both combines its attention, or the states that
it starts from, in the ways of the literature, with decoders of three kinds: a conditional GRU, the
LSTMs of Zoph and Knight, the Transformer. In a control, the French sentences are those of other
pictures. 60 runs.

usage: python -m experiments.several_sources [--OPTION=VALUE ...]
"""
ALONE = ("english", "french")
CONTROL = "shuffled"
_BOTH = "hierarchical"
_SHOWN = (_BOTH, CONTROL)
_SMOKE = ("english", "concatenated", "flat", _BOTH, "zoph_child_sum", "transformer_merged")


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of decoder, whose systems are compared with one another.

    Attributes:
      label: How the page calls it.
      systems: They, by their cells; those of one source end with its name.
    """

    label: str
    systems: Mapping[str, Variant]


def kinds(smoke: bool = False) -> list[Kind]:
    """Returns the kinds of decoders; their cells of made-up data, which has one language, too."""
    data = "smoke" if smoke else "multi30k"
    french = {} if smoke else {"data.source_language": "fr", "data.further_languages": ("en",)}
    transformer = "transformer_smoke" if smoke else "transformer"
    return [
        Kind("A conditional GRU", _recurrent(f"{data}_alone", french)),
        Kind("LSTMs with local attention", _zoph(f"{data}_alone", french)),
        Kind("The Transformer", _transformer(transformer, french)),
    ]


def systems(smoke: bool = False) -> dict[str, Variant]:
    """Returns the systems of all kinds by their cells, or a few for made-up data."""
    found = {name: each for kind in kinds(smoke) for name, each in kind.systems.items()}
    return {name: found[name] for name in _SMOKE} if smoke else found


def _recurrent(alone: str, french: Mapping[str, Any]) -> dict[str, Variant]:
    return {
        "english": Variant("English", argument=alone),
        "french": Variant("French", french, argument=alone),
        "concatenated": Variant("both, contexts side by side", _combined("concatenated")),
        "parallel": Variant("both, contexts added", _combined("parallel")),
        "flat": Variant("both, flat", _combined("flat")),
        _BOTH: Variant("both, hierarchical"),
        "states": Variant(
            "both, hierarchical, states combined (basic)",
            {
                "model.decoder.bridge": "basic",
                **{f"model.sources.{source}.encoder.{field}": value
                   for source in ("source", "fr")
                   for field, value in (("direction", "forward"), ("hidden_dim", 256))},
            },
        ),
        CONTROL: Variant(
            "both, hierarchical, French of other pictures", {"data.shuffled_sources": ("fr",)}
        ),
        "serial": Variant("both, one after the other", _combined("serial")),
    }  # fmt: skip


def _zoph(alone: str, french: Mapping[str, Any]) -> dict[str, Variant]:
    """Returns Zoph's combinations of states; windows of their own in each source are in all."""
    found = {
        "english": Variant("English", argument=alone),
        "french": Variant("French", french, argument=alone),
        "basic": Variant("both, states combined (basic)"),
        "child_sum": Variant(
            "both, states combined (child-sum)", {"model.decoder.bridge": "child_sum"}
        ),
    }
    return {
        f"zoph_{name}": dataclasses.replace(each, config="zoph2016")
        for name, each in found.items()
    }


def _transformer(argument: str, french: Mapping[str, Any]) -> dict[str, Variant]:
    alone = f"{argument}_alone"
    found = {
        "english": Variant("English", argument=alone),
        "french": Variant("French", french, argument=alone),
        "parallel": Variant("both, contexts added", argument=argument),
        "serial": Variant("both, one after the other", _combined("serial"), argument=argument),
        "flat": Variant("both, flat", _combined("flat"), argument=argument),
        "hierarchical": Variant("both, hierarchical", {
            **_combined("hierarchical"), "model.attention.over.name": "multi_head",
            "model.attention.over.num_heads": 4, "model.attention.over.head_dim": 32,
        }, argument=argument),
        "merged": Variant("both, flat, merged with self-attention", {
            **_combined("flat"), "model.decoder.name": "merged_transformer",
        }, argument=argument),
    }  # fmt: skip
    return {f"transformer_{name}": each for name, each in found.items()}


def _combined(name: str) -> dict[str, Any]:
    return {"model.attention.name": name}


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data."""
    return grid_of(
        NAME, systems(smoke), "libovicky2017:multi30k", smoke,
        after=("experiments.kit.attention_record", "experiments.kit.sample_attention"),
        kept={sentence_measures.FILE: ("bleu", "aer"), sample_attention.FILE: None},
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page, and attention to both sources; returns their paths."""
    found, members = attention_record.by_cell(grid, runs), by_cell(runs)
    shown = {
        kind.label: {cell: each for cell, each in kind.systems.items() if cell in found}
        for kind in kinds()
    }
    shown = {label: systems for label, systems in shown.items() if systems}
    compared = "\n\n".join(
        titled(label, _section(systems, members, found)) for label, systems in shown.items()
    )
    training = "; ".join(
        f"{label}: {_recipe(members[next(iter(systems))][0])}" for label, systems in shown.items()
    )
    firsts = {systems()[cell].label: members[cell][0] for cell in _SHOWN if cell in members}
    drawn = sample_attention.write_pictures(firsts, out / grid.name)
    written = page.write(
        grid, runs, out, TITLE, NAME, training=training, seeds=len(grid.seeds), systems=compared,
        legend=measure_tables.LEGEND_OF_DIFFERENCES,
        pictures=titled("Attention to both sources", pictures.shown(drawn, out)),
    )  # fmt: skip
    return [written, *drawn]


def is_alone(cell: str) -> bool:
    """Whether a system reads one source alone."""
    return cell.rpartition("_")[2] in ALONE


def better_alone(found: measure_tables.Found) -> str | None:
    """Returns the system of one source with the higher BLEU; None where none has been tried."""
    mean = {
        cell: seeds.seed_mean([run["bleu"] for run in of_cell]).mean
        for cell, of_cell in found.items()
        if is_alone(cell)
    }
    return max(mean, key=mean.get) if mean else None


def _recipe(run: GridRun) -> str:
    """Returns what text and training the systems of a kind have in common."""
    config = run.resolved()
    text, length = page_texts.corpus(config["data"]), page_texts.length_of_training(config)
    return f"{text}, {length} with {config['optimizer']['name']}"


def _section(
    systems: Mapping[str, Variant], members: Cells, found: measure_tables.Found
) -> str:
    """Returns the scores of the systems of a kind, and their differences from its bases."""
    measured = {cell: found[cell] for cell in systems}
    labels = {cell: each.label for cell, each in systems.items()}
    bases = [base for base in (better_alone(measured), CONTROL) if base in measured]
    compared = [measure_tables.differences(measured, labels, "bleu", base) for base in bases]
    return "\n\n".join([_scores(labels, members, measured), *compared])


def _scores(labels: Mapping[str, str], members: Cells, found: measure_tables.Found) -> str:
    headings = ["sources", "seeds", "BLEU ↑", "95 % interval", "AER ↓", "parameters"]
    rows = []
    for cell, of_cell in found.items():
        bleu = seeds.seed_mean([run["bleu"] for run in of_cell])
        has_links = all("aer" in run for run in of_cell)
        rows.append([
            labels[cell], str(len(of_cell)), tables.with_deviation(bleu), tables.interval(bleu),
            tables.with_deviation(seeds.seed_mean([run["aer"] for run in of_cell]))
            if has_links else tables.NOTHING,
            f"{np.mean([run.facts()['num_parameters'] for run in members[cell]]):,.0f}",
        ])  # fmt: skip
    return tables.table(headings, rows)


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
