"""Hard attention: reads one slot that is sampled from the weights of any score.

  weights[t] = normalizer(scores[t]);   s_t ~ Categorical(weights[t]);   context[t] = values[s_t]

`weights` stay the distribution: alignments, supervision and what a score carries from query to
query are of that, and `aux["read"]` is the sample. With the estimator `reinforce`, `aux` also has
`sample_log_prob`, log weights[t, s_t], and `is_sampled`, both `*B T`; the log-probability is 0
where the expectation was read.

Deviation: the paper samples patches of an image; slots are of any source.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers import hard_attention
from attention_jax.layers.mechanism import MECHANISMS, MechanismConfig, MechanismParts, build_parts
from attention_jax.ops.hard_attention import log_prob_of_slot
from attention_jax.ops.normalizers import Normalizer
from attention_jax.types import Array, Call, Memory, Params, State

PAPER = (
    "Xu, Ba, Kiros, Cho, Courville, Salakhutdinov, Zemel and Bengio (2015), section 4.1; "
    "Jang, Gu and Poole (2017) for gumbel_softmax"
)


@dataclasses.dataclass(frozen=True)
class Config(MechanismConfig):
    """Hard attention.

    Attributes:
      name: The mechanism.
      score: What scores the slots, with its normalizer, for one head.
      estimator: How the weights learn: `reinforce` (beside the objective of that name),
        `straight_through` or `gumbel_softmax`; see `layers.hard_attention`.
      at_test: What is read where nothing is trained: `expectation`, `argmax` or `sample`.
    """

    name: str = setting("hard")
    score: Any = setting({"name": "bahdanau"}, named=MECHANISMS.config)
    estimator: Any = setting({"name": "reinforce"}, named=hard_attention.estimator)
    at_test: Any = setting({"name": "expectation"}, named=hard_attention.reader)

    def __post_init__(self) -> None:
        """Rejects what does not score all slots of one source with one head."""
        score = self.score
        if not hasattr(score, "normalizer"):
            raise ValueError(f"score.name: expected a score over all slots, found {score.name!r}")
        if score.needs:
            raise ValueError(
                "score.name: expected a score of queries and keys alone, found "
                f"{score.name!r}, which needs {' and '.join(score.needs)}"
            )
        num_heads = getattr(score, "num_heads", 1)
        if num_heads != 1:
            raise ValueError(
                f"score.num_heads: expected 1, for one slot is read, found {num_heads}"
            )

    @property
    def reads_keys(self) -> bool:  # type: ignore[override]
        """Whether the score compares queries with keys."""
        return self.score.reads_keys

    @property
    def tells_key_bias(self) -> bool:  # type: ignore[override]
        """Whether what is added to all keys alike changes the weights."""
        return self.score.tells_key_bias


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds the score, whose weights are sampled from."""
    inner = build_parts(config.score, query_dim, key_dim, {})
    spec = dataclasses.replace(inner.spec, normalizer=_sampling(config, inner.spec.normalizer))
    return inner._replace(spec=spec, provides=config.estimator.provides)


def _sampling(config: Config, normalizer: Normalizer) -> Normalizer:
    """Returns a normalizer that samples from the weights of another."""

    def sampling(
        params: Params, scores: Array, mask: Array, query: Array, memory: Memory, state: State,
        *, positions: Array, call: Call,
    ) -> tuple[Array, Mapping[str, Array]]:  # fmt: skip
        weights, aux = normalizer(
            params, scores, mask, query, memory, state, positions=positions, call=call
        )
        if call.train:
            read, is_sampled = config.estimator.read(weights, positions, call)
        else:
            read, is_sampled = config.at_test.read(weights, positions)
        if read is not weights:
            aux = {**aux, "read": read}
        if config.estimator.provides:
            log_prob = jnp.where(is_sampled, log_prob_of_slot(weights, read), 0.0)
            aux = {**aux, "sample_log_prob": log_prob, "is_sampled": is_sampled}
        return weights, aux

    return sampling
