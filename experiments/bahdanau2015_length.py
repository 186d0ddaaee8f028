"""Attention against a fixed vector by sentence length; see `USAGE`.

Reproduces: Bahdanau, Cho and Bengio, "Neural machine translation by jointly learning to align and
translate", ICLR 2015, table 1 and the figure of BLEU by sentence length.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attention_jax.runs.files import write_text
from experiments.kit import length_tables, program, seeds, sentence_bleu, tables
from experiments.kit.grid import SMOKE, Grid, Run
from experiments.kit.joined_sentences import CAVEAT, NUMBERS
from experiments.kit.length_tables import sentences_of

NAME = "bahdanau2015_length"
USAGE = """
Reproduces table 1 and the length figure of Bahdanau et al. 2015 at a small scale, on Multi30k from
English to German: with attention and with a fixed vector, trained on short sentences and on all,
three seeds each. Twelve runs, about an hour on two CPU cores.

usage: python -m experiments.bahdanau2015_length [--OPTION=VALUE ...]
"""
SHORT_WORDS = 10
EDGES = (7, 10, 13, 16, 20)
JOINED_EDGES = (20, 25, 30, 35, 40, 50)

ATTENTION = {"model.attention.name": "bahdanau"}
FIXED_VECTOR = {"model.attention.name": "none", "model.attention.conditioning": "every_step"}


@dataclasses.dataclass(frozen=True)
class LengthSystem:
    """A row of the paper's table 1.

    Attributes:
      label: How tables call ours.
      paper: Its name in the paper.
      bleu: Its BLEU there, on all sentences of newstest2014.
    """

    label: str
    paper: str
    bleu: float


SYSTEMS = {
    "attention_all": LengthSystem("attention, all lengths", "RNNsearch-50", 26.75),
    "attention_short": LengthSystem("attention, short only", "RNNsearch-30", 21.50),
    "fixed_all": LengthSystem("fixed vector, all lengths", "RNNencdec-50", 17.82),
    "fixed_short": LengthSystem("fixed vector, short only", "RNNencdec-30", 13.93),
}
# Which is claimed to be better than which.
CLAIMS = (
    ("attention_all", "fixed_all"),
    ("attention_short", "fixed_short"),
    ("attention_short", "fixed_all"),
    ("attention_all", "attention_short"),
    ("fixed_all", "fixed_short"),
)


def make_grid(smoke: bool = False) -> Grid:
    """Returns the twelve runs, or four tiny ones on made-up data."""
    short: Mapping[str, Any] = {"data.max_train_source_words": SHORT_WORDS}
    if smoke:
        short = {"data.max_source_length": 5}
    return Grid(
        name=f"{NAME}_smoke" if smoke else NAME,
        config=f"configs/{NAME}.py:{'smoke' if smoke else 'multi30k'}",
        overrides=SMOKE if smoke else {},
        cells={
            "attention_short": {**ATTENTION, **short},
            "attention_all": ATTENTION,
            "fixed_short": {**FIXED_VECTOR, **short},
            "fixed_all": FIXED_VECTOR,
        },
        seeds=(0,) if smoke else (0, 1, 2),
        after=("experiments.kit.joined_sentences",),
        kept={sentence_bleu.FILE: None},
    )


def write_report(grid: Grid, runs: Sequence[Run], out: Path) -> list[Path]:
    """Writes the page and the two plots.

    Args:
      grid: The experiment.
      runs: Its finished runs.
      out: Where to write.

    Returns:
      The paths written.
    """
    page = out / f"{grid.name}.md"
    plots = {
        "by_length": ("test sentences", ("test",), EDGES),
        "joined": ("joined test sentences", [f"joined_{n}" for n in NUMBERS], JOINED_EDGES),
    }
    paths = []
    sections = [*_opening(grid, runs), _main_table(runs), "", *_claims(runs), ""]
    for name, (title, splits, edges) in plots.items():
        path = out / grid.name / f"{name}.png"
        curves = {
            SYSTEMS[cell].label: sentence_bleu.by_length(sentences_of(of_cell, splits), edges)
            for cell, of_cell in _by_cell(runs).items()
        }
        length_tables.draw(curves, title, path)
        paths.append(path)
        caveat = CAVEAT if len(splits) > 1 else ""
        sections += [*length_tables.section(title, curves, path.relative_to(out), caveat), ""]
    sections += [*_joined_table(runs), "", "## How it was made", "", tables.provenance(runs), ""]
    write_text(page, "\n".join(sections))
    return [page, *paths]


def _opening(grid: Grid, runs: Sequence[Run]) -> list[str]:
    config = runs[0].resolved()
    source = config["model"]["sources"]["source"]
    data, training = config["data"], config["training"]
    return [
        *tables.opening("Attention against a fixed vector, by sentence length", NAME, grid, runs),
        "Bahdanau, Cho and Bengio (ICLR 2015), table 1 and the figure of BLEU by length: attention "
        "(RNNsearch) holds up on long sentences, a fixed vector (RNNencdec) does not, and "
        "attention that was trained on shorter sentences beats a fixed vector that was trained on "
        "longer ones.",
        "",
        "How this differs from the paper, whose numbers are therefore not to be reached but to be "
        "ordered alike:",
        "",
        f"- data: {tables.corpus(data)}; the paper: WMT'14 English to French, 348 M words, tested "
        "on 3,003 sentences of newstest2014, 30,000 words of vocabulary, BLEU of tokenised text;",
        f"- short means at most {SHORT_WORDS} source words, against all sentences; in the paper 30 "
        "words against 50;",
        f"- size: embeddings {source['input']['embedding_dim']}, encoder "
        f"2 x {source['encoder']['hidden_dim']}, decoder "
        f"{config['model']['decoder']['hidden_dim']}; in the paper 620, 2 x 1000 and 1000;",
        f"- training: {training['num_steps']:,} updates of {data['batch_size']} sentences with "
        f"{config['optimizer']['name']}, the same number for every run, whatever its sentences; in "
        "the paper about 110 hours of Adadelta for every model, 288,000 to 846,000 updates of 80 "
        "sentences;",
        f"- seeds: {len(grid.seeds)}; the paper has one run of each model.",
        "",
        "As in the paper: bidirectional GRU, additive attention or, with the same encoder and "
        "decoder, one fixed vector at every step and in the readout, maxout, beam search. The "
        "fixed vector is made of the encoder's two final states, as wide as the attended context, "
        "so that the systems differ by the parameters of the attention alone (see the table).",
        "",
        "## BLEU on all test sentences",
        "",
    ]


def _main_table(runs: Sequence[Run]) -> str:
    headings = ["system", "seeds", "BLEU, mean ± deviation", "95 % interval", "BLEU of each seed",
                "training pairs", "parameters", "paper's", "BLEU there"]  # fmt: skip
    rows = []
    for cell, of_cell in _by_cell(runs).items():
        system, facts = SYSTEMS[cell], of_cell[0].facts()
        values = seeds.seed_mean(sentences_of(of_cell))
        rows.append([
            system.label, str(len(of_cell)), tables.with_deviation(values),
            tables.interval(values), _each_bleu(of_cell), f"{facts['num_train_pairs']:,}",
            f"{facts['num_parameters']:,}", system.paper, f"{system.bleu:.2f}",
        ])  # fmt: skip
    return tables.table(headings, rows)


def _claims(runs: Sequence[Run]) -> list[str]:
    by_cell = _by_cell(runs)
    rows = []
    for better, worse in CLAIMS:
        if better not in by_cell or worse not in by_cell:
            continue
        found = seeds.compare(sentences_of(by_cell[worse]), sentences_of(by_cell[better]))
        p = tables.probability(found.p_value, seeds.RESAMPLES)
        theirs = SYSTEMS[better].bleu - SYSTEMS[worse].bleu
        rows.append([
            f"{SYSTEMS[better].label} – {SYSTEMS[worse].label}", f"{found.difference:+.2f}",
            tables.interval(found), p, f"{found.wins} of {found.pairs}", f"{theirs:+.2f}",
        ])  # fmt: skip
    headings = ["difference", "BLEU", "95 % interval", "p", "pairs of seeds won", "in the paper"]
    return [
        tables.table(headings, rows),
        "",
        f"Intervals and p-values: bootstrap of {seeds.RESAMPLES:,} draws over sentences "
        "(the same for both systems) and over seeds, two-sided. With so few seeds it sees little "
        "of the chance in training; the deviations and the pairs of seeds say more of that.",
    ]


def _joined_table(runs: Sequence[Run]) -> list[str]:
    rows = []
    for cell, of_cell in _by_cell(runs).items():
        scores = [
            tables.with_deviation(seeds.seed_mean(sentences_of(of_cell, (split,))))
            for split in ("test", *(f"joined_{number}" for number in NUMBERS))
        ]
        rows.append([SYSTEMS[cell].label, *scores])
    headings = ["system", "single", *(f"joined by {number}" for number in NUMBERS)]
    return [
        "Longer inputs than the corpus has: test sentences joined at random, full stops and all. "
        "No system has seen an input of several sentences, so this also tests whether a system "
        "goes on after the first full stop.",
        "",
        tables.table(headings, rows),
    ]


def _by_cell(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Groups runs by system, in the order of the table."""
    groups = {cell: [run for run in runs if run.cell == cell] for cell in SYSTEMS}
    return {cell: members for cell, members in groups.items() if members}


def _each_bleu(runs: Sequence[Run]) -> str:
    return ", ".join(f"{sentences.bleu:.2f}" for sentences in sentences_of(runs))


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
