"""Decoding: searches the outputs of a split batch by batch, in few shapes, each compiled once."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.data.examples import Examples
from attention_jax.data.field import PROMPT, SOURCE
from attention_jax.data.pipeline import NumpyBatch, make_eval_batches
from attention_jax.data.text.extended_vocabulary import extended
from attention_jax.data.text.told_words import with_told
from attention_jax.decoding.forced_decoding import kept_attention
from attention_jax.decoding.prefixes import PREFIX
from attention_jax.decoding.shortlist import Shortlister
from attention_jax.devices import (
    fetch,
    make_mesh,
    pad_rows,
    processes,
    replicated,
    shard_batch,
)
from attention_jax.errors import ConfigError
from attention_jax.ops.quantization import with_quantized_products
from attention_jax.ops.spans import to_positions
from attention_jax.runs.divergence import check_outputs
from attention_jax.search import Hypotheses, SearchConfig, Stage, search_stage
from attention_jax.search.state import repeat_state
from attention_jax.types import Batch, Model, Params, Slots, SpecialIds

# The most attention weights that are held for all hypotheses of a batch: a quarter of a GiB.
# Batches of sentences need far fewer; a batch of 64 with a paragraph in it may need more.
_MOST_WEIGHTS = 2**26


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """Hypothesis: one output of a search for one source.

    Attributes:
      tokens: Ids with the final EOS.
      log_prob: log p(tokens | source), natural logarithm.
      score: The score by which the search ranked it, such as the length-normalised log_prob.
      weights: Attention `T S` between tokens, EOS included on both sides.
      words: What ids beyond the vocabulary stand for: words of the source.
      told: What its first unknown ids stand for: words of a prefix, see `told_words`.
    """

    tokens: np.ndarray
    log_prob: float
    score: float
    weights: np.ndarray
    words: tuple[str, ...] = ()
    told: tuple[tuple[str, str], ...] = ()

    def vocabulary(self, vocabulary: Any) -> Any:
        """Returns the vocabulary of outputs with the words that this one has copied or was told."""
        return with_told(extended(vocabulary, self.words), self.told)


class Searcher:
    """Decoding by greedy or beam search or by sampling, on the devices of this process."""

    def __init__(self, model: Model, config: SearchConfig, *, seed: int = 0):
        """Checks the config; every shape of batch is compiled when it first occurs.

        Args:
          model: The network.
          config: How to search.
          seed: Of the randomness of sampling.

        Raises:
          ConfigError: If the search needs attention to source positions and the model has none,
            or a shortlist, and it cannot write with one.
        """
        field = config.needs_alignment
        if field and "alignment" not in model.provides:
            raise ConfigError(
                f"search.{field}: expected a model that attends to source positions, found one "
                "whose model.attention does not"
            )
        if config.shortlist and "shortlist" not in model.provides:
            raise ConfigError(
                "search.shortlist: expected 0 for a model that is no encoder-decoder with the "
                f"readout 'softmax', found {config.shortlist}"
            )
        self._model = model
        self._config = config
        self._mesh = make_mesh(jax.local_devices())
        self._rng = jax.random.key(seed)
        self._is_growing: bool | None = None  # known from the first batch on
        self._search = jax.jit(self._search_batch, static_argnames=("max_length", "room"))
        self._align = jax.jit(functools.partial(_aligned, model))

    def __call__(
        self,
        params: Params,
        examples: Examples,
        data_config: Any,
        *,
        progress: Callable[[int], None] = lambda done: None,
    ) -> list[list[Hypothesis]]:
        """Decodes all sources of a split.

        Several processes share out the batches: all of them must call this, and each gets all
        outputs.

        Args:
          params: The model's parameters.
          examples: The sources, or prompts, and prefixes; targets are not used.
          data_config: Its `eval_batch_size` is used.
          progress: Called with the number of sources decoded so far.

        Returns:
          The hypotheses for each source, best first.

        Raises:
          ConfigError: If a shortlist is asked for that the lexicon of the examples cannot give.
          DivergenceError: If the model gives numbers that are not finite.
        """
        shortlister = Shortlister.of(self._config, examples.resources)
        params = jax.device_put(fetch(params), replicated(self._mesh))
        found: dict[int, list[Hypothesis]] = {}
        batches = make_eval_batches(examples, data_config)
        begins_from, names = self._model.begins_from, examples.input_names
        for number, batch in enumerate(in_parts(batches, self._config, begins_from)):
            if number % jax.process_count() != jax.process_index():
                continue
            batch = pad_rows(batch, self._mesh.size)  # rows must divide among the devices
            inputs = {name: batch[name] for name in names}
            # By the batch's number, so that samples do not depend on the number of processes.
            rng = jax.random.fold_in(self._rng, number)
            shortlist = shortlister and shortlister(
                batch["source"], batch["source_mask"], batch.get(PREFIX.name, ())
            )
            hypotheses = self.search(params, shard_batch(inputs, self._mesh), rng, shortlist)
            # One transfer for all arrays of a batch.
            arrays = jax.device_get(vars(hypotheses))
            lengths = batch[f"{begins_from}_mask"].sum(axis=-1)
            for row, index in enumerate(batch["index"]):
                if index >= 0:  # rows below zero only fill the batch
                    words = examples.own_words[index]
                    found[int(index)] = _hypotheses(arrays, row, int(lengths[row]), words)
            progress(len(found))
        everything = {k: v for part in processes.gather(found) for k, v in part.items()}
        # Batches are in the order of length; the results go back into that of the split.
        outputs = [everything[index] for index in range(len(examples))]
        check_outputs(outputs)
        return outputs

    def search(
        self, params: Params, batch: Batch, rng: jax.Array, shortlist: np.ndarray | None = None
    ) -> Hypotheses:
        """Decodes one batch, first with room for outputs of usual lengths, then with more.

        A search that runs out of room is continued with twice as much. Few batches need that, and
        each amount of room is compiled when a batch first needs it.

        Args:
          params: The model's parameters.
          batch: The model's inputs, such as `source` and `source_mask`, on the devices, and
            `search/prefix` where outputs are to begin with one.
          rng: Key of the randomness of sampling.
          shortlist: The ids that outputs may have, special ones first; None for all.
        """
        longest = batch[self._model.begins_from].shape[1]
        max_length, carry = self._config.longest(longest), None
        for room in self._rooms(params, batch, max_length):
            stage = self._search(
                params, batch, rng, carry, shortlist, max_length=max_length, room=room
            )
            if stage.is_done:
                break
            carry = stage.carry
        if "reads_ahead" in self._model.provides:
            return self._align(params, batch, stage.hypotheses)
        return stage.hypotheses

    def _rooms(self, params: Params, batch: Batch, max_length: int) -> Iterator[int]:
        """Yields growing numbers of positions to search in; the last one fits the longest output.

        It is the only one if the state of the search does not grow with it, or for prompts, which
        say nothing of how long an output usually is.
        """
        begins_from = self._model.begins_from
        room = usual_length(batch[begins_from].shape[1])
        if begins_from != PROMPT.name and self._grows(params, batch):
            while room < max_length:
                yield room
                room *= 2
        yield max_length

    def _grows(self, params: Params, batch: Batch) -> bool:
        """Says whether the state of a search has room for each position, as a KV cache has."""
        if self._is_growing is None:
            sizes = []
            for room in (1, 2):
                start = functools.partial(self._model.start, max_length=room)
                # Traced for its shapes only; nothing is computed.
                _, state = jax.eval_shape(start, params, batch)
                sizes.append([leaf.size for leaf in jax.tree.leaves(state)])
            self._is_growing = sizes[0] != sizes[1]
        return self._is_growing

    def _search_batch(
        self,
        params: Params,
        batch: Batch,
        rng: jax.Array,
        carry: Any,
        shortlist: Any,
        max_length: int,
        room: int,
    ) -> Stage:
        """Begins or continues a search in `room` positions; `jit` compiles it for every shape."""
        model = self._model
        if shortlist is not None:
            model, params = model.shortlisted(params, shortlist)
        start = functools.partial(model.start, max_length=room)
        memory, state = self._with_weights(start, params, batch)(batch)
        prefix = batch.get(PREFIX.name)
        if prefix is not None and shortlist is not None:
            prefix = jnp.searchsorted(shortlist, prefix)  # special ids are as they were
        mask = batch[f"{model.begins_from}_mask"]
        tokens = jnp.zeros((len(mask), self._config.width), jnp.int32)
        repeated = jax.eval_shape(lambda state: repeat_state(state, *tokens.shape), state)
        write = self._with_weights(model.step, params, memory, repeated, tokens)

        def step(state: Any, tokens: jax.Array) -> tuple[Any, jax.Array, Any]:
            # The memory does not follow hypotheses: it has an axis of one where they have K.
            return write(memory, state, tokens if shortlist is None else shortlist[tokens])

        slots = model.slots(memory)
        words = None if slots is None else slots.is_word
        stage = search_stage(
            step, state, self._config, mask.sum(axis=-1), max_length, room, carry, rng, words,
            prefix,
        )  # fmt: skip
        hypotheses = _of_positions(stage.hypotheses, slots, mask.shape[1])
        if shortlist is not None:
            hypotheses = dataclasses.replace(hypotheses, tokens=shortlist[hypotheses.tokens])
        return stage._replace(hypotheses=hypotheses)

    def _with_weights(
        self, function: Callable[..., Any], params: Params, *shapes: Any
    ) -> Callable[..., Any]:
        """Returns a function of parameters and arguments of some shapes as one of the latter."""
        if self._config.dtype == "int8":
            return with_quantized_products(function, params, *shapes)
        return functools.partial(function, params)


def _aligned(model: Model, params: Params, batch: Batch, found: Hypotheses) -> Hypotheses:
    """Second pass: returns complete hypotheses with the weights of teacher forcing."""
    rows, ranks, length = found.tokens.shape
    mask = jnp.arange(length) < found.lengths[..., None]
    target = jnp.where(mask, found.tokens, SpecialIds.PAD)
    given = {name: jnp.repeat(array, ranks, axis=0) for name, array in batch.items()}
    known = {"target": target, "target_mask": mask}
    known = {name: array.reshape(rows * ranks, length) for name, array in known.items()}
    output = model.apply(params, {**given, **known})
    weights = kept_attention(output, found.weights.shape[-1])["weights"]
    weights = weights.reshape(found.weights.shape)  # B*K T S -> B K T S
    return dataclasses.replace(found, weights=jnp.where(mask[..., None], weights, 0.0))


def _of_positions(hypotheses: Hypotheses, slots: Slots | None, size: int) -> Hypotheses:
    """Returns hypotheses whose attention is to source positions, where an encoder merged them."""
    if slots is None or slots.spans is None:
        return hypotheses
    weights = to_positions(hypotheses.weights, slots.spans, size)  # B K T slots -> B K T S
    return dataclasses.replace(hypotheses, weights=weights)


def usual_length(source_length: int) -> int:
    """Returns a number of tokens that few outputs for sources of this length exceed."""
    return source_length + max(8, source_length // 4)


def in_parts(
    batches: Iterable[NumpyBatch], config: SearchConfig, begins_from: str = SOURCE.name
) -> Iterator[NumpyBatch]:
    """Splits batches whose attention weights would not fit into memory into parts of one shape.

    Args:
      batches: Batches of sources, with rows that only fill them up at their ends.
      config: Bounds the length of outputs and the number of hypotheses.
      begins_from: Name of the field from which a search begins.
    """
    for batch in batches:
        rows, length = batch[begins_from].shape[:2]
        weights = rows * config.width * config.longest(length) * length  # B K L S, at their largest
        # -(-a // b) rounds up: first the number of parts, at most one a row, then rows of a part.
        size = -(-rows // min(rows, -(-weights // _MOST_WEIGHTS)))
        for first in range(0, rows, size):
            part = {name: array[first : first + size] for name, array in batch.items()}
            if (part["index"] >= 0).any():  # not of fillers alone
                yield pad_rows(part, size)


def _hypotheses(
    arrays: Mapping[str, np.ndarray], row: int, source_length: int, words: tuple[str, ...]
) -> list[Hypothesis]:
    """Returns the hypotheses of a row, without padding and without those of length 0."""
    # Copies, because a view would keep the arrays of the whole batch alive.
    return [
        Hypothesis(
            tokens=arrays["tokens"][row, rank, :length].copy(),
            log_prob=float(arrays["log_probs"][row, rank]),
            score=float(arrays["scores"][row, rank]),
            weights=arrays["weights"][row, rank, :length, :source_length].copy(),
            words=words,
        )
        for rank, length in enumerate(arrays["lengths"][row])
        if length
    ]
