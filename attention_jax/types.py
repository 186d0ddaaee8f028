"""The vocabulary of shapes and the few records that every layer of the package shares.

Dimension legend, used in every annotation:

  B   batch                      T   target positions (queries)
  S   source positions (memory)  H   heads
  K   hypotheses (beams)         L   longest target of a search
  W   window slots               V   target vocabulary
  Dq  query depth                Dk  key depth
  Dv  value depth                Da  hidden depth of an additive score
  D   any model depth            P   prefix of a target, which is forced
  *B  any leading batch axes (heads and beams included)

A mask is boolean and True where something may be attended to; a bias is a float that is added
to scores. Layouts are batch-major.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp

Array = jax.Array
Params = Mapping[str, Any]
State = dict[str, Any]
Leaf = Any  # an array, but for tree transformations, which put shapes or axes in its place
Batch = Mapping[str, Any]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Call:
    """Mode, random key and masks of a call: handed down from the model to whatever reads them.

    Attributes:
      train: Whether dropout is on; static under jit.
      rng: The key to draw from; None where nothing is drawn.
      masks: What attention may read, beside its own masks, by the path of its parameters, such as
        `decoder/layer_0/attention`: bool, such that `B H T S` is a shape that it broadcasts to. A
        head that may read nothing is ablated.
      sequence: The key of a whole sequence, at those of its steps that have an `rng` of their own.
      training_step: How many training steps came before, for what changes with them; None where
        nothing is trained.
      embedded: What is read in place of the embedded positions of a source, `B S E`, by the path of
        its input, such as `encoder/input`; see `AttributableModel`.
    """

    # Static: whether dropout is on decides what is compiled, not what is computed with.
    train: bool = dataclasses.field(default=False, metadata={"static": True})
    rng: Leaf | None = None
    masks: Mapping[str, Leaf] = dataclasses.field(default_factory=dict)
    sequence: Leaf | None = None
    training_step: Leaf | None = None
    embedded: Mapping[str, Leaf] = dataclasses.field(default_factory=dict)

    def fold(self, number: int | Array) -> "Call":
        """Derives the call of one part among several, with a random key of its own (`fold_in`)."""
        if self.rng is None:
            return self
        return dataclasses.replace(self, rng=jax.random.fold_in(self.rng, number))

    def split(self, number: int) -> Leaf | None:
        """Splits the random key into several on a leading axis; None if there is no key."""
        return None if self.rng is None else jax.random.split(self.rng, number)

    def with_key(self, rng: Leaf | None) -> "Call":
        """Returns the same call with another random key."""
        return dataclasses.replace(self, rng=rng)

    def at_step(self, rng: Leaf | None) -> "Call":
        """Returns the call of one step of a sequence, with a key of its own beside the whole's."""
        return dataclasses.replace(self, rng=rng, sequence=self.sequence_key)

    @property
    def sequence_key(self) -> Leaf | None:
        """The key of the whole sequence, the same at each of its steps."""
        return self.rng if self.sequence is None else self.sequence

    def within(self, part: str) -> "Call":
        """Narrows the call to a part of the model: only what is below that part stays."""
        if not (self.masks or self.embedded):
            return self
        masks, embedded = (_below(part, given) for given in (self.masks, self.embedded))
        return dataclasses.replace(self, masks=masks, embedded=embedded)

    def mask_of(self, path: str, mask: Leaf | None = None) -> Leaf | None:
        """Combines the call's mask for a path with the attention's own mask `T S`, if any."""
        if path not in self.masks:
            return mask
        given = jnp.asarray(self.masks[path])
        return given if mask is None else given & mask


def _below(part: str, given: Mapping[str, Leaf]) -> dict[str, Leaf]:
    """Returns what is given for paths below a part; they become relative to it."""
    start = f"{part}/"
    # As the part's own layers know them.
    return {
        path.removeprefix(start): leaf for path, leaf in given.items() if path.startswith(start)
    }


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Memory:
    """Memory: the keys, values and mask of a source, built once and never changed.

    Attributes:
      keys: `*B S Dk`, already projected where the score wants that; zero at padding.
      values: `*B S Dv`, what is averaged; zero at padding.
      mask: `*B S`, True where a slot may be attended to.
      aux: Named arrays that a mechanism needs beside them, such as slot positions.
    """

    keys: Leaf
    values: Leaf
    mask: Leaf
    aux: Mapping[str, Leaf] = dataclasses.field(default_factory=dict)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class AttentionOutput:
    """Attention output: the context of one call, with its weights, scores and intermediates.

    Attributes:
      context: `*B T Dv`, the weighted average of the values.
      weights: `*B T S`, float32 (float64 where the query and the memory are), zero at padding, at
        least zero; before dropout of weights.
      scores: `*B T S`, of the same type, before normalisation and without the mask.
      aux: Named arrays `*B T ...` that a mechanism adds, such as the centre of a window.
    """

    context: Leaf
    weights: Leaf
    scores: Leaf
    aux: Mapping[str, Leaf] = dataclasses.field(default_factory=dict)


class Fertility(NamedTuple):
    """Fertility: how much attention each source token gets in total, as a normal distribution.

    Attributes:
      mean: `B S`, float32.
      log_variance: `B S`, float32.
    """

    mean: Leaf
    log_variance: Leaf


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Slots:
    """Slots of a memory: which part of the source each of them stands for; arrays are `*B S`.

    Attributes:
      mask: `*B S`, True at real slots.
      is_word: `*B S`, True at real slots that stand for more than a boundary such as EOS, so that
        all of them have to be attended to.
      spans: `*B S 2`, the first position of the source that each slot stands for, and the one after
        the last; None where slot s stands for position s.
    """

    mask: Leaf
    is_word: Leaf
    spans: Leaf | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ModelOutput:
    """What a sequence-to-sequence model returns for a batch with known targets.

    Attributes:
      predictions: `B T`, an `ops.predictions.Predictions`: the distribution of the target token at
        each position given those before it.
      attention: Attention at each target position, or None where the model has none.
      outputs: What else is computed, open to any key; `Model.provides` lists them. Among them:
        `coverage` (`B S C`, what is left to translate of each source token after the last real
        target token), `fertility` (how much attention each source token is expected to get),
        `reverse` (the `ModelOutput` of the other direction for `swap_sides(batch)`), `slots`
        (the `Slots` that attention is over; without them, slot s is token s of `source`),
        `alignment` (the weights `B T S` of an aligner of its own), `opposite_alignment` (those
        `B S T` of a two-way aligner for the opposite direction), and of each further source NAME,
        `slots/NAME` and `attention/NAME` (its weights, `B T S`).
    """

    predictions: Any
    attention: AttentionOutput | None
    outputs: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def alignment(self) -> Array:
        """The weights `B T S` that links teach and are read from: attention's or an aligner's."""
        found = self.outputs.get("alignment")
        return self.attention.weights if found is None else found


@runtime_checkable
class Model(Protocol):
    """Model: what training and search ask of one; every builder in `models` returns one.

    A batch maps names to arrays, those of the task's fields: `source` int32 `B S`, `source_mask`
    bool `B S`, `target` int32 `B T` (ending in EOS, without BOS) and `target_mask` bool `B T`, of
    most. Rows whose masks are all False are padding rows. Searching needs only what is known
    before the output is. What an objective needs beside them is in training batches, such as
    `links`, bool `B T S`, True where two tokens belong together.

    Attributes:
      begins_from: The field of a batch that a search begins from, with a mask beside it: `source`,
        or `prompt` where that is how outputs begin and nothing of their length is known.
      fields: Names of the arrays of a batch that it reads, masks among them, beside the target's.
      provides: What objectives, searches and pictures may ask of it, by key, each with the config
        field whose parameters an objective alone can teach, or None. The keys of its `outputs` are
        among them, and what its attention is good for: `alignment`, where weights say which
        positions of the source were attended to; `slot_for_each_token`, where each has a slot of
        its own; `last_word`, where attention for a word has read the one before; `online`, where
        an output needs no more of the source than its weights say; `origins`, where predictions
        tell what was copied from where; `shortlist`, where it is a `ShortlistModel`;
        `reads_ahead`, where the links of a token depend on those after it, so that they are those
        of teacher forcing on the complete output.
    """

    begins_from: str
    fields: Sequence[str]
    provides: Mapping[str, str | None]

    def init(self, rng: Array) -> Params:
        """Returns freshly drawn parameters, a nested dict of float32 arrays."""
        ...

    def parameter_axes(self) -> Params:
        """Returns the logical axes of every parameter, a `PartitionSpec` for each array of `init`.

        `layers/parameters.py` lists them; sharding rules speak of them.
        """
        ...

    def apply(self, params: Params, batch: Batch, call: Call = Call()) -> ModelOutput:
        """Teacher forcing: runs the model on known targets."""
        ...

    def start(self, params: Params, batch: Batch, max_length: int) -> tuple[Any, Any]:
        """Encodes the sources, for outputs of up to `max_length` tokens.

        Returns:
          (memory, state): pytrees with leading axes `B 1`; `memory` is constant through a
          search, every leaf of `state` follows its hypothesis. Leaves that are larger for longer
          outputs hold zeros at their ends, for positions that were not written yet.
        """
        ...

    def slots(self, memory: Any) -> Slots | None:
        """Returns what the slots of a memory that `start` returned stand for, with axes `B S`.

        None where nothing is attended to, or slot s is token s of the source.
        """
        ...

    def step(
        self, params: Params, memory: Any, state: Any, tokens: Array
    ) -> tuple[Any, Array, Any]:
        """Feeds the previous token of every hypothesis, `B K` int32 (BOS at first).

        Returns:
          (predictions, weights, state): predictions `B K`, weights `B K S` float32, and the new
          state.
        """
        ...


@runtime_checkable
class BidirectionalModel(Protocol):
    """A `Model` from source to target with a second one, from target to source, inside.

    Its outputs hold a `reverse`, and `params["reverse"]` are the parameters of the second model.

    Attributes:
      reverse: The second model.
    """

    reverse: Model


@runtime_checkable
class AttributableModel(Protocol):
    """A `Model` whose predictions can be attributed to positions of what it begins from.

    With `Call(embedded=embedded)`, `apply` is a function of the vectors that `embed` returns.
    """

    def embed(self, params: Params, batch: Batch) -> Mapping[str, Array]:
        """Returns the embedded positions `B S E` of what outputs begin from, by their path."""
        ...

    def value_norms(self, params: Params, batch: Batch) -> Array:
        """Norm-based analysis: returns how long what a position adds to a context is, `B T S`.

        Raises:
          ConfigError: If contexts are not averages of values of one source.
        """
        ...


class ShortlistModel(Protocol):
    """A `Model` that can write with some tokens of its vocabulary; `provides` has `shortlist`."""

    def shortlisted(self, params: Params, ids: Array) -> tuple[Model, Params]:
        """Returns the model whose predictions are over a shortlist, and its parameters.

        Tokens that it is fed, as the token before, are still those of the whole vocabulary.

        Args:
          params: The parameters.
          ids: `N`, the shortlist; token n of its predictions is token `ids[n]`.
        """
        ...


def arrays_of(field: str) -> tuple[str, str]:
    """Fields of a batch: returns the keys of a sequence, and of where it is not padding."""
    return field, f"{field}_mask"


def swap_sides(batch: Batch, one: str = "source", other: str = "target") -> Batch:
    """Reverses the direction of translation: what was the source is the target.

    Both fields are written alike, ending in EOS and without BOS, so that nothing has to be shifted.
    What a batch has beside them, such as links, is of one direction, and is left out.
    """
    keys, swapped = arrays_of(one) + arrays_of(other), arrays_of(other) + arrays_of(one)
    return {key: batch[its] for key, its in zip(keys, swapped, strict=True)}


class SpecialIds:
    """Special tokens: the ids that every vocabulary reserves, in this order."""

    PAD = 0
    BOS = 1
    EOS = 2
    UNK = 3
    COUNT = 4
