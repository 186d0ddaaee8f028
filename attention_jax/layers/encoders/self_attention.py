"""The Transformer's encoder: every position attends to all others, layer after layer."""

import dataclasses
from typing import Any

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers import transformer
from attention_jax.layers.encoder import Encoded, SequenceEncoder, sequence
from attention_jax.layers.mechanism import Mechanism
from attention_jax.ops.masks import zero_padding
from attention_jax.types import Array, AttentionOutput, Call, Params

PAPER = "Vaswani et al. (2017), section 3.1"


@dataclasses.dataclass(frozen=True)
class Config(transformer.StackConfig):
    """The Transformer's encoder, whose fields are those of `transformer.StackConfig`.

    Attributes:
      name: The encoder.
    """

    name: str = setting("self_attention")


def build(config: Config, input_dim: int, attention: Any) -> "SelfAttentionEncoder":
    """Builds the encoder; raises `ValueError` if the mechanism does not serve."""
    mechanism = transformer.self_attention(config, attention, input_dim, "self")
    return SelfAttentionEncoder(config, input_dim, mechanism)


@dataclasses.dataclass(frozen=True)
class SelfAttentionEncoder(SequenceEncoder):
    """The Transformer's encoder as pure functions.

    Attributes:
      config: The encoder's config.
      output_dim: Depth of its embeddings and annotations.
      mechanism: How positions attend to one another.
    """

    config: Config
    output_dim: int
    mechanism: Mechanism

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        config, depth = self.config, self.output_dim
        tree = transformer.embedding_parameters(config, depth)
        tree |= transformer.stack_parameters(self.mechanism)
        for layer in range(config.num_layers):
            tree[f"layer_{layer}"] = {
                "self_attention": transformer.layer_parameters(self.mechanism),
                "self_norm": transformer.norm_parameters(config, depth),
                "feed_forward": transformer.feed_forward_parameters(config, depth),
                "feed_forward_norm": transformer.norm_parameters(config, depth),
            }
        return {**tree, **transformer.final_norm_parameters(config, depth)}

    def encode(self, params: Params, embedded: Array, mask: Array, call: Call = Call()) -> Encoded:
        """Reads embedded tokens, layer by layer."""
        config, params = self.config, transformer.with_shared(params)
        positions = jnp.arange(embedded.shape[1])
        stream = transformer.place_embeddings(
            # NaN at padding would come back through the gradients of the products.
            config, params, zero_padding(embedded, mask), positions
        )
        stream = transformer.drop(stream, config.dropout, call.fold(0))
        outputs: dict[str, AttentionOutput] = {}
        for layer in range(config.num_layers):
            key, part = f"layer_{layer}/self_attention", call.fold(layer + 1)
            stream, outputs[key] = self._layer(
                params[f"layer_{layer}"], stream, mask, part, call.mask_of(key)
            )
        # Biases and norms have filled the padding since.
        stream = zero_padding(transformer.finish(config, params, stream), mask)
        return Encoded(stream, mask, outputs=outputs)

    def _layer(
        self, params: Params, stream: Array, mask: Array, call: Call, heads: Array | None
    ) -> tuple[Array, AttentionOutput]:
        weights, mechanism = params.get("self_attention", {}), self.mechanism

        def attend(vectors: Array) -> tuple[Array, AttentionOutput]:
            memory = mechanism.make_memory(weights, sequence(vectors, mask))
            # Self-attention carries nothing: there is no state to keep.
            output, _ = mechanism.attend(
                weights, vectors, memory, mask=heads, call=call.fold(0), is_fused=True
            )
            return output.context, output

        def transform(vectors: Array) -> tuple[Array, None]:
            weights = params["feed_forward"]
            return transformer.feed_forward(self.config, weights, vectors, call.fold(1)), None

        stream, attended = transformer.sublayer(
            self.config, params["self_norm"], stream, attend, call.fold(2)
        )
        stream, _ = transformer.sublayer(
            self.config, params["feed_forward_norm"], stream, transform, call.fold(3)
        )
        return stream, attended
