"""Gradient estimators of hard attention, and how it reads at test time, as choices of a config.

Training samples the slots that are read, and an estimator says how the weights learn of it:

  reinforce         the objective of that name weighs the samples' log-probabilities
  straight_through  a sample, with the derivative of the weights
  gumbel_softmax    a relaxed sample, which has a derivative of its own

Samples are drawn with the key of the whole sequence and the positions of the queries, so that one
query at a time reads what all at once do. What a row reads depends on its place in the batch. At
test time weights are asked for their `expectation` (soft attention), their maximum or a sample.
"""

import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from attention_jax.configuration import setting
from attention_jax.ops.hard_attention import (
    draw_by_position,
    gumbel_softmax,
    most_probable_slot,
    sample_slot,
    straight_through,
)
from attention_jax.types import Array, Call

Weights = Float[Array, "*B T S"]
Positions = Int[Array, "T"]


class Reading(NamedTuple):
    """What is read in place of the weights.

    Attributes:
      read: `*B T S`; the weights themselves for the expectation.
      is_sampled: `*B T`, where `read` is a sample that the weights do not learn of by themselves.
    """

    read: Float[Array, "*B T S"]
    is_sampled: Bool[Array, "*B T"]


@dataclasses.dataclass(frozen=True)
class Reinforce:
    """REINFORCE: samples, whose log-probabilities are taught by the objective `reinforce`.

    Attributes:
      expectation_share: How often the expectation is read in place of a sample, as in soft
        attention: the paper's way to a lower variance (there .5). A draw is for all steps.
      drawn_for: Whether that is drawn once for each `example`, as the paper says, or for the whole
        `batch` (each of its parts, where gradients are accumulated), as the authors' program does.

    Source:
      Xu et al. (2015), section 4.1.
    """

    name: str = setting("reinforce", choices=("reinforce",))
    expectation_share: float = setting(0.5, at_least=0.0, at_most=1.0)
    drawn_for: str = setting("batch", choices=("batch", "example"))
    provides: ClassVar[tuple[str, ...]] = ("sample_log_prob",)

    def read(self, weights: Weights, positions: Positions, call: Call) -> Reading:
        """Samples every query's slot, or reads the expectation."""
        # Two draws: whether to sample, and which slots.
        which_key, slot_key = jax.random.split(_key(call))
        shape = () if self.drawn_for == "batch" else weights.shape[:-2]
        is_expected = jax.random.uniform(which_key, shape)[..., None] < self.expectation_share
        sample = _sample(weights, positions, slot_key)
        is_sampled = jnp.broadcast_to(~is_expected, weights.shape[:-1])
        return Reading(jnp.where(is_sampled[..., None], sample, weights), is_sampled)


@dataclasses.dataclass(frozen=True)
class StraightThrough:
    """Straight-through estimator: samples, with the derivative of the weights."""

    name: str = setting("straight_through", choices=("straight_through",))
    provides: ClassVar[tuple[str, ...]] = ()

    def read(self, weights: Weights, positions: Positions, call: Call) -> Reading:
        """Samples every query's slot."""
        return _differentiable(_sample(weights, positions, _key(call)), weights)


@dataclasses.dataclass(frozen=True)
class GumbelSoftmax:
    """Gumbel-softmax: relaxed samples, at a temperature that may fall during training.

    temperature(n) = start (end / start)^(min(n / anneal_steps, 1))

    Attributes:
      temperature: `start`; the lower, the nearer to one slot, and the larger the variance.
      final_temperature: `end`; None for `start` throughout.
      anneal_steps: In how many training steps it is reached; 0 where nothing is to be reached.
      one_hot: Whether the largest entry's slot alone is read, with the derivative of the relaxed
        sample.

    Source:
      Jang, Gu and Poole (2017), section 2, straight-through with `one_hot`.
    """

    name: str = setting("gumbel_softmax", choices=("gumbel_softmax",))
    temperature: float = setting(1.0, above=0.0)
    final_temperature: float | None = setting(None, above=0.0)
    anneal_steps: int = setting(0, at_least=0)
    one_hot: bool = setting(False)
    provides: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Rejects half a schedule."""
        if (self.final_temperature is None) != (self.anneal_steps == 0):
            raise ValueError(
                "anneal_steps: expected above 0 beside final_temperature and 0 without, found "
                f"{self.anneal_steps}"
            )

    def read(self, weights: Weights, positions: Positions, call: Call) -> Reading:
        """Relaxes a sample of every query's slot."""
        # The axis of queries comes from their positions, each with a key of its own.
        *rows, _, slots = weights.shape

        def draw(key: Array) -> Array:
            return jax.random.gumbel(key, (*rows, slots), weights.dtype)

        noise = draw_by_position(draw, _key(call), positions, -2)
        read = gumbel_softmax(weights, noise, self.temperature_at(call.training_step))
        if self.one_hot:
            # The largest entry of a relaxed sample is a sample of the weights, whatever the
            # temperature.
            read = straight_through(most_probable_slot(read), read)
        return Reading(read, _nowhere(weights))

    def temperature_at(self, step: Int[Array, ""] | None) -> float | Float[Array, ""]:
        """Returns the temperature at a training step, that of the first if it is None."""
        if self.final_temperature is None or step is None:
            return self.temperature
        done = jnp.minimum(jnp.asarray(step, float) / self.anneal_steps, 1.0)  # share of the way
        return self.temperature * (self.final_temperature / self.temperature) ** done


@dataclasses.dataclass(frozen=True)
class Expectation:
    """Reads the expectation at test time, as soft attention does; the paper's."""

    name: str = setting("expectation", choices=("expectation",))

    def read(self, weights: Weights, positions: Positions) -> Reading:
        """Returns the weights."""
        return Reading(weights, _nowhere(weights))


@dataclasses.dataclass(frozen=True)
class Argmax:
    """Reads the most probable slot at test time, with the derivative of the weights."""

    name: str = setting("argmax", choices=("argmax",))

    def read(self, weights: Weights, positions: Positions) -> Reading:
        """Returns the slot with the largest weight."""
        return _differentiable(most_probable_slot(weights), weights)


@dataclasses.dataclass(frozen=True)
class Sample:
    """Reads a sample at test time, the same whenever it is asked for.

    The draws are of the seed and the position in the output alone: rows and hypotheses share them,
    so that what a row reads depends neither on its place nor on its padding. Each sample follows
    its weights, but samples of different rows are not independent.

    Attributes:
      seed: Of the draws.
    """

    name: str = setting("sample", choices=("sample",))
    seed: int = setting(0, at_least=0)

    def read(self, weights: Weights, positions: Positions) -> Reading:
        """Samples every query's slot."""

        def draw(key: Array) -> Array:
            return jax.random.uniform(key, (), weights.dtype)

        uniform = draw_by_position(draw, jax.random.key(self.seed), positions, -1)
        sample = sample_slot(weights, jnp.broadcast_to(uniform, weights.shape[:-1]))
        return _differentiable(sample, weights)._replace(
            is_sampled=jnp.ones(weights.shape[:-1], bool)
        )


_ESTIMATORS = {cls.name: cls for cls in (Reinforce, StraightThrough, GumbelSoftmax)}
_READERS = {cls.name: cls for cls in (Expectation, Argmax, Sample)}


def estimator(name: str) -> type:
    """Returns an estimator's config class; raises `KeyError` with all names if there is none."""
    if name not in _ESTIMATORS:
        raise KeyError(sorted(_ESTIMATORS))
    return _ESTIMATORS[name]


def reader(name: str) -> type:
    """Returns the config class of a way to read; raises `KeyError` with all names if not known."""
    if name not in _READERS:
        raise KeyError(sorted(_READERS))
    return _READERS[name]


def _key(call: Call) -> Array:
    if call.sequence_key is None:
        raise ValueError("rng: expected a key, because attention is sampled, found None")
    return call.sequence_key


def _sample(weights: Weights, positions: Positions, key: Array) -> Weights:
    rows = weights.shape[:-2]

    def draw(key: Array) -> Array:
        return jax.random.uniform(key, rows, weights.dtype)

    return sample_slot(weights, draw_by_position(draw, key, positions, -1))


def _differentiable(hard: Weights, weights: Weights) -> Reading:
    return Reading(straight_through(hard, weights), _nowhere(weights))


def _nowhere(weights: Weights) -> Bool[Array, "*B T"]:
    return jnp.zeros(weights.shape[:-1], bool)
