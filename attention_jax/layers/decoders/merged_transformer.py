"""The Transformer's decoder with merged attention: one softmax over sources and what is written.

  x = norm(x + dropout(attend(x; [x_1 .. x_t; source_1; ...; source_K]))), then feed-forward

Where the Transformer's decoder attends to its own past and then to the source, here both stand in
one row. They are sources of the flat combination: queries and what joins the heads are the same for
all, and each has its own projections of keys and values.

Deviation: the paper's layer attends to the encoder's layer beside it, and shares its parameters;
here all attend to the top layer, with parameters of their own.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers import transformer
from attention_jax.layers.attention import weights_of_heads
from attention_jax.layers.decoder import (
    Decoded,
    DecoderSizes,
    SequenceDecoder,
    Told,
    choose_head,
    counted,
    position_of,
    start_position,
)
from attention_jax.layers.decoders.transformer import Config as TransformerConfig
from attention_jax.layers.encoder import Encoded, Sources, first_source
from attention_jax.layers.kv_cache import empty_cache, write
from attention_jax.layers.mechanism import described
from attention_jax.layers.mechanisms import flat
from attention_jax.layers.refinement import without_positions
from attention_jax.ops.masks import zero_padding
from attention_jax.types import Array, AttentionOutput, Call, Memory, Params, State

PAPER = (
    "He, Tan, Xia, He, Qin, Chen and Liu (2018), Layer-wise coordination between encoder and "
    "decoder, on mixed attention"
)
PAST = "target"  # what is written so far, among the sources; no source may be called so
Remember = Callable[[Params, Array, Memory], tuple[Memory, Memory]]


@dataclasses.dataclass(frozen=True)
class Config(TransformerConfig):
    """The Transformer's decoder with merged attention.

    Further fields are those of the decoder `transformer`.

    Attributes:
      name: The decoder.
    """

    name: str = setting("merged_transformer")

    def __post_init__(self) -> None:
        """Rejects self-attention apart from the other."""
        super().__post_init__()
        if self.self_attention is not None:
            raise ValueError(
                "self_attention: expected none, for it is merged with the model's attention, found "
                f"{described(self.self_attention)}"
            )


def build(config: Config, sizes: DecoderSizes, attention: Any) -> "MergedTransformer":
    """Builds the decoder; raises `ValueError` if the mechanism does not serve."""
    depth, score = sizes.embedding_dim, without_positions(attention.of_one)
    if not sizes.encoders:
        raise ValueError(f"decoder.name: expected a source beside {config.name!r}, found none")
    if not score.projects_heads:
        raise ValueError(
            f"attention.name: expected multi_head beside the decoder {config.name!r}, found "
            f"{described(attention)}"
        )
    sources = tuple((name, encoder.output_dim) for name, encoder in sizes.encoders.items())
    # The past comes last: weights are over the first source.
    mechanism = flat.build(flat.Config(score=score), depth, depth, (*sources, (PAST, depth)))
    return MergedTransformer(config, depth, choose_head(mechanism, config.alignment_head))


@dataclasses.dataclass(frozen=True)
class MergedTransformer(SequenceDecoder):
    """The decoder as pure functions.

    Attributes:
      config: The decoder's config.
      feature_dim: Depth of its embeddings and features.
      mechanism: How a position attends to the sources and to those before it.
    """

    config: Config
    feature_dim: int
    mechanism: flat.Flat

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        config, depth = self.config, self.feature_dim
        tree = transformer.embedding_parameters(config, depth)
        for layer in self._layers:
            tree[layer] = {
                "attention": self.mechanism.parameters,
                "attention_norm": transformer.norm_parameters(config, depth),
                "feed_forward": transformer.feed_forward_parameters(config, depth),
                "feed_forward_norm": transformer.norm_parameters(config, depth),
            }
        return {**tree, **transformer.final_norm_parameters(config, depth)}

    def start(
        self, params: Params, sources: Sources, max_length: int
    ) -> tuple[tuple[dict[str, Memory], ...], State]:
        """Projects the sources for each layer, and makes room for what will be written."""
        encoded = first_source(sources)
        batch, dtype = encoded.mask.shape[0], encoded.annotations.dtype
        shape, memories = (batch, max_length, self.feature_dim), []
        state: State = {"position": start_position(batch)}
        for layer in self._layers:
            weights, one = params[layer]["attention"], self.mechanism.asking[-1][1]
            memories.append({
                name: self.mechanism.memory_of(weights, name, source)
                for name, source in sources.items()
            })  # fmt: skip
            past = empty_cache(one, self.mechanism.known(weights, PAST), shape, dtype)
            state[layer] = {"past": past}
        return tuple(memories), state

    def run(
        self,
        params: Params,
        memory: tuple[dict[str, Memory], ...],
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
        slots = sum(each.mask.shape[-1] for each in memory[0].values())
        everywhere = jnp.ones((len(positions), slots), bool)
        allowed = jnp.concatenate([everywhere, positions <= positions[:, None]], -1)  # T S+T

        def remember(weights: Params, vectors: Array, past: Memory) -> tuple[Memory, Memory]:
            return self.mechanism.memory_of(weights, PAST, Encoded(vectors, mask)), past

        embedded = zero_padding(embedded, mask)  # NaN must reach no gradient
        return self._decode(params, memory, state, embedded, positions, remember, allowed, call)

    def step(
        self,
        params: Params,
        memory: tuple[dict[str, Memory], ...],
        state: State,
        embedded: Array,
        told: Told = {},  # noqa: B006
    ) -> tuple[Array, AttentionOutput, State]:
        """Decodes one token `*B E` beside a KV cache of those before."""
        position, one = position_of(state), self.mechanism.asking[-1][1]

        def remember(weights: Params, vectors: Array, past: Memory) -> tuple[Memory, Memory]:
            past = write(one, self.mechanism.known(weights, PAST), past, vectors, position)
            return past, past

        found = self._decode(
            params, memory, state, embedded[..., None, :], position, remember  # *B 1 E
        )
        axis = embedded.ndim - 1
        here = jax.tree.map(lambda part: jnp.squeeze(part, axis), found.attention)
        return found.features[..., 0, :], here, found.state

    def _decode(
        self,
        params: Params,
        memory: tuple[dict[str, Memory], ...],
        state: State,
        embedded: Array,
        positions: Array,
        remember: Remember,
        allowed: Array | None = None,
        call: Call = Call(),
    ) -> Decoded:
        """Runs all layers.

        Args:
          params: The decoder's parameters.
          memory: The sources, for each layer.
          state: What is written.
          embedded: `*B T E`.
          positions: Those of the queries.
          remember: (parameters, vectors, what is written) -> (the past as a memory, what is
            written now).
          allowed: Which slots of sources and past a position may read; None for all that are there.
          call: Mode and key.
        """
        config = self.config
        stream = transformer.place_embeddings(config, params, embedded, positions)
        stream = transformer.drop(stream, config.dropout, call.fold(0))
        state, outputs = {**state, "position": counted(state)}, {}
        for number, layer in enumerate(self._layers):
            part = call.fold(number + 1)
            mask = call.mask_of(f"{layer}/attention", allowed)
            attend = functools.partial(
                self._attend, params[layer]["attention"], memory[number], state[layer]["past"],
                remember, positions, mask, part.fold(1),
            )  # fmt: skip
            stream, (output, written) = self._layer(params[layer], stream, attend, part)
            outputs[f"{layer}/attention"] = output
            state[layer] = {"past": written}
        features = transformer.finish(config, params, stream)
        return Decoded(features, self._aligned(outputs), state, outputs)

    def _attend(
        self,
        params: Params,
        sources: Mapping[str, Memory],
        past: Memory,
        remember: Remember,
        positions: Array,
        mask: Array | None,
        call: Call,
        vectors: Array,
    ) -> tuple[Array, tuple[AttentionOutput, Memory]]:
        """Merged attention: asks the sources and the past, in which the vectors are written."""
        past, written = remember(params, vectors, past)
        memory = self.mechanism.joined({**sources, PAST: past})
        output, _ = self.mechanism.attend(
            params, vectors, memory, mask=mask, positions=positions, call=call, is_fused=True
        )
        return output.context, (output, written)

    def _layer(
        self,
        params: Params,
        stream: Array,
        attend: Callable[[Array], tuple[Array, Any]],
        call: Call,
    ) -> tuple[Array, Any]:
        """Transformer layer: attention, then feed-forward; returns what `attend` does, beside."""

        def feed_forward(vectors: Array) -> tuple[Array, None]:
            weights = params["feed_forward"]
            return transformer.feed_forward(self.config, weights, vectors, call.fold(2)), None

        stream, found = transformer.sublayer(
            self.config, params["attention_norm"], stream, attend, call.fold(4)
        )
        stream, _ = transformer.sublayer(
            self.config, params["feed_forward_norm"], stream, feed_forward, call.fold(5)
        )
        return stream, found

    def _aligned(self, outputs: Mapping[str, AttentionOutput]) -> AttentionOutput:
        """Returns the attention of the layer that aligns, with the heads of all layers."""
        attended = list(outputs.values())
        chosen = attended[self.config.aligned]
        heads = jnp.concatenate([weights_of_heads(output) for output in attended], axis=-2)
        return dataclasses.replace(chosen, aux={**chosen.aux, "head_weights": heads})

    @property
    def _layers(self) -> list[str]:
        return [f"layer_{layer}" for layer in range(self.config.num_layers)]
