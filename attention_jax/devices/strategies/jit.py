"""The strategy `jit`: arrays are placed on a mesh, and the compiler derives the communication.

What is compiled is the same function as for a single device.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

import jax
import numpy as np
from jax.sharding import Mesh

from attention_jax.devices.batch_placement import local_shards, pad_rows, shard_batch
from attention_jax.devices.config import Rule
from attention_jax.devices.mesh import batch_sharding, replicated
from attention_jax.devices.rules import exchange_constraints, state_shardings
from attention_jax.types import Params
from attention_jax.updates.gradient_exchange import GradientExchange
from attention_jax.updates.state import TrainState
from attention_jax.updates.step import EvalStep, TrainStep

SPLITS_PARAMETERS = True


def build(mesh: Mesh, rules: Sequence[Rule]) -> "Jit":
    """Builds the strategy for a mesh and the rules of a config."""
    return Jit(mesh, tuple(rules))


@dataclasses.dataclass(frozen=True)
class Jit:
    """Splits batches and, by rules, parameters; see `Strategy`.

    Attributes:
      mesh: The devices.
      rules: How parameters are split.
    """

    mesh: Mesh
    rules: tuple[Rule, ...] = ()
    name: ClassVar[str] = "jit"

    def shardings(self, shapes: TrainState, axes: Params) -> TrainState:
        """Places every leaf by the logical axes of its parameter and the rules."""
        return state_shardings(shapes, axes, self.mesh, self.rules)

    def exchange(self, shardings: TrainState) -> GradientExchange:
        """Gathers parameters that are split over `fsdp`, and scatters their gradient."""
        placements = jax.tree.leaves(shardings.params)
        if all(placement.is_fully_replicated for placement in placements):
            return GradientExchange()
        gather, scatter = exchange_constraints(shardings.params)
        return GradientExchange(gather=gather, scatter=scatter)

    def place(self, batch: Mapping[str, np.ndarray], parts: int = 1) -> dict[str, jax.Array]:
        """Splits the rows over `data` and `fsdp`."""
        return shard_batch(pad_rows(batch, local_shards(self.mesh) * parts), self.mesh)

    def compile_train_step(self, train_step: TrainStep, shardings: TrainState) -> TrainStep:
        """Compiles with the state's placement before and after; metrics are on every device."""
        copy = replicated(self.mesh)
        return jax.jit(
            train_step,
            in_shardings=(shardings, batch_sharding(self.mesh), copy),
            out_shardings=(shardings, copy),
            donate_argnums=0,  # the new state takes the memory of the old one
        )

    def compile_eval_step(self, eval_step: EvalStep, shardings: TrainState) -> EvalStep:
        """Compiles with the placement of the parameters; metrics are on every device."""
        return jax.jit(
            eval_step,
            in_shardings=(shardings.params, batch_sharding(self.mesh)),
            out_shardings=replicated(self.mesh),
        )
