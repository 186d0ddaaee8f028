"""Word alignment commands of `launch.align`: train an aligner, and apply one that is trained."""

import itertools
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from absl import flags

from attention_jax.commands import cli, trained_runs
from attention_jax.commands.align_links import (
    DEFAULT,
    DIRECTIONS,
    GEOMETRIC_MEAN,
    check_files,
    combined,
    directions_of,
    read_sides,
    write_lines,
    write_links,
)
from attention_jax.errors import UserError
from attention_jax.evaluation.symmetrization import METHODS, ORDERS
from attention_jax.paths import expanded


class Aligned(NamedTuple):
    """What an aligner finds in a text.

    Attributes:
      links: Those of every pair, of one direction or of both combined.
      scores: Returns, for each direction that this needs, how probable every pair is: log p by
        word.
    """

    links: Sequence[Collection]
    scores: Callable[[], Sequence[Sequence[float]]]


def define_train_flags() -> None:
    """Flags of `train`."""
    from attention_jax.data.alignment.aligners import METHODS as ALIGNERS

    flags.DEFINE_string("source", None, "Text file.")
    _define_texts()
    flags.DEFINE_enum("method", "hmm", list(ALIGNERS), "The aligner.")
    flags.DEFINE_enum("symmetrization", DEFAULT, METHODS + DIRECTIONS, "What is written.")
    flags.DEFINE_string("model", None, "Where the trained aligner is kept.")


def train() -> None:
    """Word alignment: trains an aligner on a parallel corpus, writes its links, or keeps it."""
    from attention_jax.data.alignment.aligners import align

    output, model = check_files(["source", "target"], ["output", "model"])
    method, chosen = cli.value("method"), cli.value("symmetrization")
    directions = directions_of(chosen)
    if model is None:
        found = align(*read_sides(cli.require("source")), method, directions, _say)
    else:
        found = _keep(model, method, directions, with_links=output is not None)
    if output is not None:
        write_links(output, combined(found, chosen, cli.value("order")))


def define_apply_flags() -> None:
    """Flags of `apply`."""
    flags.DEFINE_multi_string("source", [], "Text file, and NAME=FILE of further sources.")
    _define_texts()
    for name in ("model", "run", "reverse"):
        flags.DEFINE_string(name, None, "What aligns.")
    choices = METHODS + DIRECTIONS + (GEOMETRIC_MEAN,)
    flags.DEFINE_enum("symmetrization", None, choices, "What is written.")
    flags.DEFINE_string("scores", None, "Where log-probabilities are written.")


def apply() -> None:
    """Word alignment: links text with an aligner or a run that is trained, and scores its pairs."""
    output, scores = check_files(["source", "target", "model"], ["output", "scores"])
    given = cli.either("model", "run")
    if cli.value("reverse") and not cli.value("run"):
        raise UserError("--reverse: expected only beside --run")
    if given == "model" and cli.value("symmetrization") == GEOMETRIC_MEAN:
        raise UserError(
            f"--symmetrization: expected {GEOMETRIC_MEAN}, of weights, beside --run, found --model"
        )
    aligned = _by_model() if given == "model" else _by_runs()
    if output is not None:
        write_links(output, aligned.links)
    if scores is not None:
        rows = zip(*aligned.scores(), strict=True)
        write_lines("scores", scores, (" ".join(f"{each:.4f}" for each in row) for row in rows))


def joined(found: Mapping[str, Any], chosen: str) -> Collection:
    """Symmetrization: the links of a pair by one direction's run, or by both runs combined.

    Args:
      found: The `LinkedPair` of each of `directions_of(chosen)`.
      chosen: A direction, a way of symmetrising, or the geometric mean of weights.
    """
    from attention_jax.data.alignment.aligners import turned
    from attention_jax.evaluation.symmetrized_attention import agreed_links

    if chosen == GEOMETRIC_MEAN:
        return agreed_links(*(found[direction].weights for direction in DIRECTIONS))
    links = [
        [pair.links] if direction == "forward" else turned([pair.links])
        for direction, pair in found.items()
    ]
    return combined(links, chosen, cli.value("order"))[0]


def _define_texts() -> None:
    flags.DEFINE_string("target", None, "Its translation, line by line.")
    flags.DEFINE_enum("order", ORDERS[0], ORDERS, "In which links are looked at.")
    flags.DEFINE_string("output", None, "Where links are written.")


def _keep(path: Path, method: str, directions: Sequence[str], *, with_links: bool) -> list:
    """Trains an aligner, writes it, and returns its links of the text if they are wanted."""
    from attention_jax.data.alignment.aligner_files import write_aligner
    from attention_jax.data.alignment.trained_aligners import MODELS, apply, learn

    if method not in MODELS:
        raise UserError(f"--model: expected --method among {', '.join(MODELS)}, found {method}")
    sides = read_sides(cli.require("source"))
    aligner = learn(*sides, method, directions, _say)
    found = apply(aligner, *sides, directions, _say) if with_links else []
    try:
        write_aligner(path, aligner)
    except OSError as error:
        raise UserError(f"--model: {path} cannot be written ({error.strerror})") from None
    return found


def _by_model() -> Aligned:
    """Aligns by an aligner that was kept."""
    from attention_jax.data.alignment.aligner_files import read_aligner
    from attention_jax.data.alignment.trained_aligners import apply, mean_log_probs

    aligner = read_aligner(expanded(cli.require("model")))
    chosen = _chosen([*aligner.directions], f"{cli.value('model')}: an aligner")
    source, _ = trained_runs.sources(())
    sides, directions = read_sides(source), directions_of(chosen)
    links = combined(apply(aligner, *sides, directions, _say), chosen, cli.value("order"))
    return Aligned(links, lambda: mean_log_probs(aligner, *sides, directions))


def _by_runs() -> Aligned:
    """Aligns by the attention of a run, and of one of the opposite direction if there is one."""
    from attention_jax.analysis.other_runs import further_sources_of
    from attention_jax.analysis.reverse import reverse_run
    from attention_jax.data.lines import read_pairs
    from attention_jax.decoding.attention_aligner import linked_pairs
    from attention_jax.decoding.translate import check_aligning
    from attention_jax.runs.load import load_run, note_unfinished
    from attention_jax.types import BidirectionalModel

    # By their configs, so that a mistake in the texts is told before anything is loaded.
    given = filter(cli.value, ("run", "reverse"))
    names = (further_sources_of(f"--{flag}", cli.value(flag)) for flag in given)
    source, further = trained_runs.sources([*dict.fromkeys(itertools.chain(*names))])
    sides = list(zip(*read_pairs(source, cli.require("target")), strict=True))
    cli.use_compilation_cache()
    runs = {"forward": load_run(cli.require("run"))}
    if cli.value("reverse"):
        runs["reverse"] = load_run(cli.value("reverse"))
    elif isinstance(runs["forward"].model, BidirectionalModel):
        runs["reverse"] = reverse_run(runs["forward"])
    for flag, run in zip(("run", "reverse"), runs.values(), strict=False):
        check_aligning(run, flag)
    note_unfinished(*runs.values())
    is_two_way = "reverse" not in runs and "opposite_alignment" in runs["forward"].model.provides
    known, usual = (DIRECTIONS, GEOMETRIC_MEAN) if is_two_way else ([*runs], DEFAULT)
    chosen = _chosen(known, f"{cli.value('run')}: a run", usual)
    directions, readers = directions_of(chosen), []
    for direction in runs if is_two_way else directions:
        run, is_forward = runs[direction], direction == "forward"
        beside = {name: further[name] for name in run.further_sources}
        readers.append(linked_pairs(run, *(sides if is_forward else sides[::-1]), beside))
    links, scores = [], []
    for pairs in zip(*readers, strict=True):  # block by block, as weights of a whole text are large
        scores.append([pair.mean_log_prob for pair in pairs])
        if is_two_way:
            [pair] = pairs
            pairs = [pair if direction == "forward" else pair.turned for direction in directions]
        links.append(joined(dict(zip(directions, pairs, strict=True)), chosen))
    return Aligned(links, lambda: [*zip(*scores, strict=True)])


def _chosen(directions: Sequence[str], what: str, usual: str = DEFAULT) -> str:
    """Returns what is to be written: as asked, or both directions if there are both."""
    asked = cli.value("symmetrization")
    chosen = asked or (usual if len(directions) == 2 else directions[0])
    missing = [each for each in directions_of(chosen) if each not in directions]
    if missing:
        raise UserError(
            f"--symmetrization: {what} of the direction {missing[0]} is needed for {chosen}, found "
            f"{directions[0]} only"
        )
    return chosen


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
