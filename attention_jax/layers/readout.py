"""Readouts: the interface that they share, and their lookup.

A readout turns a decoder's features into predictions of the next token, with whatever else it asks
of a step: its attention, or the source. A readout file in `layers/readouts` holds `PAPER`, a frozen
dataclass `Config` and `build(config, sizes) -> Readout`.
"""

import abc
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from attention_jax.discovery import Parts
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.mechanism import Mechanism
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.predictions import Predictions
from attention_jax.types import Array, AttentionOutput, Batch, Params

READOUTS = Parts("attention_jax.layers.readouts", having=("name",))


class ReadoutSizes(NamedTuple):
    """Sizes that a readout must fit.

    Attributes:
      vocabulary_size: V, target ids, special ones included.
      feature_dim: Depth of the features.
      embedding_dim: Depth of an embedded target token.
      is_tied: Whether the target embedding is the output matrix, too (`tie_embeddings`).
      memory_dim: Depth of an annotation of the source; None where there is no source.
      mechanism: What the decoder attends by; None where there is no source.
      attention: Its config, for messages.
      slot_symbols: How many ids a slot of the memory may have; None where slots are no single
        tokens, or there are several sources.
    """

    vocabulary_size: int
    feature_dim: int
    embedding_dim: int
    is_tied: bool = False
    memory_dim: int | None = None
    mechanism: Mechanism | None = None
    attention: Any = None
    slot_symbols: int | None = None


class Step(NamedTuple):
    """Decoder steps, as a readout sees them; `*B` is `B T` in training and `B K` in a search.

    Attributes:
      features: `*B F`, dropped out already.
      attention: What the decoder has attended to, `*B S`; None where there is no source.
      embedding: The target embedding, `V E`.
      source: What `Readout.prepare` returned, with an axis of one for `T` or `K`: `B 1 ...`.
      written: `B K`, in a search, the tokens before those to be predicted; BOS at first.
      state: In a search, what `Readout.step` left behind at the token before.
      word: `*B E`, the token before, embedded; None where a model has no source.
    """

    features: Array
    attention: AttentionOutput | None
    embedding: Array
    source: Any = ()
    written: Array | None = None
    state: Any = ()
    word: Array | None = None


class Predicted(NamedTuple):
    """What a readout returns for a step of a search.

    Attributes:
      predictions: The distribution of each next token, `B K`.
      attention: What the step is said to have attended to.
      state: What its next step finds: arrays `B K ...`, which follow their hypotheses.
    """

    predictions: Predictions
    attention: AttentionOutput | None
    state: Any


class Readout(abc.ABC):
    """Readout: pure functions from features to predictions of the next token.

    Attributes:
      fields: Names of the fields of a batch that `prepare` reads, beside those of the sources.
      provides: What may be asked of its predictions, by the keys of `types.Model.provides`:
        `pointer`, where they are `ops.mixtures.MixturePredictions` that point at words; `origins`,
        where they are `ops.copying.CopyingPredictions`.
      takes_shortlist: Whether there is a readout of fewer tokens; see `shortlisted`.
    """

    fields: Sequence[str] = ()
    provides: Sequence[str] = ()
    takes_shortlist: bool = False

    @property
    @abc.abstractmethod
    def parameters(self) -> Mapping[str, Parameter]:
        """Its parameters by name; they stand beside the model's embeddings."""

    @abc.abstractmethod
    def predict(self, params: Params, step: Step) -> Predictions:
        """Returns the distribution of each next token, of which only its own step decides."""

    def run(
        self, params: Params, step: Step, targets: Array, mask: Array
    ) -> tuple[Predictions, AttentionOutput | None]:
        """Reads all steps of known targets.

        Args:
          params: Its parameters.
          step: The steps, `B T`.
          targets: `B T`, the tokens that they are to predict.
          mask: `B T`, True at real ones.

        Returns:
          The predictions, and the attention that is shown and supervised.
        """
        return self.predict(params, step), step.attention

    def init_state(self, params: Params, source: Any) -> Any:
        """Returns what the first step of a search finds: arrays `B ...`, of what `prepare` did."""
        return ()

    def step(self, params: Params, step: Step) -> Predicted:
        """Reads one step of a search, which may depend on those before it by a state."""
        return Predicted(self.predict(params, step), step.attention, step.state)

    def prepare(self, params: Params, encoded: Encoded, batch: Batch) -> Any:
        """Prepares what it reads of a source, once: a pytree with leading axis `B`."""
        return ()

    def shortlisted(self, params: Params, embedding: Array, ids: Array) -> tuple["Readout", Params]:
        """Returns the readout of some tokens of the vocabulary, and its parameters.

        Args:
          params: Its own parameters.
          embedding: The target embedding, `V E`.
          ids: `N`, the tokens; token n of what is returned is token `ids[n]` here.
        """
        raise NotImplementedError

    def input_ids(self, tokens: Array) -> Array:
        """Returns the ids to embed for written tokens: UNK for words beyond the vocabulary."""
        return tokens


def sums_over_slots(config: Any) -> bool:
    """Whether a readout reads the slots of the source by itself, as its config says.

    Of a decoder it then wants what has read none of them.
    """
    return getattr(config, "sums_over_slots", False)
