"""Tables of variants by measures: means over seeds, and significance against a base."""

from collections.abc import Mapping, Sequence

from attention_jax.evaluation import seeds
from attention_jax.sweeps import tables
from experiments.kit import templates
from experiments.kit.sentence_measures import MEASURES, SentenceMeasure

# For each variant the measures of each seed.
Found = Mapping[str, Sequence[Mapping[str, SentenceMeasure]]]
SURE, LIKELY = 0.01, 0.05
LEGEND = templates.fill(
    "legend", sure=SURE, likely=LIKELY, resamples=f"{seeds.RESAMPLES:,}"
)  # fmt: skip
LEGEND_OF_DIFFERENCES = templates.fill("legend_of_differences", resamples=f"{seeds.RESAMPLES:,}")


def overview(found: Found, labels: Mapping[str, str], measures: Sequence[str]) -> str:
    """Makes a table with a row for each variant and a column for each measure.

    Args:
      found: The measures of each seed of each variant; the first variant is the base.
      labels: Names of the variants.
      measures: Names of `MEASURES`; a variant that lacks one has a gap.
    """
    # The first variant of a mapping, which keeps the order of the grid's cells.
    base, *_ = found
    rows = []
    for name, runs in found.items():
        cells = [_cell(runs, found[base], measure, name == base) for measure in measures]
        rows.append([labels[name], str(len(runs)), *cells])
    headings = [heading(measure) for measure in measures]
    return tables.table(["system", "seeds", *headings], rows)


def differences(
    found: Found, labels: Mapping[str, str], measure: str, base: str | None = None
) -> str:
    """Makes a table of the difference of each variant from the base in one measure.

    Args:
      found: The measures of each seed of each variant.
      labels: Names of the variants.
      measure: A name of `MEASURES`.
      base: The variant to compare with; the first one if not given.
    """
    base = base or next(iter(found))
    rows = []
    for name, runs in found.items():
        if name == base or not _all_have(measure, runs, found[base]):
            continue
        result = seeds.compare(_of(found[base], measure), _of(runs, measure))
        rows.append([labels[name], *tables.tested(result), f"{result.wins} of {result.pairs}"])
    headings = [f"{MEASURES[measure].label} against {labels[base]}", "difference",
                "95 % interval", "p", "pairs of seeds higher"]  # fmt: skip
    return tables.table(headings, rows)


def contrasts(
    found: Found,
    title: str,
    pairs: Mapping[str, tuple[str, str]],
    measures: Sequence[str],
) -> str:
    """Makes a table of pairs of variants: how much higher the second is in each measure.

    Args:
      found: The measures of each seed of each variant.
      title: Heading of the column with the pairs' names.
      pairs: Pairs of variants by the names of their rows; incomplete pairs are left out.
      measures: Names of `MEASURES`; a pair of which one lacks a measure has gaps.
    """
    rows = []
    for name, pair in pairs.items():
        if not all(variant in found for variant in pair):
            continue
        first, second = (found[variant] for variant in pair)
        cells: list[str] = []
        for measure in measures:
            if not _all_have(measure, first, second):
                cells += [tables.NOTHING] * 3
                continue
            cells += tables.tested(seeds.compare(_of(first, measure), _of(second, measure)))
        rows.append([name, *cells])
    headings = [text for measure in measures
                for text in (MEASURES[measure].label, "95 % interval", "p")]  # fmt: skip
    return tables.table([title, *headings], rows)


def _cell(
    runs: Sequence[Mapping[str, SentenceMeasure]],
    base: Sequence[Mapping[str, SentenceMeasure]],
    measure: str,
    is_base: bool,
) -> str:
    if not all(measure in run for run in runs):
        return tables.NOTHING
    text = tables.with_deviation(seeds.seed_mean(_of(runs, measure)))
    if is_base or not _all_have(measure, base):
        return text
    p = seeds.compare(_of(base, measure), _of(runs, measure)).p_value
    return text + (" **" if p < SURE else " *" if p < LIKELY else "")


def mean(runs: Sequence[Mapping[str, SentenceMeasure]], measure: str) -> str:
    """Returns mean and standard deviation of a measure over the runs that have it."""
    known = [run[measure] for run in runs if measure in run]
    return tables.with_deviation(seeds.seed_mean(known)) if known else tables.NOTHING


def heading(measure: str) -> str:
    """Returns the name of a measure in tables and plots, with an arrow towards its better end."""
    arrow = {"high": " ↑", "low": " ↓", "": ""}[MEASURES[measure].is_better]
    return MEASURES[measure].label + arrow


def _of(runs: Sequence[Mapping[str, SentenceMeasure]], measure: str) -> list[SentenceMeasure]:
    return [run[measure] for run in runs]


def _all_have(measure: str, *groups: Sequence[Mapping[str, SentenceMeasure]]) -> bool:
    return all(measure in run for runs in groups for run in runs)
