"""The strategy `shard_map`: each device computes on its rows, and their sums are all-reduced.

The communication is explicit: before the gradient, the counts by which sums are divided; after it,
loss, gradient and metrics. Under gradient accumulation there is one all-reduce for all parts,
whereas `jit` has one for every part.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from attention_jax.devices.batch_placement import local_shards, pad_rows, shard_batch
from attention_jax.devices.config import Rule
from attention_jax.devices.mesh import replicated
from attention_jax.devices.row_keys import shard_key
from attention_jax.types import Params
from attention_jax.updates.gradient_exchange import GradientExchange
from attention_jax.updates.state import TrainState
from attention_jax.updates.step import EvalStep, TrainStep

_AXIS = "data"
_COPY, _ROWS = PartitionSpec(), PartitionSpec(_AXIS)


def build(mesh: Mesh, rules: Sequence[Rule]) -> "ShardMap":
    """Builds the strategy for a mesh; `ShardingConfig` has seen to it that there are no rules."""
    return ShardMap(mesh)


def exchange_over(axis: str) -> GradientExchange:
    """Returns the exchange of devices that each hold all parameters and some rows of a batch."""
    return GradientExchange(
        add_up=lambda tree: jax.lax.psum(tree, axis),
        key=lambda rng: shard_key(rng, jax.lax.axis_index(axis)),
    )


@dataclasses.dataclass(frozen=True)
class ShardMap:
    """Splits batches, with a copy of the state on every device; see `Strategy`.

    Attributes:
      mesh: The devices, all along `data`.
    """

    mesh: Mesh
    name: ClassVar[str] = "shard_map"

    def shardings(self, shapes: TrainState, axes: Params) -> TrainState:
        """Copies every leaf to every device."""
        return jax.tree.map(lambda leaf: replicated(self.mesh), shapes)

    def exchange(self, shardings: TrainState) -> GradientExchange:
        """Adds up over all devices."""
        return exchange_over(_AXIS)

    def place(self, batch: Mapping[str, np.ndarray], parts: int = 1) -> dict[str, jax.Array]:
        """Splits the rows over `data`."""
        return shard_batch(pad_rows(batch, local_shards(self.mesh) * parts), self.mesh)

    def compile_train_step(self, train_step: TrainStep, shardings: TrainState) -> TrainStep:
        """Compiles what each device does with its rows."""
        step = self._mapped(train_step, (_COPY, _ROWS, _COPY), (_COPY, _COPY))
        return jax.jit(step, donate_argnums=0)

    def compile_eval_step(self, eval_step: EvalStep, shardings: TrainState) -> EvalStep:
        """Compiles what each device does with its rows."""
        return jax.jit(self._mapped(eval_step, (_COPY, _ROWS), _COPY))

    def _mapped(self, function, inputs, outputs):
        # With `check_vma`, gradients with respect to replicated parameters would be all-reduced
        # already in the backward pass, and models would have to declare what varies by device.
        return jax.shard_map(
            function, mesh=self.mesh, in_specs=inputs, out_specs=outputs, check_vma=False
        )
