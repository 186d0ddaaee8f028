"""Full-context alignment: links from both sentences as wholes, beside a decoder that translates.

  g = BiGRU(e(y_0), ..., e(y_T)),   b = BiGRU(h_1, ..., h_S)
  z[t, s] = (g_t W_g + e(y_t) W_e) . (b_s W_b + h_s W_h) / sqrt(d)
  alpha[t] = softmax_s z[t, s]

of the embedded target tokens e, BOS first, and of the annotations h. The row of a token knows the
token and what follows it, and is its alignment, which `supervised_alignment` teaches with step
`reads`. As a score belongs to both words alike, it can say the opposite direction's alignment, too:

  beta[s] = softmax_t z[t, s]

so that one model finds the links on which both directions agree, sqrt(alpha[t, s] beta[s, t]), as
two models do (`symmetrized_attention.agreed_links`). No gradient goes further than to the matrices
and the two BiGRUs: the translator learns beside the aligner as without it, but for the clipping of
gradients, whose norm is of both.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.aligner import Aligner, AlignerSizes
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.encoders import recurrent
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.readout import Step
from attention_jax.ops.normalizers import masked_softmax
from attention_jax.types import Array, Params

PAPER = (
    "Zenkel, Wuebker and DeNero (2020), End-to-end neural word alignment outperforms GIZA++, "
    "section 4.1, full context; Garg et al. (2019), Jointly learning to align and translate, "
    "section 4.3"
)


@dataclasses.dataclass(frozen=True)
class Config:
    """A full-context aligner.

    Attributes:
      name: The aligner.
      hidden_dim: Depth of the hidden state of each direction of both BiGRUs.
      attention_dim: d, depth of what is compared.
      two_way: Whether beta is computed, and taught, too.
    """

    name: str = setting("full_context")
    hidden_dim: int = setting(128, at_least=1)
    attention_dim: int = setting(256, at_least=1)
    two_way: bool = setting(False)


def build(config: Config, sizes: AlignerSizes) -> "FullContextAligner":
    """Builds the aligner for embeddings and annotations of the given depths."""
    chosen = recurrent.Config(hidden_dim=config.hidden_dim)
    source, target = (
        recurrent.build(chosen, depth) for depth in (sizes.memory_dim, sizes.embedding_dim)
    )
    return FullContextAligner(config, source, target)


@dataclasses.dataclass(frozen=True)
class FullContextAligner(Aligner):
    """Full-context aligner as pure functions.

    While a search writes, its weights are those of the decoder's attention; see `reads_ahead`.

    Deviations:
      Zenkel et al. read both sides by self-attention over a finished, frozen model's states, and
      Garg et al. by a second, unmasked pass through the decoder, which learns with it.
    """

    config: Config
    source: recurrent.RecurrentEncoder
    target: recurrent.RecurrentEncoder
    is_separate = True
    reads_ahead = True

    @property
    def is_two_way(self) -> bool:
        """Whether the opposite direction's weights are computed, too."""
        return self.config.two_way

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The two readers, each with the matrices of what it says and of what it has read."""
        depth = self.config.attention_dim
        return {
            side: {
                "reader": reader.parameters,
                "context_kernel": Parameter.of("kernel", hidden=reader.output_dim, attention=depth),
                "word_kernel": Parameter.of("kernel", embed=reader.input_dim, attention=depth),
            }
            for side, reader in {"source": self.source, "target": self.target}.items()
        }

    def prepare(self, params: Params, encoded: Encoded) -> Any:
        """Returns the keys, `B S d`, and which slots there are."""
        return _read(self.source, params["source"], encoded.annotations, encoded.mask), encoded.mask

    def run(self, params: Params, step: Step, mask: Array, prepared: Any) -> Array:
        """Returns the weights of each token's row, from all tokens."""
        return masked_softmax(self._scores(params, step, mask, prepared), prepared[1])

    def run_both_ways(
        self, params: Params, step: Step, mask: Array, prepared: Any
    ) -> tuple[Array, Array | None]:
        """Returns alpha, and beta if it is asked for, each a softmax of the same scores."""
        scores, slots = self._scores(params, step, mask, prepared), prepared[1]
        alpha = masked_softmax(scores, slots)
        if not self.is_two_way:
            return alpha, None
        # B S T, of real slots alone
        beta = masked_softmax(jnp.swapaxes(scores, -1, -2), mask[:, None])
        return alpha, jnp.where(jnp.swapaxes(slots, -1, -2), beta, 0)

    def _scores(self, params: Params, step: Step, mask: Array, prepared: Any) -> Array:
        keys, _ = prepared  # B 1 S d, B 1 S
        queries = _read(self.target, params["target"], step.word, mask)
        return jnp.einsum("btd,bsd->bts", queries, keys[:, 0]) / math.sqrt(keys.shape[-1])

    def align(self, params: Params, step: Step, prepared: Any) -> Array:
        """Returns the weights of the decoder's attention, as what follows is not written yet."""
        return step.attention.weights


def _read(reader: recurrent.RecurrentEncoder, params: Params, vectors: Array, mask: Array) -> Array:
    """Returns each vector with its context, `B N d`; those at padding count nothing."""
    vectors = jnp.where(mask[..., None], jax.lax.stop_gradient(vectors), 0)
    context = reader.encode(params["reader"], vectors, mask).annotations
    return context @ params["context_kernel"] + vectors @ params["word_kernel"]
