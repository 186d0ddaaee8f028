"""Several sources against each alone; see `USAGE`.

The claims: Zoph and Knight (NAACL 2016), that a decoder which reads two languages translates better
than from the better one alone; Libovický and Helcl (ACL 2017), that attention to all sources, flat
or hierarchical, serves at least as well as contexts side by side.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.runs.files import write_text
from experiments.kit import (
    attention_record,
    measure_tables,
    program,
    seeds,
    sentence_measures,
    tables,
    templates,
)
from experiments.kit.grid import SMOKE, Grid, Run
from experiments.kit.templates import section

NAME = "several_sources"
TITLE = "Several sources: from English and French, or from one of them"
USAGE = """
Compares translation into German from English, from French and from both, whose attention is
combined in several ways, on Multi30k: BLEU with its significance, and AER; three seeds each. In a
control, the French sentences are those of other pictures. 24 runs.

usage: python -m experiments.several_sources [--OPTION=VALUE ...]
"""
ALONE = ("english", "french")
CONTROL = "shuffled"
_BOTH = "hierarchical"


@dataclasses.dataclass(frozen=True)
class SourcesSystem:
    """A row of the table.

    Attributes:
      label: Its name in tables.
      overrides: What it changes of the config.
      is_alone: Whether it reads one source.
    """

    label: str
    overrides: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    is_alone: bool = False


def systems(smoke: bool = False) -> dict[str, SourcesSystem]:
    """Returns the systems by name; those of made-up data have one language only."""
    french = {} if smoke else {"data.source_language": "fr", "data.further_languages": ("en",)}
    shuffled = {"data.shuffled_sources": ("fr",)}
    found = {
        "english": SourcesSystem("English", is_alone=True),
        "french": SourcesSystem("French", french, is_alone=True),
        "concatenated": SourcesSystem("both, contexts side by side", _combined("concatenated")),
        "parallel": SourcesSystem("both, contexts added", _combined("parallel")),
        "flat": SourcesSystem("both, flat", _combined("flat")),
        _BOTH: SourcesSystem("both, hierarchical"),
        "states": SourcesSystem(
            "both, hierarchical, states combined (basic)",
            {
                "model.decoder.bridge": "basic",
                **{f"model.sources.{source}.encoder.{field}": value
                   for source in ("source", "fr")
                   for field, value in (("direction", "forward"), ("hidden_dim", 256))},
            },
        ),
        CONTROL: SourcesSystem("both, hierarchical, French of other pictures", shuffled),
    }  # fmt: skip
    if smoke:  # whose further source has another name, and no language
        found = {name: found[name] for name in ("english", "concatenated", "flat", _BOTH)}
    return found


def _combined(name: str) -> dict[str, Any]:
    return {"model.attention.name": name}


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data."""
    chosen, data_name = systems(smoke), "smoke" if smoke else "multi30k"
    base = f"configs/libovicky2017.py:{data_name}"
    return Grid(
        name=f"{NAME}_smoke" if smoke else NAME,
        config={name: f"{base}_alone" if system.is_alone else base
                for name, system in chosen.items()},
        overrides=SMOKE if smoke else {},
        cells={name: system.overrides for name, system in chosen.items()},
        seeds=(0,) if smoke else (0, 1, 2),
        after=("experiments.kit.attention_record",),
        kept={sentence_measures.FILE: ("bleu", "aer")},
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[Run], out: Path) -> list[Path]:
    """Writes the page.

    Args:
      grid: The experiment.
      runs: Its finished runs.
      out: Where to write.

    Returns:
      The paths written.
    """
    found = attention_record.by_cell(grid, runs)
    page = out / f"{grid.name}.md"
    text = templates.fill(
        NAME, **_set_up(grid, runs), main_table=_main_table(runs, found),
        legend=measure_tables.LEGEND_OF_DIFFERENCES, differences="\n".join(_differences(found)),
        reading=section(tables.reading(out / grid.name)), provenance=tables.provenance(runs),
    )  # fmt: skip
    write_text(page, text + "\n")
    return [page]


def better_alone(found: measure_tables.Found) -> str | None:
    """Returns the source that gives the higher BLEU alone; None where neither has been tried."""
    tried = [cell for cell in ALONE if cell in found]
    mean = {cell: seeds.seed_mean([run["bleu"] for run in found[cell]]).mean for cell in tried}
    return max(mean, key=mean.get) if mean else None


def _set_up(grid: Grid, runs: Sequence[Run]) -> dict[str, object]:
    """Returns what the page says of data, sizes and training, by the template's places."""
    config = runs[0].resolved()
    return {
        "opening": section(tables.opening(TITLE, NAME, grid, runs)),
        "corpus": tables.corpus(config["data"]),
        "decoder": config["model"]["decoder"]["hidden_dim"],
        "num_steps": f"{config['training']['num_steps']:,}",
        "batch_size": config["data"]["batch_size"],
        "optimizer": config["optimizer"]["name"],
        "seeds": len(grid.seeds),
    }


def _main_table(runs: Sequence[Run], found: measure_tables.Found) -> str:
    headings = ["sources", "seeds", "BLEU ↑", "95 % interval", "AER ↓", "parameters"]
    known, rows = systems(), []
    for cell, of_cell in found.items():
        bleu = seeds.seed_mean([run["bleu"] for run in of_cell])
        has_links = all("aer" in run for run in of_cell)
        members = [run for run in runs if run.cell == cell]
        rows.append([
            known[cell].label, str(len(of_cell)), tables.with_deviation(bleu),
            tables.interval(bleu),
            tables.with_deviation(seeds.seed_mean([run["aer"] for run in of_cell]))
            if has_links else tables.NOTHING,
            f"{np.mean([run.facts()['num_parameters'] for run in members]):,.0f}",
        ])  # fmt: skip
    return tables.table(headings, rows)


def _differences(found: measure_tables.Found) -> list[str]:
    """Returns BLEU of every system against the better source alone, and against the control."""
    labels = {cell: systems()[cell].label for cell in found}
    bases = [base for base in (better_alone(found), CONTROL) if base in found]
    return [
        part
        for base in bases
        for part in (measure_tables.differences(found, labels, "bleu", base), "")
    ]


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
