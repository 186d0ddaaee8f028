"""Decoding a split by search, batch by batch, in few shapes that are compiled once each."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

from attention_jax.data.examples import Examples
from attention_jax.data.field import PROMPT, SOURCE
from attention_jax.data.pipeline import NumpyBatch, make_eval_batches
from attention_jax.devices import (
    fetch,
    make_mesh,
    pad_rows,
    processes,
    replicated,
    shard_batch,
)
from attention_jax.errors import ConfigError
from attention_jax.ops.spans import to_positions
from attention_jax.runs.divergence import check_outputs
from attention_jax.search import Hypotheses, SearchConfig, Stage, search_stage
from attention_jax.types import Batch, Model, Params, Slots

# Weights of attention that are held for all hypotheses of a batch: a quarter of a GiB. Batches of
# sentences are far below; a paragraph in a batch of 64 is not.
_MOST_WEIGHTS = 2**26


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """One output of one source.

    Attributes:
      tokens: Ids with the final EOS.
      log_prob: log p(tokens | source).
      score: What the search ranked it by.
      weights: `[target tokens, source tokens]`, EOS included in both: the attention.
    """

    tokens: np.ndarray
    log_prob: float
    score: float
    weights: np.ndarray


class Searcher:
    """Searches with a model on this process's devices."""

    def __init__(self, model: Model, config: SearchConfig, *, seed: int = 0):
        """Compiles nothing yet; every shape of batch is compiled when it is first met.

        Args:
          model: The network.
          config: How to search.
          seed: Root of the randomness of sampling.

        Raises:
          ConfigError: If the search needs attention to source positions and the model has none.
        """
        field = config.needs_alignment
        if field and "alignment" not in model.provides:
            raise ConfigError(
                f"search.{field}: expected a model that attends to source positions, found one "
                "whose model.attention does not"
            )
        self._model = model
        self._config = config
        self._mesh = make_mesh(jax.local_devices())
        self._rng = jax.random.key(seed)
        self._is_growing: bool | None = None
        self._search = jax.jit(self._search_batch, static_argnames=("max_length", "room"))

    def __call__(
        self,
        params: Params,
        examples: Examples,
        data_config: Any,
        *,
        progress: Callable[[int], None] = lambda done: None,
    ) -> list[list[Hypothesis]]:
        """Searches the best outputs of every source of a split.

        Of several processes each searches every so many batches; all must call it, and get all.

        Args:
          params: The model's parameters.
          examples: Their sources, or prompts, are searched for; targets are not looked at.
          data_config: Its `eval_batch_size` counts.
          progress: Called with the number of sources that are done.

        Returns:
          For each source its hypotheses, best first.

        Raises:
          DivergenceError: If the model gives numbers that are not finite.
        """
        params = jax.device_put(fetch(params), replicated(self._mesh))
        found: dict[int, list[Hypothesis]] = {}
        batches = make_eval_batches(examples, data_config)
        begins_from, names = self._model.begins_from, examples.input_names
        for number, batch in enumerate(in_parts(batches, self._config, begins_from)):
            if number % jax.process_count() != jax.process_index():
                continue
            batch = pad_rows(batch, self._mesh.size)
            inputs = {name: batch[name] for name in names}
            rng = jax.random.fold_in(self._rng, number)
            hypotheses = self.search(params, shard_batch(inputs, self._mesh), rng)
            arrays = jax.device_get(vars(hypotheses))
            lengths = batch[f"{begins_from}_mask"].sum(axis=-1)
            for row, index in enumerate(batch["index"]):
                if index >= 0:
                    found[int(index)] = _hypotheses(arrays, row, int(lengths[row]))
            progress(len(found))
        everything = {k: v for part in processes.gather(found) for k, v in part.items()}
        outputs = [everything[index] for index in range(len(examples))]
        check_outputs(outputs)
        return outputs

    def search(self, params: Params, batch: Batch, rng: jax.Array) -> Hypotheses:
        """Searches the outputs of one batch, with room for those of a usual length first.

        Each room is compiled when a batch first needs it, which the later ones seldom do.

        Args:
          params: The model's parameters.
          batch: What the model begins from, such as `source` and `source_mask`, on the devices.
          rng: Key of the randomness of sampling.
        """
        longest = batch[self._model.begins_from].shape[1]
        max_length, carry = self._config.longest(longest), None
        for room in self._rooms(params, batch, max_length):
            stage = self._search(params, batch, rng, carry, max_length=max_length, room=room)
            if stage.is_done:
                break
            carry = stage.carry
        return stage.hypotheses

    def _rooms(self, params: Params, batch: Batch, max_length: int) -> Iterator[int]:
        """Yields the numbers of positions to search in, that of the longest output at last.

        That one alone where nothing is larger for it, or nothing is known of usual lengths.
        """
        begins_from = self._model.begins_from
        room = usual_length(batch[begins_from].shape[1])
        if begins_from != PROMPT.name and self._grows(params, batch):
            while room < max_length:
                yield room
                room *= 2
        yield max_length

    def _grows(self, params: Params, batch: Batch) -> bool:
        """Whether the state of a search is larger for longer outputs."""
        if self._is_growing is None:
            sizes = []
            for room in (1, 2):
                start = functools.partial(self._model.start, max_length=room)
                _, state = jax.eval_shape(start, params, batch)
                sizes.append([leaf.size for leaf in jax.tree.leaves(state)])
            self._is_growing = sizes[0] != sizes[1]
        return self._is_growing

    def _search_batch(
        self, params: Params, batch: Batch, rng: jax.Array, carry: Any, max_length: int, room: int
    ) -> Stage:
        memory, state = self._model.start(params, batch, room)
        step = functools.partial(self._model.step, params, memory)
        mask = batch[f"{self._model.begins_from}_mask"]
        slots = self._model.slots(memory)
        words = None if slots is None else slots.is_word
        stage = search_stage(
            step, state, self._config, mask.sum(axis=-1), max_length, room, carry, rng, words
        )
        hypotheses = _of_positions(stage.hypotheses, slots, mask.shape[1])
        return stage._replace(hypotheses=hypotheses)


def _of_positions(hypotheses: Hypotheses, slots: Slots | None, size: int) -> Hypotheses:
    """Returns hypotheses whose attention is to positions of the source, whatever its slots are."""
    if slots is None or slots.spans is None:
        return hypotheses
    weights = to_positions(hypotheses.weights, slots.spans, size)
    return dataclasses.replace(hypotheses, weights=weights)


def usual_length(source_length: int) -> int:
    """Returns a number of tokens that few outputs of sources of this length exceed."""
    return source_length + max(8, source_length // 4)


def in_parts(
    batches: Iterable[NumpyBatch], config: SearchConfig, begins_from: str = SOURCE.name
) -> Iterator[NumpyBatch]:
    """Yields batches, those of long sources in parts of equal shapes that fit into memory.

    Args:
      batches: Of sources, with fillers at their ends.
      config: How long outputs may be, and how many are followed at a time.
      begins_from: The field that a search begins from.
    """
    for batch in batches:
        rows, length = batch[begins_from].shape[:2]
        weights = rows * config.width * config.longest(length) * length
        size = -(-rows // min(rows, -(-weights // _MOST_WEIGHTS)))
        for first in range(0, rows, size):
            part = {name: array[first : first + size] for name, array in batch.items()}
            if (part["index"] >= 0).any():
                yield pad_rows(part, size)


def _hypotheses(
    arrays: Mapping[str, np.ndarray], row: int, source_length: int
) -> list[Hypothesis]:
    # A copy of what is its own: a view would keep the arrays of the whole batch.
    return [
        Hypothesis(
            tokens=arrays["tokens"][row, rank, :length].copy(),
            log_prob=float(arrays["log_probs"][row, rank]),
            score=float(arrays["scores"][row, rank]),
            weights=arrays["weights"][row, rank, :length, :source_length].copy(),
        )
        for rank, length in enumerate(arrays["lengths"][row])
        if length
    ]
