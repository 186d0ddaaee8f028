"""The Transformer's decoder: each position attends to those before it, then to the source.

Known targets are decoded all at once. In a search, each layer keeps the keys and values of the
positions so far (`past`), and those of the source are projected once.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from attention_jax.configuration import setting
from attention_jax.layers import transformer
from attention_jax.layers.attention import Mechanism
from attention_jax.layers.decoder import (
    DecoderConfig,
    DecoderSizes,
    SequenceDecoder,
    counted,
    start_position,
)
from attention_jax.layers.encoder import Sources, first_source, sequence
from attention_jax.layers.refinement import without_positions
from attention_jax.ops.masks import zero_padding
from attention_jax.ops.positions import at_indices
from attention_jax.types import Array, AttentionOutput, Call, Memory, Params, State

PAPER = "Vaswani et al. (2017), section 3.1"


@dataclasses.dataclass(frozen=True)
class Config(transformer.StackConfig, DecoderConfig):
    """The Transformer's decoder.

    Further fields are those of `transformer.StackConfig` and of `layers.decoder.DecoderConfig`. The
    source is attended to as the model's `attention` says, without those of its refinements that
    compare positions. Where Garg et al. (2019) teach a head to align, it sees the whole target in a
    second pass; here what was written so far, and the word itself with `step="reads"` of the
    objective `supervised_alignment`.

    Attributes:
      name: The decoder.
      alignment_layer: The layer whose attention to the source stands for the decoder's, and whose
        head `alignment_head` is, counted from 0; None for the last but one, or the only one.
    """

    name: str = setting("transformer")
    alignment_layer: int | None = setting(None, at_least=0)

    def __post_init__(self) -> None:
        """Rejects a layer that is not there."""
        super().__post_init__()
        if (self.alignment_layer or 0) >= self.num_layers:
            raise ValueError(
                f"alignment_layer: expected less than num_layers = {self.num_layers}, "
                f"found {self.alignment_layer}"
            )

    @property
    def aligned(self) -> int:
        """The layer whose attention stands for the decoder's."""
        if self.alignment_layer is None:
            return max(self.num_layers - 2, 0)
        return self.alignment_layer


def build(config: Config, sizes: DecoderSizes, attention: Any) -> "TransformerDecoder":
    """Builds the decoder; raises `ValueError` if a mechanism does not serve."""
    depth = sizes.embedding_dim
    is_alone = sizes.encoder is None
    past = transformer.self_attention(config, attention, depth, "causal", is_alone)
    if is_alone:
        for name in ("alignment_layer", "alignment_head"):
            if getattr(config, name) is not None:
                raise ValueError(f"decoder.{name}: expected a source beside it, found none")
        return TransformerDecoder(config, depth, past, None)
    mechanism = sizes.mechanism(without_positions(attention), depth, config.alignment_head)
    if mechanism.context_dim != depth:
        raise ValueError(
            f"attention.name: expected contexts as deep as the embeddings ({depth}), found "
            f"{attention.name!r} with {mechanism.context_dim}; multi_head gives them any depth"
        )
    if mechanism.observes:
        raise ValueError(
            "attention.name: expected a mechanism that needs to know queries only, found "
            f"{attention.name!r}"
        )
    if config.alignment_layer is not None and not mechanism.parts.is_alignment:
        raise ValueError(
            "decoder.alignment_layer: expected attention to source positions beside it, found "
            f"{attention.name!r}"
        )
    return TransformerDecoder(config, depth, past, mechanism)


@dataclasses.dataclass(frozen=True)
class TransformerDecoder(SequenceDecoder):
    """Pure functions of the decoder.

    Attributes:
      config: The decoder's config.
      feature_dim: Depth of its embeddings and features.
      past: How a position attends to those before it.
      mechanism: How it attends to the source; None where there is none.
    """

    config: Config
    feature_dim: int
    past: Mechanism
    mechanism: Mechanism | None

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        config, depth = self.config, self.feature_dim
        tree: dict[str, Any] = dict(transformer.position_parameters(config, depth))
        for layer in range(config.num_layers):
            tree[f"layer_{layer}"] = {
                "self_attention": self.past.parameters,
                "self_norm": transformer.norm_parameters(config, depth),
                "feed_forward": transformer.feed_forward_parameters(config, depth),
                "feed_forward_norm": transformer.norm_parameters(config, depth),
            }
            if self.mechanism is not None:
                tree[f"layer_{layer}"]["attention"] = self.mechanism.parameters
                if self.mechanism.parts.reads_query or config.norm_order == "post":
                    norm = transformer.norm_parameters(config, depth)
                    tree[f"layer_{layer}"]["attention_norm"] = norm
        return {**tree, **transformer.final_norm_parameters(config, depth)}

    def start(
        self, params: Params, sources: Sources, max_length: int
    ) -> tuple[tuple[Memory, ...], State]:
        """Projects the sources for each layer, and makes room for the past."""
        encoded = first_source(sources)
        batch, dtype = encoded.mask.shape[0], encoded.annotations.dtype
        memories, state = [], self.first_state(params, batch, max_length, dtype)
        for layer in self._layers:
            weights = params[layer].get("attention", {})
            memory = self.mechanism.make_memory(weights, sources)
            memories.append(memory)
            state[layer]["attention"] = self.mechanism.init_state(weights, memory)
        return tuple(memories), state

    def first_state(self, params: Params, batch: int, max_length: int, dtype: DTypeLike) -> State:
        """Returns the state before the first token, but for what the mechanism carries.

        Each layer has empty keys and values for `max_length` positions, whose mask tells which
        were written.
        """
        blank = jnp.zeros((batch, max_length, self.feature_dim), dtype)
        mask = jnp.zeros((batch, max_length), bool)
        state: State = {"position": start_position(batch)}
        for layer in self._layers:
            weights = params[layer].get("self_attention", {})
            state[layer] = {"past": self.past.make_memory(weights, sequence(blank, mask))}
        return state

    def run(
        self,
        params: Params,
        memory: tuple[Memory, ...],
        state: State,
        embedded: Array,
        *,
        mask: Array | None = None,
        call: Call = Call(),
    ) -> tuple[Array, AttentionOutput | None, State]:
        """Decodes known targets, all positions at once."""
        length = embedded.shape[1]
        mask = jnp.ones(embedded.shape[:2], bool) if mask is None else mask
        positions = jnp.arange(length)
        before = None if self.past.parts.is_causal else positions <= positions[:, None]

        def attend_to_past(weights: Params, vectors: Array, past: Any, call: Call) -> Any:
            memory = self.past.make_memory(weights, sequence(vectors, mask))
            output, _ = self.past.attend(
                weights, vectors, memory, mask=before, call=call, is_fused=True
            )
            return output.context, past

        embedded = zero_padding(embedded, mask)
        return self._decode(
            params, memory, state, embedded, positions, attend_to_past, call
        )

    def step(
        self, params: Params, memory: tuple[Memory, ...], state: State, embedded: Array
    ) -> tuple[Array, AttentionOutput | None, State]:
        """Decodes one token `*B E`, given the keys and values of those before."""
        position = state["position"].reshape(-1)[:1]

        def attend_to_past(weights: Params, vectors: Array, past: Any, call: Call) -> Any:
            here = jnp.ones((*vectors.shape[:-2], 1), bool)
            new = self.past.make_memory(weights, sequence(vectors, here), position)
            new = at_indices(new)  # as every token of the past is written at its own
            past = jax.tree.map(lambda room, entry: _write(room, entry, position[0]), past, new)
            output, _ = self.past.attend_row_by_row(
                weights, vectors, past, state={}, positions=position
            )
            return output.context, past

        features, attention, state = self._decode(
            params, memory, state, embedded[..., None, :], position, attend_to_past
        )
        axis = embedded.ndim - 1
        here = jax.tree.map(lambda part: jnp.squeeze(part, axis), attention)
        return features[..., 0, :], here, state

    def _decode(
        self,
        params: Params,
        memory: tuple[Memory, ...],
        state: State,
        embedded: Array,
        positions: Array,
        attend_to_past: Any,
        call: Call = Call(),
    ) -> tuple[Array, AttentionOutput | None, State]:
        config = self.config
        stream = transformer.place_embeddings(config, params, embedded, positions)
        stream = transformer.drop(stream, config.dropout, call.fold(0))
        state, attended = {**state, "position": counted(state)}, []
        for number, layer in enumerate(self._layers):
            weights, part = params[layer], call.fold(number + 1)
            source = memory[number] if memory else None
            stream, state[layer], output = self._layer(
                weights, source, state[layer], stream, positions, attend_to_past, part
            )
            attended.append(output)
        features = transformer.finish(config, params, stream)
        return features, self._joined(attended) if memory else None, state

    def _layer(
        self,
        params: Params,
        memory: Memory | None,
        state: State,
        stream: Array,
        positions: Array,
        attend_to_past: Any,
        call: Call,
    ) -> tuple[Array, State, AttentionOutput | None]:
        """One layer: the past, the source if there is one, and each position on its own."""
        config = self.config

        def past(vectors: Array) -> tuple[Array, Any]:
            weights = params.get("self_attention", {})
            return attend_to_past(weights, vectors, state["past"], call.fold(0))

        def source(vectors: Array) -> tuple[Array, Any]:
            weights, before = params.get("attention", {}), state["attention"]
            if vectors.shape[-2] == 1 and not call.train:  # a step of a search
                output, after = self.mechanism.attend_row_by_row(
                    weights, vectors, memory, before, positions=positions
                )
            else:
                output, after = self.mechanism.attend(
                    weights, vectors, memory, before,
                    positions=positions, call=call.fold(1), is_fused=True,
                )  # fmt: skip
            return output.context, (output, after)

        def alone(vectors: Array) -> tuple[Array, None]:
            weights = params["feed_forward"]
            return transformer.feed_forward(config, weights, vectors, call.fold(2)), None

        def add(name: str, function: Any, stream: Array, call: Call) -> tuple[Array, Any]:
            norm = params.get(f"{name}_norm")
            return transformer.sublayer(config, norm, stream, function, call)

        output, after = None, {}
        stream, after["past"] = add("self", past, stream, call.fold(3))
        if memory is not None:
            stream, (output, after["attention"]) = add("attention", source, stream, call.fold(4))
        stream, _ = add("feed_forward", alone, stream, call.fold(5))
        return stream, after, output

    def _joined(self, attended: list[AttentionOutput]) -> AttentionOutput:
        """The attention of the layer that aligns, with the heads of all layers beside it."""
        chosen = attended[self.config.aligned]
        if "head_weights" not in chosen.aux:
            heads = [output.weights[..., None, :] for output in attended]
        else:
            heads = [output.aux["head_weights"] for output in attended]
        aux = {**chosen.aux, "head_weights": jnp.concatenate(heads, axis=-2)}
        return dataclasses.replace(chosen, aux=aux)

    @property
    def _layers(self) -> list[str]:
        return [f"layer_{layer}" for layer in range(self.config.num_layers)]


def _write(room: Array, entry: Array, position: Array) -> Array:
    """Puts one position's entry, keys `*B 1 D` or mask `*B 1`, where it belongs.

    The axis of the positions is the one in which the two differ. Where none does, there is room
    for one position only, which the entry fills.
    """
    for axis, (size, one) in enumerate(zip(room.shape, entry.shape, strict=True)):
        if size != one:
            return jax.lax.dynamic_update_slice_in_dim(room, entry, position, axis)
    return entry
