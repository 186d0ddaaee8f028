"""Several sources against each alone; see `USAGE`.

The claims: Zoph and Knight (NAACL 2016), that a decoder which reads two languages translates better
than from the better one alone; Libovický and Helcl (ACL 2017), that attention to all sources, flat
or hierarchical, serves at least as well as contexts side by side.
"""

from collections.abc import Sequence
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
from experiments.kit.variants import Variant, by_cell, grid_of

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
_SHOWN = (_BOTH, CONTROL)


def systems(smoke: bool = False) -> dict[str, Variant]:
    """Returns the systems by name; those of made-up data have one language only."""
    french = {} if smoke else {"data.source_language": "fr", "data.further_languages": ("en",)}
    alone = f"{'smoke' if smoke else 'multi30k'}_alone"
    found = {
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
    }  # fmt: skip
    if smoke:  # whose further source has another name, and no language
        found = {name: found[name] for name in ("english", "concatenated", "flat", _BOTH)}
    return found


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
    firsts = {systems()[cell].label: members[cell][0] for cell in _SHOWN if cell in members}
    drawn = sample_attention.write_pictures(firsts, out / grid.name)
    written = page.write(
        grid, runs, out, TITLE, NAME, **_set_up(grid, runs), main_table=_main_table(runs, found),
        legend=measure_tables.LEGEND_OF_DIFFERENCES, differences="\n".join(_differences(found)),
        pictures=titled("Attention to both sources", pictures.shown(drawn, out)),
    )  # fmt: skip
    return [written, *drawn]


def better_alone(found: measure_tables.Found) -> str | None:
    """Returns the source that gives the higher BLEU alone; None where neither has been tried."""
    tried = [cell for cell in ALONE if cell in found]
    mean = {cell: seeds.seed_mean([run["bleu"] for run in found[cell]]).mean for cell in tried}
    return max(mean, key=mean.get) if mean else None


def _set_up(grid: Grid, runs: Sequence[GridRun]) -> dict[str, object]:
    """Returns what the page says of data, sizes and training, by the template's places."""
    config = runs[0].resolved()
    return {
        "corpus": page_texts.corpus(config["data"]),
        "decoder": config["model"]["decoder"]["hidden_dim"],
        "num_steps": f"{config['training']['num_steps']:,}",
        "batch_size": config["data"]["batch_size"],
        "optimizer": config["optimizer"]["name"],
        "seeds": len(grid.seeds),
    }


def _main_table(runs: Sequence[GridRun], found: measure_tables.Found) -> str:
    headings = ["sources", "seeds", "BLEU ↑", "95 % interval", "AER ↓", "parameters"]
    known, members, rows = systems(), by_cell(runs), []
    for cell, of_cell in found.items():
        bleu = seeds.seed_mean([run["bleu"] for run in of_cell])
        has_links = all("aer" in run for run in of_cell)
        rows.append([
            known[cell].label, str(len(of_cell)), tables.with_deviation(bleu),
            tables.interval(bleu),
            tables.with_deviation(seeds.seed_mean([run["aer"] for run in of_cell]))
            if has_links else tables.NOTHING,
            f"{np.mean([run.facts()['num_parameters'] for run in members[cell]]):,.0f}",
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
