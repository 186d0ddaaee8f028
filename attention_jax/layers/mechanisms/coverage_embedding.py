"""Additive attention that reads what is left to translate of each source word.

  scores[t, s] = vector . tanh(query[t] W_q + keys[s] W_k + c_{t-1}[s] V)
  c_0[s] = table[id of source word s], learned for each word type: nothing is translated yet
  c_t[s] = GRU(c_{t-1}[s]; y_t W_y + weights[t, s] w_a), or c_{t-1}[s] - weights[t, s] (y_t W_y)

y_t is the embedded target word that is written at step t. It is known when step t + 1 begins, as
the decoder's input there, and that is when c_t is computed: out of c_{t-1}, the weights of step t
and y_t, before the query of step t + 1 is scored. That holds for every order of decoding, although
the query knows more of the past in some:

  bahdanau           asks with s_t, which has not read y_t (with `variant` `groundhog` it has)
  conditional_gru    asks with the half-step that has read y_t
  luong              asks with h_{t+1}, which has read y_t

The begin of the sentence, the decoder's first input, is no written word and changes no coverage.
The objective `final_coverage` wants little to be left in the end.
"""

import dataclasses
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.layers.additive import AdditiveConfig, additive_parts
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.trackers import coverage_embedding, previous_weights
from attention_jax.types import Array, Memory, Params, State

PAPER = "Mi, Sankaran, Wang and Ittycheriah (2016), on coverage embeddings"


@dataclasses.dataclass(frozen=True)
class Config(AdditiveConfig):
    """Additive attention with coverage embeddings.

    Further fields are those of `layers.additive.AdditiveConfig`.

    Attributes:
      coverage_dim: Depth of a coverage embedding.
      coverage_update: What a written word does to it: `gru` or `subtract`.
    """

    name: str = setting("coverage_embedding")
    coverage_dim: int = setting(32, at_least=1)
    coverage_update: str = setting("gru", choices=("gru", "subtract"))
    needs: ClassVar[tuple[str, ...]] = ("source_vocabulary_size", "word_dim")
    tells_key_bias: ClassVar[bool] = False


def build(
    config: Config, query_dim: int, key_dim: int, source_vocabulary_size: int, word_dim: int
) -> MechanismParts:
    """Builds the mechanism for queries and keys of the given depths."""
    depth, covered = config.attention_dim, config.coverage_dim
    is_gated = config.coverage_update == "gru"
    width = 3 * covered if is_gated else covered
    more = {
        "coverage_kernel": Parameter.of("attention_kernel", coverage=covered, attention=depth),
        "coverage_table": Parameter.of(
            "embedding", source_vocab=source_vocabulary_size, coverage=covered
        ),
        "coverage_word": Parameter.of("attention_kernel", embed=word_dim, gates=width),
    }
    if is_gated:
        more["coverage_weight"] = Parameter.of("attention_vector", gates=width)
        more["coverage_recurrent"] = Parameter.of("recurrent", coverage=covered, gates=width)
    # Coverage moves on when the word is observed, by the weights of the query that wrote it.
    trackers = {
        "coverage": coverage_embedding(config.coverage_update, weights="weights"),
        "weights": previous_weights(),
    }
    return additive_parts(
        config, query_dim, key_dim, more, keys=_keys, trackers=trackers, remaining="coverage"
    )


def _keys(params: Params, memory: Memory, state: State) -> Array:
    # *B S Da + *B S C @ C Da
    return memory.keys + state["coverage"] @ params["coverage_kernel"]
