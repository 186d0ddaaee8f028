"""Selective read: what a decoder reads beside the last word, where this was copied from.

  psi(s) = tanh(h_s W_c) . f_t                         how well slot s suits to be copied
  rho_s = exp psi(s) / sum_{r: word of r is y} exp psi(r)   where the word of s is y, else 0
  the next step reads [E y; sum_s rho_s h_s]

y is the word that was written, and psi the scores of the step that wrote it. A word that no slot
holds adds zeros.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax.typing import DTypeLike

from attention_jax.layers.decoder import WRITTEN_ID, DecoderSizes, SequenceDecoder, Told
from attention_jax.layers.encoder import Sources, first_source
from attention_jax.layers.mechanism import Mechanism
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.recurrent_decoder import RecurrentDecoder
from attention_jax.ops.copying import selective_weights
from attention_jax.types import Array, Call, Memory, Params, State

SCORES = "copy_scores"  # in `aux` of attention: psi, for the readout
_KEYS, _SLOTS, _WORDS, _READ = "copy_keys", "copy_slots", "copy_words", "copied"


def with_selective_read(
    build: Callable[[DecoderSizes], SequenceDecoder], sizes: DecoderSizes, words: str, name: str
) -> "SelectiveReader":
    """Builds a decoder that has words as deep as an embedding and an annotation together.

    Args:
      build: Builds the decoder for sizes.
      sizes: What it fits.
      words: The field of a batch that has the ids of what may be copied.
      name: The decoder's, for messages.

    Raises:
      ValueError: If a step of the decoder hands nothing to the next that depends on attention.
    """
    depth = sizes.encoder.output_dim
    inner = build(sizes._replace(embedding_dim=sizes.embedding_dim + depth))
    if not isinstance(inner, RecurrentDecoder) or not inner.reads_contexts:
        raise ValueError(
            "readout.selective_read: expected False beside a decoder whose steps do not follow "
            f"from one another's attention, found True beside {name!r}"
        )
    return SelectiveReader(inner, depth, words)


@dataclasses.dataclass(frozen=True)
class SelectiveReader(RecurrentDecoder):
    """A recurrent decoder with a selective read, as pure functions.

    Attributes:
      inner: The decoder that it is around.
      depth: Of an annotation.
      words: The field of a batch that has the ids of what may be copied.

    Source:
      Gu, Lu, Li and Li (2016), section 3.3, eq. 9.
    """

    inner: RecurrentDecoder
    depth: int
    words: str
    is_online = False

    @property
    def fields(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the fields that it reads."""
        return (self.words,)

    @property
    def mechanism(self) -> Mechanism:  # type: ignore[override]
        """How it attends to the source."""
        return self.inner.mechanism

    @property
    def feature_dim(self) -> int:  # type: ignore[override]
        """Depth of its features."""
        return self.inner.feature_dim

    @property
    def provides(self) -> tuple[str, ...]:  # type: ignore[override]
        """What may be asked of it."""
        return self.inner.provides

    @property
    def observes(self) -> frozenset[str]:
        """What it is told of the last word."""
        return self.inner.observes | {WRITTEN_ID}

    @property
    def parameters(self) -> dict[str, Any]:
        """The decoder's, and the matrix of the scores."""
        kernel = Parameter.of("kernel", annotation=self.depth, features=self.feature_dim)
        return {**self.inner.parameters, "copy_kernel": kernel}

    def memory(self, params: Params, sources: Sources) -> Memory:
        """Prepares the sources for attention and for scores."""
        encoded, memory = first_source(sources), self.inner.memory(params, sources)
        slots = encoded.annotations
        keys = jnp.tanh(slots @ params["copy_kernel"])
        more = {_KEYS: keys, _SLOTS: slots, _WORDS: encoded.aux[self.words]}
        return dataclasses.replace(memory, aux={**memory.aux, **more})

    def first_state(self, params: Params, sources: Sources) -> State:
        """Starts as the decoder does; nothing has been copied."""
        slots = first_source(sources).annotations
        rows, number, depth = slots.shape
        shapes = {SCORES: (rows, number), _READ: (rows, depth)}
        nothing = {name: jnp.zeros(shape, slots.dtype) for name, shape in shapes.items()}
        return {**self.inner.first_state(params, sources), **nothing}

    def observe(
        self, params: Params, memory: Memory, state: State, told: Told, where: Array | None = None
    ) -> State:
        """Reads the slots that the last word was copied from."""
        asked = {name: told[name] for name in self.inner.observes}
        state = self.inner.observe(params, memory, state, asked, where)
        scores, written = state[SCORES], told[WRITTEN_ID][..., 0]
        words = jnp.broadcast_to(memory.aux[_WORDS], scores.shape)
        weights = selective_weights(scores, words, written).astype(scores.dtype)
        read = (weights[..., None, :] @ memory.aux[_SLOTS])[..., 0, :]  # *B 1 S by *B S D
        if where is not None:
            read = jnp.where(where[..., None], read, state[_READ])
        return {**state, _READ: read}

    def dropout(self, call: Call, batch: int, dtype: DTypeLike) -> Any:
        """Draws what the decoder draws."""
        return self.inner.dropout(call, batch, dtype)

    def inputs(self, params: Params, embedded: Array) -> Array:
        """Returns the words as they are: what else is read is known step by step."""
        return embedded

    def advance(
        self,
        params: Params,
        memory: Memory,
        dropout: Any,
        state: State,
        inputs: Array,
        call: Call = Call(),
    ) -> tuple[State, dict[str, Any]]:
        """Advances the decoder by what the last word is and where it is from, and scores slots."""
        read = state[_READ]
        word = jnp.concatenate([inputs, read], axis=-1)
        projected = self.inner.inputs(params, word)
        new, outputs = self.inner.advance(params, memory, dropout, state, projected, call)
        features = self.inner.readout(params, outputs, word)
        scores = (memory.aux[_KEYS] @ features[..., None])[..., 0]  # *B S F by *B F 1
        attention = outputs["attention"]
        attention = dataclasses.replace(attention, aux={**attention.aux, SCORES: scores})
        return {**new, SCORES: scores, _READ: read}, {"attention": attention, "features": features}

    def readout(self, params: Params, outputs: dict[str, Any], embedded: Array) -> Array:
        """Returns the decoder's features."""
        return outputs["features"]
