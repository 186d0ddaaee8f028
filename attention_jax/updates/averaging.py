"""Weight averaging: an exponential moving average (EMA), or the mean of the last checkpoints.

Averaged parameters often evaluate better than the last ones.

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
    """No averaging: evaluates the parameters of the best step as they are."""

    name: str = setting("none", choices=("none",))


@dataclasses.dataclass(frozen=True)
class MovingAverage:
    """Exponential moving average (EMA) of the parameters, updated at every step.

    Attributes:
      decay: Weight of the old average in each update; its memory is 1 / (1 - decay) updates.
    """

    name: str = setting("ema", choices=("ema",))
    decay: float = setting(0.999, above=0.0, below=1.0)


@dataclasses.dataclass(frozen=True)
class CheckpointAverage:
    """Checkpoint averaging: the mean of the parameters in the newest checkpoints, after training.

    Averaged are the checkpoints of every `training.checkpoint_every_steps`, and the last. Left out
    are those that were saved only because of an interruption, because they validated best, or
    because a training ended there that was then made longer: the mean depends on none of this. In
    place of a damaged checkpoint an older one is taken, if it was kept.

    Validations during training measure the last parameters, not the mean. `training.metric` and the
    step that is best by it therefore say nothing about the mean, and `training.patience`, which
    would end training past the best step, must be 0.

    Attributes:
      count: Number of checkpoints; 5 for the base and 20 for the big Transformer.
    """

    name: str = setting("checkpoints", choices=("checkpoints",))
    count: int = setting(5, at_least=1)


Averaging = NoAveraging | MovingAverage | CheckpointAverage

_AVERAGINGS = {cls.name: cls for cls in (NoAveraging, MovingAverage, CheckpointAverage)}


def lookup(name: str) -> type[Averaging]:
    """Finds the config class of an averaging by its name, for `setting(named=lookup)`.

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
    """Exponential moving average: moves it towards `params`.

    average <- d average + (1 - d) params,  d = min(decay, (1 + updates) / (10 + updates))

    The smaller d at the start makes early averages follow the parameters instead of their random
    initial values.

    Args:
      config: The averaging.
      average: The moving average, or None where none is kept.
      params: The parameters after an update.
      updates: Number of updates made before it.
    """
    if not isinstance(config, MovingAverage):
        return average
    updates = jnp.asarray(updates, float)
    decay = jnp.minimum(config.decay, (1.0 + updates) / (10.0 + updates))
    # The same as d old + (1 - d) new, but exact where both are equal.
    return jax.tree.map(lambda old, new: new + decay * (old - new), average, params)


def mean_of(trees: Iterable[Params]) -> Params | None:
    """Averages trees of parameters, holding two at a time; None if there is none to average."""
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
    """Chooses the parameters that evaluation uses: the last, their moving average, or a mean.

    Args:
      config: The averaging.
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
    """Describes the parameters that evaluation uses, in the words of a report.

    Args:
      config: The averaging.
      step: The update after which they were saved, or the last of several.
      is_one_checkpoint: Whether the user asked for one particular checkpoint.
    """
    if isinstance(config, MovingAverage):
        return f"the moving average at step {step}"
    if isinstance(config, CheckpointAverage) and not is_one_checkpoint:
        count = config.count
        return f"the mean of the newest checkpoints, at most {count}, up to step {step},"
    return f"step {step}"
