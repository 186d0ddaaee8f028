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

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.attend import AttentionSpec
from attention_jax.ops.normalizers import NORMALIZERS
from attention_jax.ops.scores import additive_scores
from attention_jax.ops.trackers import coverage_embedding, previous_weights
from attention_jax.types import Array, Memory, Params, State

PAPER = "Mi, Sankaran, Wang and Ittycheriah (2016), on coverage embeddings"
NEEDS = ("source_vocabulary_size", "word_dim")


@dataclasses.dataclass(frozen=True)
class Config:
    """Additive attention with coverage embeddings.

    Attributes:
      name: The mechanism.
      attention_dim: Depth of the hidden layer of each head.
      coverage_dim: Depth of a coverage embedding.
      coverage_update: What a written word does to it: `gru` or `subtract`.
      num_heads: How many heads attend side by side, with coverage embeddings of their own.
      normalizer: From scores to weights.
    """

    name: str = setting("coverage_embedding")
    attention_dim: int = setting(256, at_least=1)
    coverage_dim: int = setting(32, at_least=1)
    coverage_update: str = setting("gru", choices=("gru", "subtract"))
    num_heads: int = setting(1, at_least=1)
    normalizer: str = setting("softmax", choices=NORMALIZERS)


def build(
    config: Config, query_dim: int, key_dim: int, source_vocabulary_size: int, word_dim: int
) -> MechanismParts:
    """Builds the mechanism for queries and keys of the given depths."""
    depth, covered = config.attention_dim, config.coverage_dim
    is_gated = config.coverage_update == "gru"
    width = 3 * covered if is_gated else covered
    parameters = {
        "query_kernel": Parameter.of("attention_kernel", query=query_dim, attention=depth),
        "key_kernel": Parameter.of("attention_kernel", key=key_dim, attention=depth),
        "coverage_kernel": Parameter.of("attention_kernel", coverage=covered, attention=depth),
        "vector": Parameter.of("attention_vector", attention=depth),
        "coverage_table": Parameter.of(
            "embedding", source_vocab=source_vocabulary_size, coverage=covered
        ),
        "coverage_word": Parameter.of("attention_kernel", embed=word_dim, gates=width),
    }
    if is_gated:
        parameters["coverage_weight"] = Parameter.of("attention_vector", gates=width)
        parameters["coverage_recurrent"] = Parameter.of("recurrent", coverage=covered, gates=width)
    spec = AttentionSpec(
        _score,
        NORMALIZERS[config.normalizer],
        prepare=_prepare,
        trackers=(
            ("coverage", coverage_embedding(config.coverage_update, weights="weights")),
            ("weights", previous_weights()),
        ),
        reads=("coverage", "weights"),
    )
    return MechanismParts(spec, parameters, remaining="coverage")


def _prepare(params: Params, memory: Memory, positions: Array) -> Memory:
    return dataclasses.replace(memory, keys=memory.keys @ params["key_kernel"])


def _score(params: Params, query: Array, memory: Memory, state: State, positions: Array) -> Array:
    covered = state["coverage"] @ params["coverage_kernel"]
    return additive_scores(query @ params["query_kernel"], memory.keys + covered, params["vector"])
