"""Scoring: log-probabilities of given outputs under a trained model, token by token (rescoring)."""

import dataclasses
import functools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from attention_jax.data.examples import Split
from attention_jax.data.pipeline import NumpyBatch, make_eval_batches
from attention_jax.data.task import further_fields
from attention_jax.decoding.forced_decoding import kept_attention
from attention_jax.errors import DataError, DivergenceError
from attention_jax.runs.load import TrainedRun
from attention_jax.search.lengths import length_penalty
from attention_jax.types import Array, Batch, Model, Params, SpecialIds

_BLOCK = 1024  # pairs that are scored before the first of them is printed


@dataclasses.dataclass(frozen=True, eq=False)
class ScoredPair:
    """A given output under a trained model.

    Attributes:
      tokens: Its ids, with the final EOS.
      log_probs: log p(token | the tokens before it, source) of each, natural logarithms.
      score: The score by which a search would rank it: its log-probability, length-normalised as
        the config says.
      weights: Attention `T S` between its tokens and those of the source, EOS included on both
        sides; None where it was not asked for.
      opposite: Of a two-way aligner, with attention, its weights `S T` of the opposite direction.
    """

    tokens: Int[np.ndarray, "T"]
    log_probs: Float[np.ndarray, "T"]
    score: float
    weights: Float[np.ndarray, "T S"] | None = None
    opposite: Float[np.ndarray, "S T"] | None = None

    @property
    def log_prob(self) -> float:
        """Log-likelihood: log p(output | source), the sum over its tokens."""
        return float(self.log_probs.sum(dtype=np.float64))


def given_pairs(
    run: TrainedRun,
    sources: Sequence[str],
    targets: Sequence[str],
    further: Mapping[str, Sequence[str]] = {},
) -> Split:
    """Forced decoding: brings pairs of a user's texts into the form of a run's data.

    Args:
      run: A trained run.
      sources: Source texts; a language model reads none of them.
      targets: The outputs to force, one for each source.
      further: Texts of each further source that the model reads, by its name.

    Raises:
      DataError: If their numbers differ, a further source is missing, or a text cannot be one of
        the run's task.
    """
    task, data = run.task, run.config.data
    check_further(run, further)
    check_numbers(len(sources), {"targets": targets, **further})
    given = [""] * len(sources)
    if not task.continues:
        given = _prepared(run, sources, is_source=not run.is_reverse)
    outputs = _prepared(run, targets, is_source=run.is_reverse)
    for number, text in enumerate(outputs, start=1):
        check_label(run, text, f"pair {number}")
    extras = {name: _beside(run, name, lines) for name, lines in further.items()}
    extras |= task.read(given, data) if task.read else {}
    fields = (*task.fields, *further_fields(task, run.model.fields))
    return Split(
        sources=given, targets=outputs, references=[[text] for text in outputs],
        numbers=list(range(len(given))), extras=extras, name="given",
        source_vocabulary=run.source_vocabulary, target_vocabulary=run.target_vocabulary,
        fields=tuple(field for field in fields if field.name not in run.unread_sources),
        resources=run.resources,
    )  # fmt: skip


def check_further(run: TrainedRun, further: Collection[str]) -> None:
    """Raises `DataError` unless names are those of the further sources that a run reads."""
    wanted = run.further_sources
    if {*wanted} != {*further}:
        raise DataError(
            f"further sources: expected {', '.join(wanted) or 'none'}, found "
            f"{', '.join(further) or 'none'}"
        )


def check_numbers(number: int, further: Mapping[str, Sequence[str]]) -> None:
    """Raises `DataError` unless there are as many texts of each name as there are sources."""
    for name, texts in further.items():
        if len(texts) != number:
            raise DataError(
                f"{name}: expected one for each of the {number} sources, found {len(texts)}"
            )


def check_label(run: TrainedRun, text: str, where: str) -> None:
    """Raises `DataError` for an output that is no label, of a run that writes labels alone."""
    vocabulary = run.target_vocabulary
    if run.task.has_labels and SpecialIds.UNK in vocabulary.encode(text or "?"):
        known = vocabulary.tokens(range(SpecialIds.COUNT, vocabulary.size))
        raise DataError(
            f"{where}: expected a label of the training documents ({', '.join(known)}), found "
            f"{text!r:.80}"
        )


def _beside(run: TrainedRun, name: str, lines: Sequence[str]) -> Sequence[Any]:
    """Returns the texts of a further source, or what its lines name."""
    if name not in run.task.beside:
        return _prepared(run, lines, is_source=True)
    try:
        return run.task.named_by(name, lines, run.config.data)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None


def _prepared(run: TrainedRun, texts: Sequence[str], *, is_source: bool) -> list[str]:
    found, most = [], run.task.longest_text
    for number, text in enumerate(texts, start=1):
        if len(text) > most:
            raise DataError(
                f"pair {number}: expected at most {most} characters, found {len(text)}"
            )
        try:
            found.append(run.task.prepare(text, run.config.data, is_source=is_source))
        except DataError as error:
            raise DataError(f"pair {number}: {error}") from None
    return found


class Scorer:
    """Scoring by teacher forcing, on one device; every shape of batch is compiled once."""

    def __init__(self, run: TrainedRun, *, with_attention: bool = False):
        """Keeps the parameters on a device of this process.

        Args:
          run: A trained run.
          with_attention: Whether the attention of each pair is kept; the model must have one.
        """
        self._run = run
        self._params = jax.device_put(jax.device_get(run.params))
        self._score = jax.jit(functools.partial(_scored, run.model, with_attention))

    def __call__(self, split: Split) -> list[ScoredPair]:
        """Returns the scores of the pairs of a split, in its order.

        Raises:
          DivergenceError: If the model gives numbers that are not finite.
        """
        found: dict[int, ScoredPair] = {}
        for batch in make_eval_batches(split, self._run.config.data):
            arrays = jax.device_get(self._score(self._params, batch))
            for row, index in enumerate(batch["index"]):
                if index >= 0:  # rows that only fill up the batch have -1
                    found[int(index)] = self._pair(split, int(index), batch, arrays, row)
        pairs = [found[index] for index in range(len(split))]
        for number, pair in enumerate(pairs, start=1):
            if math.isnan(pair.log_prob):
                raise DivergenceError(
                    f"{self._run.place}: the probabilities of the output of pair {number} are nan"
                )
        return pairs

    def in_blocks(self, split: Split) -> Iterator[tuple[Split, list[ScoredPair]]]:
        """Yields parts of a split with their scores, so that a long text is printed as it goes."""
        for first in range(0, len(split), _BLOCK):
            block = split.select(range(first, min(first + _BLOCK, len(split))))
            yield block, self(block)

    def _pair(
        self, split: Split, index: int, batch: NumpyBatch, arrays: Mapping[str, Any], row: int
    ) -> ScoredPair:
        length = int(batch["target_mask"][row].sum())
        log_probs, both_ways = arrays["log_probs"][row, :length], [None, None]
        for place, name in enumerate(("weights", "opposite_weights")):
            if name in arrays:
                width = int(batch[f"{self._run.model.begins_from}_mask"][row].sum())
                both_ways[place] = arrays[name][row, :length, :width]
        weights, turned = both_ways
        opposite = None if turned is None else turned.T
        tokens = split.target_ids[index]
        # The end after a label is certain, and no target.
        log_probs = np.pad(log_probs, (0, len(tokens) - length))
        divisor = float(length_penalty(self._run.config.search, jnp.int32(len(tokens))))
        score = float(log_probs.sum(dtype=np.float64)) / divisor
        return ScoredPair(tokens, log_probs, score, weights, opposite)


def _scored(
    model: Model, with_attention: bool, params: Params, batch: Batch
) -> dict[str, Array]:
    """Returns log p of every target token, `B T`, and the attention if it is asked for."""
    output = model.apply(params, batch)
    found = {"log_probs": output.predictions.log_prob(jnp.asarray(batch["target"]))}
    if with_attention:
        kept = kept_attention(output, batch[model.begins_from].shape[1])
        found |= {name: kept[name] for name in kept if name != "head_weights"}
    return found
