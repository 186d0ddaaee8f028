"""The decoder of GNMT: the bottom layer asks, and every layer is told.

  h^1_t = cell(h^1_{t-1}, [E y_{t-1}; b_t])
  x^1_t = h^1_t;   x^l_t = cell(h^l_{t-1}, [x^{l-1}_t; c_t]) + x^{l-1}_t, the sum from layer 3 on
  features = x^L_t

  variant   c_t, for the layers above              b_t, for the bottom layer
  paper     attend(h^1_{t-1})                      c_t
  gnmt      the same, but zeros at the first step  c_t
  gnmt_v2   attend(h^1_t)                          c_{t-1}, zeros at the first step

`gnmt` and `gnmt_v2` are the two architectures of tensorflow/nmt. With `paper` and `gnmt` the query
for y_t has not seen y_{t-1}. Alignments are, in every variant, of the step that writes a word.

Nothing above the bottom layer is needed to attend. Known targets are therefore decoded layer by
layer: only the bottom one recurs together with the attention, each of the others by itself, with
its products with inputs and contexts computed for all steps before.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.bridges import BRIDGES
from attention_jax.layers.decoder import Decoded, DecoderSizes, Told, counted
from attention_jax.layers.encoder import Sources, first_source
from attention_jax.layers.parameters import Parameter, project
from attention_jax.layers.stacked_decoder import StackedConfig, StackedDecoder
from attention_jax.ops.deferred_scan import deferred_scan
from attention_jax.ops.dropout import scale
from attention_jax.ops.masks import time_major
from attention_jax.ops.products import add_bias
from attention_jax.ops.recurrent import CELLS, Gates
from attention_jax.types import Array, Call, Memory, Params, State

PAPER = "Wu et al. (2016), Google's neural machine translation system, section 3, eq. 4-6"

_VARIANTS = ("paper", "gnmt", "gnmt_v2")
_FIRST_RESIDUAL = 2  # counted from zero: the third layer from the bottom


@dataclasses.dataclass(frozen=True)
class Config(StackedConfig):
    """GNMT's decoder, whose bottom layer attends for all.

    Further fields are those of `layers.stacked_decoder.StackedConfig`; the depth is 1024 in the
    paper.

    Attributes:
      name: The decoder.
      num_layers: How many layers are stacked (8 in the paper), at least two.
      variant: `paper`, `gnmt` or `gnmt_v2`; see above.
      bridge: What the state starts from; the paper is silent, tensorflow/nmt has `copy_backward`.
      residual: Whether a layer from the third on adds its input, but not the context beside it, to
        its output, as in the paper.
    """

    name: str = setting("gnmt")
    num_layers: int = setting(2, at_least=2)
    variant: str = setting("paper", choices=_VARIANTS)
    bridge: str = setting("mean", choices=BRIDGES)

    def __post_init__(self) -> None:
        """Rejects fields that would change nothing."""
        if self.residual and self.num_layers <= _FIRST_RESIDUAL:
            raise ValueError(
                "residual: expected at least three layers, of which the third is the first to "
                f"have it, found {self.num_layers}"
            )


def build(config: Config, sizes: DecoderSizes, attention: Any) -> "GnmtDecoder":
    """Builds the decoder around the mechanism that `attention` configures."""
    mechanism = sizes.mechanism(attention, config.hidden_dim, config.alignment_head)
    return GnmtDecoder(config, sizes, mechanism)


@dataclasses.dataclass(frozen=True)
class GnmtDecoder(StackedDecoder):
    """GNMT's decoder as pure functions."""

    config: Config

    @property
    def feature_dim(self) -> int:
        """Depth of the features."""
        return self.config.hidden_dim

    @property
    def provides(self) -> tuple[str, ...]:  # type: ignore[override]
        """What may be asked of it: in the other variant a query has not read the last word."""
        return ("last_word",) if self.config.variant == "gnmt_v2" else ()

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters; the context's part of a layer's kernel is beside the input's."""
        tree, context_dim = super().parameters, self.mechanism.context_dim
        for name in self.stack.parameters:
            width = tree[name]["input"].shape[1]  # all gates side by side
            tree[name]["context"] = Parameter.of("kernel", context=context_dim, gates=width)
        return tree

    def first_state(self, params: Params, sources: Sources) -> State:
        """Starts from the bridge, with no context."""
        state, encoded = super().first_state(params, sources), first_source(sources)
        if self.config.variant == "gnmt_v2":
            shape = (encoded.mask.shape[0], self.mechanism.context_dim)
            state["context"] = jnp.zeros(shape, encoded.annotations.dtype)
        return state

    def advance(
        self,
        params: Params,
        memory: Memory,
        dropout: Any,
        state: State,
        inputs: Gates,
        call: Call = Call(),
    ) -> tuple[State, dict[str, Any]]:
        """Attends and updates the bottom layer, then those above."""
        new, outputs = self._ask(params, memory, dropout, state, inputs, call)
        # All layers above are told of one context; they themselves ask nothing.
        below, context = outputs["state"], outputs["attention"].context
        for layer, name in enumerate(self._upper, 1):
            keep_input, keep_hidden = dropout[layer] if dropout else (None, None)
            gates = self._gates(params[name], scale(below, keep_input), context)
            constants = (params[name], keep_hidden)
            new[name], hidden = self._update(constants, state[name], gates)
            below = self._add(layer, hidden, below)
        return new, {**outputs, "state": below}

    def run(
        self,
        params: Params,
        memory: Memory,
        state: State,
        embedded: Array,
        *,
        told: Told = {},  # noqa: B006  (never changed)
        mask: Array | None = None,
        call: Call = Call(),
    ) -> Decoded:
        """Teacher forcing: decodes with known targets, layer by layer."""
        dropout = self.dropout(call, embedded.shape[0], embedded.dtype)
        # The upper layers' states stay out of the recurrence that attends.
        asking = {name: part for name, part in state.items() if name not in self._upper}
        new, outputs = self.recur(
            self._ask, (params, memory, dropout), asking, time_major(embedded), mask, call, told
        )
        below, attention = outputs["state"], outputs["attention"]
        for layer, name in enumerate(self._upper, 1):
            keep_input, keep_hidden = dropout[layer]
            # One product for all steps, T B D; only the recurrent half is left to the scan.
            gates = self._gates(params[name], scale(below, keep_input), attention.context)
            constants = (params[name], keep_hidden)
            new[name], hidden = deferred_scan(self._update, constants, state[name], gates)
            below = self._add(layer, hidden, below)
        return Decoded(time_major(below), jax.tree.map(time_major, attention), new)

    def readout(self, params: Params, outputs: dict[str, Any], embedded: Array) -> Array:
        """Returns what the top layer does."""
        return outputs["state"]

    @property
    def _upper(self) -> list[str]:
        return [f"layer_{layer}" for layer in range(1, self.config.num_layers)]

    def _ask(
        self,
        params: Params,
        memory: Memory,
        dropout: Any,
        state: State,
        inputs: Gates,
        call: Call = Call(),
    ) -> tuple[State, dict[str, Any]]:
        """Attends and updates the bottom layer, in the order of the variant."""
        keep = dropout[0][1] if dropout else None
        new: dict[str, Any] = {"position": counted(state)}
        if self.config.variant == "gnmt_v2":
            new["layer_0"] = self._tell(params, state, inputs, state["context"], keep)
            query = new["layer_0"]["hidden"]
            attention, new["attention"] = self.attend(params, query, memory, state, call)
            new["context"] = attention.context  # told to the bottom layer at the next step
        else:
            query = state["layer_0"]["hidden"]
            attention, new["attention"] = self.attend(params, query, memory, state, call)
            if self.config.variant == "gnmt":
                # The first step asks nothing: no weights, and coverage and the like stay unchanged.
                nothing = jax.tree.map(jnp.zeros_like, attention), state["attention"]
                found = attention, new["attention"]
                attention, new["attention"] = _choose(state["position"] == 0, nothing, found)
            new["layer_0"] = self._tell(params, state, inputs, attention.context, keep)
        return new, {"attention": attention, "state": new["layer_0"]["hidden"]}

    def _tell(
        self, params: Params, state: State, gates: Gates, context: Array, keep: Array | None
    ) -> State:
        """Updates the bottom layer, whose words are projected."""
        weights, cell = params["layer_0"], CELLS[self.config.cell]
        if "context" in weights:
            gates = cell.fed(gates, context @ weights["context"])
        return cell.step(weights, state["layer_0"], gates, keep)

    def _gates(self, weights: Params, below: Array, context: Array) -> Gates:
        """Projects what a layer above the bottom is given, for one step or for all."""
        product = below @ weights["input"] + project(context, weights.get("context"))
        return CELLS[self.config.cell].split(add_bias(product, weights["bias"]))

    def _update(
        self, constants: tuple[Params, Array | None], carry: State, gates: Gates
    ) -> tuple[State, Array]:
        weights, keep = constants
        new = CELLS[self.config.cell].step(weights, carry, gates, keep)
        return new, new["hidden"]

    def _add(self, layer: int, output: Array, below: Array) -> Array:
        # The second layer's input has another meaning: it is the state that has asked.
        has_residual = self.config.residual and layer >= _FIRST_RESIDUAL
        return output + below if has_residual else output


def _choose(condition: Array, yes: Any, no: Any) -> Any:
    """Selects between two trees, row by row of their arrays."""

    def choose(one: Array, other: Array) -> Array:
        return jnp.where(jnp.expand_dims(condition, range(condition.ndim, one.ndim)), one, other)

    return jax.tree.map(choose, yes, no)
