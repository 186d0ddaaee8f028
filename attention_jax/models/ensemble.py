"""Ensembles: several trained models that write one output, as a model of its own.

A search, forced decoding and scores ask it what they ask of any model: its state is the tuple of
its members' states, its predictions are theirs combined, and its attention is the mean of theirs,
or of what their aligners say.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from attention_jax.ops.ensemble_predictions import EnsemblePredictions
from attention_jax.ops.spans import to_positions
from attention_jax.types import (
    Array,
    AttentionOutput,
    Batch,
    Call,
    Model,
    ModelOutput,
    Params,
    Slots,
    arrays_of,
)


@dataclasses.dataclass(frozen=True)
class Ensemble:
    """Ensemble: M models as one; see `types.Model`.

    Their predictions are combined as `ops.ensemble_predictions` says, token by token, so that all
    members go on with the same words. `params[name_of(m)]` are the parameters of member m.

    Attributes:
      members: The models, which begin from the same field, write the same ids, and read a batch
        that has the fields of all.
      combination: `log_linear` or `mean`.
      attending: The members whose attention is averaged; by default all that attend to the source.

    Source:
      Sutskever, Vinyals and Le (2014), "Sequence to sequence learning with neural networks",
      section 3.6, for ensembles of translation models in a beam search.
    """

    members: tuple[Model, ...]
    combination: str = "log_linear"
    attending: tuple[int, ...] | None = None

    @property
    def begins_from(self) -> str:
        """As its members do."""
        return self.members[0].begins_from

    @property
    def fields(self) -> Sequence[str]:
        """Whatever any of its members reads."""
        return tuple(dict.fromkeys(name for member in self.members for name in member.fields))

    @property
    def provides(self) -> Mapping[str, str | None]:
        """Attention, or aligners, and what all can do; nothing that one computes beside."""
        attending = [self.members[m].provides for m in self._attending]
        is_there = {
            "alignment": bool(attending),
            "aligner": bool(attending) and all("aligner" in each for each in attending),
            "last_word": bool(attending) and all("last_word" in each for each in attending),
            "origins": all("origins" in member.provides for member in self.members),
            "shortlist": all("shortlist" in member.provides for member in self.members),
            "reads_ahead": any("reads_ahead" in each for each in attending),
        }
        return {key: None for key, there in is_there.items() if there}

    @property
    def _attending(self) -> list[int]:
        chosen = range(len(self.members)) if self.attending is None else self.attending
        return [number for number in chosen if "alignment" in self.members[number].provides]

    def init(self, rng: Array) -> Params:
        """Draws the parameters of all members."""
        keys = jax.random.split(rng, len(self.members))
        return {name_of(m): member.init(keys[m]) for m, member in enumerate(self.members)}

    def parameter_axes(self) -> Params:
        """Returns the logical axes of the parameters of all members."""
        return {name_of(m): member.parameter_axes() for m, member in enumerate(self.members)}

    def apply(self, params: Params, batch: Batch, call: Call = Call()) -> ModelOutput:
        """Teacher forcing: runs all members on known targets."""
        found = [
            member.apply(params[name_of(m)], batch, call.fold(m).within(name_of(m)))
            for m, member in enumerate(self.members)
        ]
        predictions = EnsemblePredictions([one.predictions for one in found], self.combination)
        attention = None
        if self._attending:
            weights = _mean_attention(
                [found[m].alignment for m in self._attending],
                [found[m].outputs.get("slots") for m in self._attending],
                batch[self.begins_from].shape[1],
            )
            # There is no memory that is averaged by these weights: contexts have no depth.
            attention = AttentionOutput(weights[..., :0], weights, weights)
        return ModelOutput(predictions, attention)

    def embed(self, params: Params, batch: Batch) -> dict[str, Array]:
        """Returns the embedded positions of all members, by their paths in a call."""
        return {
            f"{name_of(m)}/{path}": vectors
            for m, member in enumerate(self.members)
            for path, vectors in member.embed(params[name_of(m)], batch).items()
        }

    def value_norms(self, params: Params, batch: Batch) -> Array:
        """Norm-based analysis of the members that attend, `B T S`: the mean of theirs."""
        found = [
            self.members[m].value_norms(params[name_of(m)], batch) for m in self._attending
        ]
        return sum(found) / len(found)

    def start(self, params: Params, batch: Batch, max_length: int) -> tuple[Any, Any]:
        """Encodes sources for all members.

        Returns:
          (memory, state): `memory` is the mask of positions `B 1 S` and the memory of each member,
          `state` the state of each.
        """
        begun = [
            member.start(params[name_of(m)], batch, max_length)
            for m, member in enumerate(self.members)
        ]
        memories, states = zip(*begun, strict=True)
        mask = jnp.asarray(batch[arrays_of(self.begins_from)[1]])
        return (mask[:, None], memories), states

    def slots(self, memory: Any) -> Slots | None:
        """Returns what positions stand for, to which all attention is brought; None if to none."""
        mask, memories = memory
        attending = self._attending or range(len(self.members))
        found = [self.members[m].slots(memories[m]) for m in attending]
        known = [slots for slots in found if slots is not None]
        if not known:
            return None
        first = known[0]
        if first.spans is None:
            return first
        is_word = to_positions(first.is_word.astype(float), first.spans, mask.shape[-1]) > 0
        return Slots(mask[:, 0], is_word)

    def step(
        self, params: Params, memory: Any, state: Any, tokens: Array
    ) -> tuple[EnsemblePredictions, Array, Any]:
        """Feeds one token to every hypothesis of every member."""
        mask, memories = memory
        predictions, weights, states = zip(
            *(
                member.step(params[name_of(m)], memories[m], state[m], tokens)
                for m, member in enumerate(self.members)
            ),
            strict=True,
        )
        attending = self._attending or range(len(self.members))
        mean = _mean_attention(
            [weights[m] for m in attending],
            [self.members[m].slots(memories[m]) for m in attending],
            mask.shape[-1],
        )
        return EnsemblePredictions([*predictions], self.combination), mean, states

    def shortlisted(self, params: Params, ids: Array) -> tuple["Ensemble", Params]:
        """Returns the ensemble whose members write the same tokens of the vocabulary."""
        names = [name_of(m) for m in range(len(self.members))]
        members, found = zip(
            *(
                member.shortlisted(params[name], ids)
                for member, name in zip(self.members, names, strict=True)
            ),
            strict=True,
        )
        chosen = dict(zip(names, found, strict=True))
        return dataclasses.replace(self, members=members), chosen


def name_of(number: int) -> str:
    """Returns the name of a member among the parameters."""
    return f"member_{number}"


def _mean_attention(
    weights: Sequence[Array], slots: Sequence[Slots | None], size: int
) -> Array:
    """Averages attention of any number of queries, after each was brought to the positions."""
    of_positions = [
        each if of is None or of.spans is None else to_positions(each, of.spans, size)
        for each, of in zip(weights, slots, strict=True)
    ]
    return sum(of_positions) / len(of_positions)
