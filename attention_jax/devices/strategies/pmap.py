"""The strategy `pmap`: data parallelism by the older function that maps over a leading axis.

Batches get a leading axis of devices. The state is mapped over no axis, so that it has the same
form as with other strategies.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, PartitionSpec

from attention_jax.devices.batch_placement import local_shards, pad_rows
from attention_jax.devices.config import Rule
from attention_jax.devices.mesh import replicated
from attention_jax.devices.strategies.shard_map import exchange_over
from attention_jax.types import Params
from attention_jax.updates.gradient_exchange import GradientExchange
from attention_jax.updates.state import TrainState
from attention_jax.updates.step import EvalStep, TrainStep

_AXIS = "data"


def build(mesh: Mesh, rules: Sequence[Rule]) -> "Pmap":
    """Builds the strategy for a mesh; `ShardingConfig` has seen to it that there are no rules."""
    return Pmap(mesh)


@dataclasses.dataclass(frozen=True)
class Pmap:
    """Splits batches, with a copy of the state on every device; see `Strategy`.

    Attributes:
      mesh: The devices, all along `data`.
    """

    mesh: Mesh
    name: ClassVar[str] = "pmap"

    def shardings(self, shapes: TrainState, axes: Params) -> TrainState:
        """Copies every leaf to every device."""
        return jax.tree.map(lambda leaf: replicated(self.mesh), shapes)

    def exchange(self, shardings: TrainState) -> GradientExchange:
        """Adds up over all devices."""
        return exchange_over(_AXIS)

    def place(self, batch: Mapping[str, np.ndarray], parts: int = 1) -> dict[str, np.ndarray]:
        """Puts an axis of this process's devices before the rows; the call sends them there."""
        shards = local_shards(self.mesh)
        padded = pad_rows(batch, shards * parts)
        return {
            # B ... -> D B/D ..., for D devices of this process
            name: array.reshape(shards, array.shape[0] // shards, *array.shape[1:])
            for name, array in padded.items()
        }

    def compile_train_step(self, train_step: TrainStep, shardings: TrainState) -> TrainStep:
        """Compiles what each device does with its rows."""
        return self._mapped(train_step, (None, 0, None), (None, None), donate_argnums=0)

    def compile_eval_step(self, eval_step: EvalStep, shardings: TrainState) -> EvalStep:
        """Compiles what each device does with its rows."""
        return self._mapped(eval_step, (None, 0), None)

    def _mapped(self, function: Callable, in_axes: Any, out_axes: Any, **options: Any) -> Callable:
        mapped = jax.pmap(
            function,
            axis_name=_AXIS,
            in_axes=in_axes,
            out_axes=out_axes,
            devices=list(self.mesh.devices.flat),
            **options,
        )
        if jax.process_count() == 1:
            return mapped

        # pmap takes and returns what lies on a process's own devices, not global arrays.
        def call(state: Any, batch: Any, *rest: Any) -> Any:
            local = multihost_utils.global_array_to_host_local_array(
                state, self.mesh, PartitionSpec()
            )
            found = mapped(local, batch, *rest)  # keys are each process's own already
            return multihost_utils.host_local_array_to_global_array(
                found, self.mesh, PartitionSpec()
            )

        return call
