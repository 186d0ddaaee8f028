"""The Transformer's decoder: each position attends to those before it, then to the source.

Known targets are decoded all at once. In a search, each layer keeps the keys and values of the
positions so far (`past`), and those of the source are projected once.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from attention_jax.configuration import setting
from attention_jax.layers import transformer
from attention_jax.layers.attention import weights_of_heads
from attention_jax.layers.decoder import (
    Decoded,
    DecoderConfig,
    DecoderSizes,
    SequenceDecoder,
    Told,
    counted,
    position_of,
    start_position,
)
from attention_jax.layers.encoder import Sources, first_source, sequence
from attention_jax.layers.kv_cache import attend_to_one, empty_cache, write
from attention_jax.layers.mechanism import Mechanism, described
from attention_jax.layers.refinement import without_positions
from attention_jax.ops.masks import zero_padding
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
            # The last but one, as Garg et al. found to align best.
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
    source = without_positions(attention)
    mechanism = sizes.mechanism(source, depth, config.alignment_head, tells=())
    if mechanism.context_dim != depth:
        raise ValueError(
            f"attention.name: expected contexts as deep as the embeddings ({depth}), found "
            f"{attention.name!r} with {mechanism.context_dim}; multi_head gives them any depth"
        )
    if mechanism.provides and config.num_layers > 1:
        raise ValueError(
            "decoder.num_layers: expected 1 beside attention that an objective has to teach, which "
            f"sees that of one layer, {described(attention)}, found {config.num_layers}"
        )
    if config.alignment_layer is not None and not mechanism.traits.is_alignment:
        raise ValueError(
            "decoder.alignment_layer: expected attention to source positions beside it, found "
            f"{attention.name!r}"
        )
    return TransformerDecoder(config, depth, past, mechanism)


@dataclasses.dataclass(frozen=True)
class TransformerDecoder(SequenceDecoder):
    """The Transformer's decoder as pure functions.

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
    def is_online(self) -> bool:  # type: ignore[override]
        """Whether its attention stops while it reads, and is that of its only layer."""
        # Several layers would stop at several places, of which weights show one.
        stops = self.mechanism is not None and self.mechanism.traits.is_online
        return stops and self.config.num_layers == 1

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        config, depth = self.config, self.feature_dim
        tree = transformer.embedding_parameters(config, depth)
        tree |= transformer.stack_parameters(self.past)
        for layer in range(config.num_layers):
            tree[f"layer_{layer}"] = {
                "self_attention": transformer.layer_parameters(self.past),
                "self_norm": transformer.norm_parameters(config, depth),
                "feed_forward": transformer.feed_forward_parameters(config, depth),
                "feed_forward_norm": transformer.norm_parameters(config, depth),
            }
            if self.mechanism is not None:
                tree[f"layer_{layer}"]["attention"] = self.mechanism.parameters
                # Pre-norm normalises what asks: where nothing asks, it would have no effect.
                if self.mechanism.traits.reads_query or config.norm_order == "post":
                    norm = transformer.norm_parameters(config, depth)
                    tree[f"layer_{layer}"]["attention_norm"] = norm
        return {**tree, **transformer.final_norm_parameters(config, depth)}

    def start(
        self, params: Params, sources: Sources, max_length: int
    ) -> tuple[tuple[Memory, ...], State]:
        """Projects the sources for each layer, and makes room for the KV caches."""
        # Only its shape and type are needed: this decoder has no state that is made from a source.
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
        shape = (batch, max_length, self.feature_dim)
        state: State = {"position": start_position(batch)}
        params = transformer.with_shared(params)
        for layer in self._layers:
            weights = params[layer].get("self_attention", {})
            state[layer] = {"past": empty_cache(self.past, weights, shape, dtype)}
        return state

    def run(
        self,
        params: Params,
        memory: tuple[Memory, ...],
        state: State,
        embedded: Array,
        *,
        told: Told = {},  # noqa: B006  (never changed)
        mask: Array | None = None,
        call: Call = Call(),
    ) -> Decoded:
        """Teacher forcing: decodes known targets, all positions at once behind a causal mask."""
        mask = jnp.ones(embedded.shape[:2], bool) if mask is None else mask
        positions = jnp.arange(embedded.shape[1])
        # The causal mask; a mechanism that reads nothing ahead by itself needs none.
        before = None if self.past.is_causal else positions <= positions[:, None]  # T T

        def attend_to_past(layer: str, weights: Params, vectors: Array, past: Any, call: Call):
            memory = self.past.make_memory(weights, sequence(vectors, mask))
            output, _ = self.past.attend(
                weights, vectors, memory,
                mask=call.mask_of(f"{layer}/self_attention", before), call=call, is_fused=True,
            )  # fmt: skip
            return output, past

        embedded = zero_padding(embedded, mask)  # NaN must reach no gradient
        return self._decode(params, memory, state, embedded, positions, attend_to_past, call)

    def step(
        self,
        params: Params,
        memory: tuple[Memory, ...],
        state: State,
        embedded: Array,
        told: Told = {},  # noqa: B006
    ) -> tuple[Array, AttentionOutput | None, State]:
        """Decodes one token `*B E` beside a KV cache of those before."""
        position = position_of(state)

        def attend_to_past(layer: str, weights: Params, vectors: Array, past: Any, call: Call):
            past = write(self.past, weights, past, vectors, position)
            output, _ = attend_to_one(self.past, weights, vectors, past, {}, position)
            return output, past

        found = self._decode(
            params, memory, state, embedded[..., None, :], position, attend_to_past  # *B 1 E
        )
        axis = embedded.ndim - 1
        here = jax.tree.map(lambda part: jnp.squeeze(part, axis), found.attention)
        return found.features[..., 0, :], here, found.state

    def value_norms(
        self, params: Params, memory: tuple[Memory, ...], attention: AttentionOutput
    ) -> Array:
        """Norm-based analysis of the layer that aligns, all of its heads together."""
        aligned, number = self.config.aligned, self.mechanism.num_heads
        heads = attention.aux["head_weights"]  # of all layers side by side
        own = heads[..., aligned * number : (aligned + 1) * number, :]
        attention = dataclasses.replace(attention, aux={**attention.aux, "head_weights": own})
        weights = params[self._layers[aligned]].get("attention", {})
        return self.mechanism.value_norms(weights, memory[aligned], attention)

    def _decode(
        self,
        params: Params,
        memory: tuple[Memory, ...],
        state: State,
        embedded: Array,
        positions: Array,
        attend_to_past: Any,
        call: Call = Call(),
    ) -> Decoded:
        config, params = self.config, transformer.with_shared(params)
        stream = transformer.place_embeddings(config, params, embedded, positions)
        stream = transformer.drop(stream, config.dropout, call.fold(0))
        # A copy: the state that was passed stays as it is.
        state, outputs = {**state, "position": counted(state)}, {}
        for number, layer in enumerate(self._layers):
            source = memory[number] if memory else None
            stream, state[layer], found = self._layer(
                layer, params[layer], source, state[layer], stream, positions, attend_to_past,
                call.fold(number + 1),
            )  # fmt: skip
            outputs |= {f"{layer}/{name}": output for name, output in found.items()}
        features = transformer.finish(config, params, stream)
        attention = self._joined(outputs) if memory else None
        return Decoded(features, attention, state, outputs)

    def _layer(
        self,
        layer: str,
        params: Params,
        memory: Memory | None,
        state: State,
        stream: Array,
        positions: Array,
        attend_to_past: Any,
        call: Call,
    ) -> tuple[Array, State, dict[str, AttentionOutput]]:
        """Transformer layer: self-attention, cross-attention if there is a source, feed-forward."""
        config, after, found = self.config, {}, {}

        def past(vectors: Array) -> tuple[Array, Any]:
            weights = params.get("self_attention", {})
            output, past = attend_to_past(layer, weights, vectors, state["past"], call.fold(0))
            return output.context, (output, past)

        def source(vectors: Array) -> tuple[Array, Any]:
            weights, before = params.get("attention", {}), state["attention"]
            mask = call.mask_of(f"{layer}/attention")
            # A step of a search, in the memory's own order of axes, see `attend_to_one`.
            if vectors.shape[-2] == 1 and not call.train and mask is None:
                output, after = attend_to_one(
                    self.mechanism, weights, vectors, memory, before, positions
                )
            else:
                output, after = self.mechanism.attend(
                    weights, vectors, memory, before, mask=mask, positions=positions,
                    call=call.fold(1), is_fused=True,
                )  # fmt: skip
            return output.context, (output, after)

        def feed_forward(vectors: Array) -> tuple[Array, None]:
            weights = params["feed_forward"]
            return transformer.feed_forward(config, weights, vectors, call.fold(2)), None

        def add(name: str, function: Any, stream: Array, call: Call) -> tuple[Array, Any]:
            norm = params.get(f"{name}_norm")
            return transformer.sublayer(config, norm, stream, function, call)

        stream, (found["self_attention"], after["past"]) = add("self", past, stream, call.fold(3))
        if memory is not None:
            stream, (found["attention"], after["attention"]) = add(
                "attention", source, stream, call.fold(4)
            )
        stream, _ = add("feed_forward", feed_forward, stream, call.fold(5))
        return stream, after, found

    def _joined(self, outputs: Mapping[str, AttentionOutput]) -> AttentionOutput:
        """Returns the attention of the layer that aligns, with the heads of all layers."""
        attended = [outputs[f"{layer}/attention"] for layer in self._layers]
        chosen = attended[self.config.aligned]
        # Each layer's *B T H S, side by side on the axis of heads.
        heads = jnp.concatenate([weights_of_heads(output) for output in attended], axis=-2)
        return dataclasses.replace(chosen, aux={**chosen.aux, "head_weights": heads})

    @property
    def _layers(self) -> list[str]:
        return [f"layer_{layer}" for layer in range(self.config.num_layers)]
