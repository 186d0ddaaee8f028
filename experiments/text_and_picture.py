"""Names beside pictures: does a picture help to translate a text? See `USAGE`.

The claim: Huang, Liu, Shiang, Oh and Dyer (WMT 2016), that attention to words and to what is seen
translates better than to words alone. Pictures that have nothing to do with the text are a control.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import (
    differences,
    kept_counts,
    page,
    pictures,
    program,
    sample_attention,
    score_means,
    word_outcomes,
)
from experiments.kit.templates import titled
from experiments.kit.variants import Cells, Variant, by_condition, crossed, grid_of, label_of

NAME = "text_and_picture"
TITLE = "Text and picture: names of emoji in another language"
USAGE = """
Compares translation of the English names of emoji into German and Japanese with the text alone,
with the picture beside it, and with the picture of another emoji, three seeds each: exact match and
its significance, chrF and BLEU. 18 runs.

usage: python -m experiments.text_and_picture [--OPTION=VALUE ...]
"""
BASE, CONTROL = "text", "shuffled"
LANGUAGES = {
    "german": Variant("German", {"data.target_language": "de"}),
    "japanese": Variant("Japanese", {
        "data.target_language": "ja", "data.bleu_tokenizer": "char",
    }),
}  # fmt: skip
MADE_UP = {"smoke": Variant("smoke")}
SYSTEMS = {
    "text": Variant("text alone", argument="text_alone"),
    "picture": Variant("text and picture"),
    CONTROL: Variant("text and another's picture", {"data.shuffled_pictures": True}),
}
COLUMNS = {"exact_match": "exact match", "chrf": "chrF", "bleu_1": "BLEU-1"}


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data, of which the pictures tell half."""
    systems = {name: SYSTEMS[name] for name in ("picture", CONTROL)} if smoke else SYSTEMS
    return grid_of(
        NAME, crossed(MADE_UP if smoke else LANGUAGES, systems), "huang2016:emoji_names", smoke,
        after=("experiments.kit.word_outcomes", "experiments.kit.sample_attention"),
        kept={**kept_counts.kept(word_outcomes.FILE), sample_attention.FILE: None},
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page, and attention to text and picture; returns their paths."""
    cells, found = crossed({**LANGUAGES, **MADE_UP}, SYSTEMS), by_condition(runs)
    seen = {
        language: {name: runs for name, runs in systems.items() if name != BASE}
        for language, systems in found.items()
    }
    drawn = sample_attention.write_pictures(_shown(found), out / grid.name)
    written = page.write(
        grid, runs, out, TITLE, NAME, scores=score_means.overview(runs, cells, COLUMNS),
        differences=_differences(BASE, found),
        control=titled("Differences from another's picture", _differences(CONTROL, seen)),
        pictures=titled("Attention to text and picture", pictures.shown(drawn, out)),
    )  # fmt: skip
    return [written, *drawn]


def _differences(base: str, found: Mapping[str, Cells]) -> str:
    """Makes a row for each language and system, tested against a base."""
    headings = ("into", "system", f"exact match, against {SYSTEMS[base].label}")
    labels = {name: language.label for name, language in LANGUAGES.items()}
    of_run = word_outcomes.of_run
    return differences.table_against(base, found, of_run, SYSTEMS, labels, headings)


def _shown(found: Mapping[str, Cells]) -> dict[str, GridRun]:
    """Returns the first run of each language with a picture, its own and another's, by titles."""
    return {
        f"{label_of(LANGUAGES, language)}, {SYSTEMS[name].label}": runs[0]
        for language, systems in found.items()
        for name, runs in systems.items()
        if name != BASE
    }


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
