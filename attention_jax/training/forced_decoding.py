"""Attention while a known target is written (forced decoding), compared with gold links."""

import dataclasses
import html
from collections.abc import Mapping, Sequence

import jax
import numpy as np

from attention_jax.data.lines import read_lines
from attention_jax.data.pipeline import make_eval_batches
from attention_jax.data.tasks import Split
from attention_jax.data.text.spans import overlaps
from attention_jax.data.text.vocabulary import Vocabulary
from attention_jax.errors import UserError
from attention_jax.evaluation.attention_alignment import between_words, score_attention
from attention_jax.evaluation.pharaoh import MarkedLinks, parse_gold
from attention_jax.training.run_directory import read_json
from attention_jax.training.trained import TrainedRun


def forced_attention(run: TrainedRun, split: Split) -> list[np.ndarray]:
    """Returns the attention with which the first reference of each source is predicted.

    Row t is the attention of the step that predicts target token t, whatever the order of the
    decoder.

    Args:
      run: A trained model.
      split: Its sources and targets.

    Returns:
      For each example `T S`, EOS last on either side, without padding.
    """
    attend = jax.jit(lambda params, batch: run.model.apply(params, batch).attention.weights)
    found: dict[int, np.ndarray] = {}
    for batch in make_eval_batches(split, run.config.data):
        weights = np.asarray(attend(run.params, batch))
        sizes = (batch["target_mask"].sum(-1), batch["source_mask"].sum(-1))
        for row, index in enumerate(batch["index"]):
            if index >= 0:
                found[int(index)] = weights[row, : sizes[0][row], : sizes[1][row]]
    return [found[index] for index in range(len(split))]


@dataclasses.dataclass(frozen=True)
class GoldLinks:
    """Gold links of some pairs of a split.

    Attributes:
      links: By the number of the pair.
      source_words: The words that the links count, for each source of the split; None where they
        are its texts, split at spaces. Case and entities such as `&apos;` may differ.
      target_words: Likewise for the targets.
    """

    links: Mapping[int, MarkedLinks]
    source_words: Sequence[Sequence[str]] | None = None
    target_words: Sequence[Sequence[str]] | None = None


@dataclasses.dataclass(frozen=True)
class GoldFiles:
    """Where gold links come from: the paths of the command line.

    Attributes:
      links: A file as `parse_gold` reads it; None for no comparison.
      base: The number of a sentence's first word in it.
      source: A file of the words that the links count, split at spaces, or None.
      target: Likewise for the targets.
    """

    links: str | None
    base: str = "0"
    source: str | None = None
    target: str | None = None

    def read(self, splits: Sequence[Split]) -> GoldLinks | None:
        """Reads what is there.

        Raises:
          UserError: If there is not one split, or a file cannot be read or does not fit it.
        """
        if not self.links:
            return None
        if len(splits) != 1:
            names = ", ".join(split.name for split in splits)
            raise UserError(f"--alignment: expected one --split beside it, found {names}")
        (split,) = splits
        golds = parse_gold(read_lines(self.links), self.links, base=int(self.base))
        if max(golds, default=-1) >= len(split):
            raise UserError(
                f"{self.links}: expected pairs of {split.name}, below {len(split)}, "
                f"found {max(golds)}"
            )
        return GoldLinks(golds, *(_words(path, len(split)) for path in (self.source, self.target)))


def _words(path: str | None, count: int) -> list[list[str]] | None:
    if path is None:
        return None
    lines = read_lines(path)
    if len(lines) != count:
        raise UserError(f"{path}: expected {count} lines, one for each pair, found {len(lines)}")
    return [line.split() for line in lines]


def evaluate_alignment(run: TrainedRun, split: Split, gold: GoldLinks) -> dict[str, float]:
    """Compares forced attention with gold links and adds the scores to the run's results."""
    scores = compare_with_gold(run, split, gold)
    results = (read_json(run.directory.results) or {}).get(split.name, {})
    run.directory.add_results(split.name, {**results, **scores})
    return scores


def compare_with_gold(run: TrainedRun, split: Split, gold: GoldLinks) -> dict[str, float]:
    """Compares forced attention with gold links; see `score_attention`.

    Raises:
      UserError: If the model has no attention to words, words are not those of the text, or a link
        lies outside of them.
    """
    if not run.model.is_aligning:
        raise UserError("--alignment: expected a model with attention to the source, found none")
    numbers = sorted(gold.links)
    part = split.select(numbers)
    words = [
        [text.split() for text in texts] if given is None else [given[n] for n in numbers]
        for texts, given in ((part.sources, gold.source_words), (part.targets, gold.target_words))
    ]
    matrices = []
    for row, (number, weights) in enumerate(zip(numbers, forced_attention(run, part), strict=True)):
        tokens = (
            _tokens(split.source_vocabulary, part.sources[row], words[0][row], number),
            _tokens(split.target_vocabulary, part.targets[row], words[1][row], number),
        )
        matrices.append(between_words(weights, *tokens))
        _check_inside(gold.links[number], matrices[-1], number)
    return score_attention(matrices, [gold.links[number] for number in numbers])


def _tokens(
    vocabulary: Vocabulary, text: str, words: Sequence[str], number: int
) -> list[list[int]]:
    plain = [html.unescape(word.replace("@-@", "-")).lower() for word in words]
    try:
        return overlaps(plain, [token.lower() for token in vocabulary.surfaces(text)])
    except ValueError as error:
        raise UserError(f"--alignment: words of pair {number}: {error}") from None


def _check_inside(gold: MarkedLinks, weights: np.ndarray, number: int) -> None:
    targets, sources = weights.shape
    outside = [link for link in gold.possible if link[0] >= sources or link[1] >= targets]
    if outside:
        raise UserError(
            f"--alignment: pair {number}: expected links within {sources} and {targets} words, "
            f"found {outside[0][0]}-{outside[0][1]}"
        )
