"""Weight averaging, exponential or of checkpoints, which often evaluates better than the last.

`config.training.averaging.name` alone says which parameters are evaluated after training: those
of the best step (`none`), their moving average (`ema`), or the mean of the newest checkpoints
(`checkpoints`).
"""

import dataclasses
import itertools
from collections.abc import Iterable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from attention_jax.configuration import setting
from attention_jax.types import Params


@dataclasses.dataclass(frozen=True)
class NoAveraging:
    """Evaluates the parameters as they are."""

    name: str = setting("none", choices=("none",))


@dataclasses.dataclass(frozen=True)
class MovingAverage:
    """Evaluates an exponential moving average of the parameters.

    Attributes:
      decay: Weight of the old average in each update; its memory is 1 / (1 - decay) updates.
    """

    name: str = setting("ema", choices=("ema",))
    decay: float = setting(0.999, above=0.0, below=1.0)


@dataclasses.dataclass(frozen=True)
class CheckpointAverage:
    """Evaluates the mean of the parameters in the newest checkpoints, once training is over.

    They are those of every `training.checkpoint_every_steps`, and the last. One that only an
    interruption asked for, that only validated best, or at which a training ended that was then
    made longer, is none of them, so that the mean depends on none of this; nor is a damaged one, in
    whose place an older one is taken if it was kept.

    Validations while training measure the last parameters, not the mean. So `training.metric`, and
    what is called best by it, says nothing about the mean, and `training.patience`, which would end
    training past the best, must be 0.

    Attributes:
      count: How many checkpoints; 5 for the base and 20 for the big Transformer.
    """

    name: str = setting("checkpoints", choices=("checkpoints",))
    count: int = setting(5, at_least=1)


Averaging = NoAveraging | MovingAverage | CheckpointAverage

_AVERAGINGS = {cls.name: cls for cls in (NoAveraging, MovingAverage, CheckpointAverage)}


def lookup(name: str) -> type[Averaging]:
    """Returns the config class of an averaging, for `setting(named=lookup)`.

    Raises:
      KeyError: With the list of names, if there is no such averaging.
    """
    if name not in _AVERAGINGS:
        raise KeyError(sorted(_AVERAGINGS))
    return _AVERAGINGS[name]


def start_average(config: Averaging, params: Params) -> Params | None:
    """Returns the moving average before the first update, or None where none is kept."""
    if not isinstance(config, MovingAverage):
        return None
    # Copies: the state is donated to every step, and a buffer can be donated only once.
    return jax.tree.map(lambda leaf: jnp.array(leaf, copy=True), params)


def update_average(
    config: Averaging, average: Params | None, params: Params, updates: Int[Array, ""]
) -> Params | None:
    """Moves the average towards `params`.

    average <- d average + (1 - d) params,  d = min(decay, (1 + updates) / (10 + updates))

    The smaller d at the start makes early averages follow the parameters instead of their random
    initial values.

    Args:
      config: Which averaging.
      average: The moving average, or None where none is kept.
      params: The parameters after an update.
      updates: Number of updates made before it.
    """
    if not isinstance(config, MovingAverage):
        return average
    updates = jnp.asarray(updates, float)
    decay = jnp.minimum(config.decay, (1.0 + updates) / (10.0 + updates))
    return jax.tree.map(lambda old, new: new + decay * (old - new), average, params)


def mean_of(trees: Iterable[Params]) -> Params | None:
    """Averages trees of parameters, of which two are held at a time; None if there is none."""
    total, count = None, 0
    for tree in trees:
        total = tree if total is None else jax.tree.map(jnp.add, total, tree)
        count += 1
    return None if total is None else jax.tree.map(lambda leaf: leaf / count, total)


def evaluation_params(
    config: Averaging,
    params: Params,
    average: Params | None,
    checkpoints: Iterable[Params] = (),
) -> Params:
    """Returns the parameters that evaluation uses.

    Args:
      config: Which averaging.
      params: The last parameters.
      average: The moving average that goes with them.
      checkpoints: Parameters of the newest checkpoints, newest first. Where there is none yet,
        the last parameters stand for them.
    """
    if isinstance(config, MovingAverage):
        assert average is not None
        return average
    if isinstance(config, CheckpointAverage):
        mean = mean_of(itertools.islice(checkpoints, config.count))
        return params if mean is None else mean
    return params


def describe_evaluated(config: Averaging, step: int, *, is_one_checkpoint: bool) -> str:
    """Says which parameters evaluation uses.

    Args:
      config: Which averaging.
      step: The update after which they were saved, or the last of them.
      is_one_checkpoint: Whether one checkpoint was asked for, in place of what is best.
    """
    if isinstance(config, MovingAverage):
        return f"the moving average at step {step}"
    if isinstance(config, CheckpointAverage) and not is_one_checkpoint:
        count = config.count
        return f"the mean of the newest checkpoints, at most {count}, up to step {step},"
    return f"step {step}"
