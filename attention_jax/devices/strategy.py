"""Parallelism strategies: their protocol, and building the one that a config names.

A strategy is the file of its name in `strategies/`: `build(mesh, rules)`, and
`SPLITS_PARAMETERS = True` where it splits more than the batch.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np
from jax.sharding import Mesh

from attention_jax.devices.config import AXES, STRATEGIES, ShardingConfig
from attention_jax.devices.mesh import make_mesh
from attention_jax.errors import ConfigError
from attention_jax.types import Params
from attention_jax.updates.gradient_exchange import GradientExchange
from attention_jax.updates.state import TrainState
from attention_jax.updates.step import EvalStep, TrainStep


@runtime_checkable
class Strategy(Protocol):
    """A way to compute on several devices what one device would compute.

    A state is the same pytree of global arrays with every strategy, so that checkpoints do not
    depend on it.

    Attributes:
      name: As in `config.sharding.strategy`.
      mesh: The devices.
    """

    name: str
    mesh: Mesh

    def shardings(self, shapes: TrainState, axes: Params) -> TrainState:
        """Returns the placement of every leaf of a training state.

        Args:
          shapes: The state's shapes, from `jax.eval_shape`.
          axes: The logical axes of its parameters, from `Model.parameter_axes`.

        Raises:
          ConfigError: If the config's rules do not fit the parameters.
        """
        ...

    def exchange(self, shardings: TrainState) -> GradientExchange:
        """Returns the communication with which train and evaluation steps are made."""
        ...

    def place(self, batch: Mapping[str, np.ndarray], parts: int = 1) -> dict[str, Any]:
        """Sends the rows of this process to its devices, padded so that each gets equally many.

        Args:
          batch: Rows of this process; see `process_share`.
          parts: Gradient accumulation: parts into which a device splits its rows.
        """
        ...

    def compile_train_step(self, train_step: TrainStep, shardings: TrainState) -> TrainStep:
        """Compiles a train step for placed batches; its state argument is donated.

        With a method `lower`, as `jax.jit` gives it one, it is compiled for the shapes of batches
        in the background; without, where it is called first.

        Args:
          train_step: From `make_train_step`, with this strategy's exchange.
          shardings: Placement of the state.
        """
        ...

    def compile_eval_step(self, eval_step: EvalStep, shardings: TrainState) -> EvalStep:
        """Compiles an evaluation step for placed batches, made with this strategy's exchange."""
        ...


def build_strategy(config: ShardingConfig, devices: Sequence[jax.Device] | None = None) -> Strategy:
    """Builds the strategy that a config names.

    Args:
      config: Of the run.
      devices: All of every process if None.

    Raises:
      ConfigError: If its mesh does not fit the devices.
    """
    module = STRATEGIES.find(config.strategy)
    sizes = {axis: getattr(config, axis) for axis in AXES}
    return module.build(make_mesh(devices, **sizes), config.rules)


def build_strategy_here(config: ShardingConfig) -> Strategy:
    """Builds the strategy of a config, or a plain one if that does not fit these devices.

    For using a trained model, perhaps on another machine than that of its training.
    """
    try:
        return build_strategy(config)
    except ConfigError:
        return build_strategy(ShardingConfig())
