"""Keeps the word alignments of a trained run, of the test pairs that have gold links."""

from collections.abc import Iterable, Sequence

import numpy as np
from absl import flags

from attention_jax.analysis.gold_links import GoldLinks, compare_with_gold
from attention_jax.commands import cli
from attention_jax.data.examples import Split
from attention_jax.evaluation.aer import count_links
from attention_jax.evaluation.alignment import links_from_weights
from attention_jax.evaluation.pharaoh import Link, MarkedLinks, parse_lines
from attention_jax.evaluation.symmetrization import symmetrize
from attention_jax.evaluation.symmetrized_attention import agreed_links, product_links
from attention_jax.evaluation.word_weights import WordWeights
from attention_jax.runs.files import replacing
from attention_jax.runs.load import TrainedRun, load_run, task_of
from attention_jax.sweeps.grid import GridRun
from attention_jax.sweeps.kept_files import keep_lines
from experiments.kit.attention_record import gold_links
from experiments.kit.sentence_measures import SentenceMeasure

USAGE = """
Keeps the word alignments of a trained run, of the test pairs that have gold links.

usage: python -m experiments.kit.linked_words --workdir=DIRECTORY

Writes links.test.txt.gz, the links that its attention or its aligner makes of the references, and
gold.test.txt.gz, the gold ones, both as SOURCE-TARGET of the run's direction, a line for each pair
that has gold links; no lines where ATTENTION_JAX_DATA has none of its languages. weights.test.npz
has the weights between the words of these pairs, in ten-thousandths, by the number of their line;
opposite.test.npz has those of a two-way aligner in the opposite direction.
"""
LINKS, GOLD, WEIGHTS = "links.test.txt.gz", "gold.test.txt.gz", "weights.test.npz"
OPPOSITE = "opposite.test.npz"
_WHOLE = 10_000  # of a weight of one: whole numbers take a third of the room in a record


def main() -> None:
    """Keeps the links of the run."""
    cli.use_compilation_cache()
    run = load_run(cli.require("workdir"))
    test = task_of(run).split("test")
    record(run, test, gold_links(test, run.config.data))


def record(run: TrainedRun, split: Split, gold: GoldLinks | None) -> None:
    """Writes the links of a run, and the gold ones, of the pairs of a split that have such."""
    found, marked, weights, opposite = [], [], {}, {}
    if gold is not None:
        attention = compare_with_gold(run, split, gold).forward
        numbers = sorted(gold.links)
        words = [attention[number].linking.words for number in numbers]
        found, weights = [_line(each.links()) for each in words], _kept(words)
        turned = [attention[number].turned for number in numbers]
        opposite = _kept([each.linking.words for each in turned if each is not None])
        marked = [_marked_line(gold.links[number]) for number in numbers]
    path = run.directory.path
    keep_lines(path / LINKS, found)
    keep_lines(path / GOLD, marked)
    for name, arrays in ((WEIGHTS, weights), (OPPOSITE, opposite)):
        with replacing(path / name) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)


def _kept(words: Sequence[WordWeights]) -> dict[str, np.ndarray]:
    whole = (np.rint(each.whole * _WHOLE) for each in words)
    return {str(line): each.astype(np.uint16) for line, each in enumerate(whole)}


def _weights(run: GridRun, file: str) -> dict[str, np.ndarray]:
    # Of earlier records they are fractions.
    return {
        line: each if each.dtype.kind == "f" else each / _WHOLE
        for line, each in run.arrays(file).items()
    }


BY_WEIGHTS = {"product": product_links, "geometric_mean": agreed_links}


def is_two_way(run: GridRun) -> bool:
    """Whether a finished run has aligned in the opposite direction, too."""
    return run.keeps(OPPOSITE) and bool(run.arrays(OPPOSITE))


def symmetrized(forward: GridRun, reverse: GridRun | None, method: str) -> SentenceMeasure | None:
    """Symmetrization: counts the links that two runs of opposite directions make together.

    Args:
      forward: A finished run, whose record has the gold links, too.
      reverse: One of the opposite direction; None for what a two-way aligner says of it.
      method: One of `symmetrization.METHODS`, for the links of each, or one of `BY_WEIGHTS`.

    Returns:
      The counts of which AER is made, of each pair; None where there were no gold links.
    """
    golds = _links(forward, GOLD)
    if not golds:
        return None
    lines = [*map(str, range(len(golds)))]
    if method in BY_WEIGHTS:
        weights = _weights(forward, WEIGHTS)
        kept = (forward, OPPOSITE) if reverse is None else (reverse, WEIGHTS)
        opposite = _weights(*kept)
        both = [BY_WEIGHTS[method](weights[line], opposite[line]) for line in lines]
    else:
        there = [each.sure for each in _links(forward, LINKS)]
        if reverse is None:
            opposite = _weights(forward, OPPOSITE)
            turned = (links_from_weights(opposite[line]) for line in lines)
            back = [{(source, target) for target, source in links} for links in turned]
        else:
            back = [each.turned().sure for each in _links(reverse, LINKS)]
        both = [symmetrize(*pair, method) for pair in zip(there, back, strict=True)]
    counts = [count_links([links], [gold]) for links, gold in zip(both, golds, strict=True)]
    rows = [(each.links, each.sure, each.sure_hits, each.possible_hits) for each in counts]
    return SentenceMeasure("aer", np.array(rows, float))


def _links(run: GridRun, file: str) -> Sequence[MarkedLinks]:
    return parse_lines(run.lines(file), f"{run.name}: {file}")


def _line(links: Iterable[Link], mark: str = "-") -> str:
    return " ".join(f"{source}{mark}{target}" for source, target in sorted(links))


def _marked_line(links: MarkedLinks) -> str:
    return f"{_line(links.sure)} {_line(links.possible - links.sure, '?')}".strip()


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, which are not those of programs that import this module."""
    flags.DEFINE_string("workdir", None, "The run's directory.")
    return argv


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
