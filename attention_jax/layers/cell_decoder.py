"""Recurrent decoder without a source: stacked cells read one word after the other."""

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax.typing import DTypeLike

from attention_jax.layers.cell_stack import CellStack
from attention_jax.layers.decoder import Decoded, SequenceDecoder, Told, counted, start_position
from attention_jax.layers.encoder import Sources, first_source
from attention_jax.ops.deferred_scan import deferred_scan
from attention_jax.ops.dropout import dropout_factors, scale
from attention_jax.ops.recurrent import CELLS, Gates
from attention_jax.types import Array, Call, Params, State


@dataclasses.dataclass(frozen=True)
class CellDecoder(SequenceDecoder):
    """Stacked cells as a decoder, which attends to nothing.

    Attributes:
      stack: The cells.
      input_dropout: Share of each embedded word that is dropped.
    """

    stack: CellStack
    input_dropout: float = 0.0

    @property
    def feature_dim(self) -> int:  # type: ignore[override]
        """Depth of the features."""
        return self.stack.hidden_dim

    @property
    def parameters(self) -> dict[str, Any]:
        """The layers' parameters."""
        return self.stack.parameters

    def first_state(self, params: Params, batch: int, max_length: int, dtype: DTypeLike) -> State:
        """Returns the state before the first word, zeros, which is as large for any length."""
        cell, shape = CELLS[self.stack.cell], (batch, self.stack.hidden_dim)
        layers = {layer: cell.zeros(shape, dtype) for layer in self.stack.parameters}
        return {**layers, "position": start_position(batch)}

    def start(self, params: Params, sources: Sources, max_length: int) -> tuple[Any, State]:
        """Returns a memory of nothing, for sources are not read."""
        first = first_source(sources)
        rows, dtype = first.mask.shape[0], first.annotations.dtype
        return (), self.first_state(params, rows, max_length, dtype)

    def run(
        self,
        params: Params,
        memory: Any,
        state: State,
        embedded: Array,
        *,
        told: Told = {},  # noqa: B006  (never changed)
        mask: Array | None = None,
        call: Call = Call(),
    ) -> Decoded:
        """Reads known words, whose input products are computed for all steps at once."""
        rows, length, _ = embedded.shape
        kept = dropout_factors(call.fold(0), self.input_dropout, embedded.shape, embedded.dtype)
        dropout = self.stack.draw(call.fold(1), rows, embedded.dtype)
        inputs = self.stack.inputs(params, jnp.swapaxes(scale(embedded, kept), 0, 1))  # T B G

        def step(constants: Any, carries: State, inputs: Gates) -> tuple[State, Array]:
            return self.stack.step(*constants, carries, inputs)

        carries = {layer: state[layer] for layer in self.stack.parameters}
        carries, hidden = deferred_scan(step, (params, dropout), carries, inputs)
        after = {**carries, "position": state["position"] + length}
        return Decoded(jnp.swapaxes(hidden, 0, 1), None, after)

    def step(
        self,
        params: Params,
        memory: Any,
        state: State,
        embedded: Array,
        told: Told = {},  # noqa: B006
    ) -> tuple[Array, None, State]:
        """Reads one word."""
        inputs = self.stack.inputs(params, embedded)
        carries, hidden = self.stack.step(params, None, state, inputs)
        return hidden, None, {**carries, "position": counted(state)}
