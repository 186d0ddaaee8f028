"""Monotonic attention: what mechanisms share whose queries read on and stop at a slot.

  energies[t, s] = score[t, s] + r

A slot with a high energy stops a query. In training the decisions are probabilities; outside of it
they are made, so that a query needs no slot beyond the one where it stops. Validation measures the
decisions, too: losses of known targets and links are those of the model that will be used. The
loss that training minimises, of a split that it does not see, is had by `evaluation="expected"`.
"""

import dataclasses
from typing import Any, ClassVar

from attention_jax.configuration import setting
from attention_jax.layers.inner_score import check_inner_score, inner_score
from attention_jax.layers.mechanism import MECHANISMS, MechanismConfig, MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.attend import AttentionSpec
from attention_jax.ops.monotonic import PREVIOUS, Decide, Weigh, monotonic_normalizer
from attention_jax.ops.summation import upcast
from attention_jax.ops.trackers import previous_alignment
from attention_jax.types import Array, Memory, Params, State


@dataclasses.dataclass(frozen=True)
class MonotonicConfig(MechanismConfig):
    """Monotonic attention config: what those of its mechanisms share.

    Attributes:
      score: The mechanism whose score decides where to stop. Nothing is normalised over slots, so
        that its normalizer stays as it is.
      num_heads: How many heads attend side by side, each stopping for itself.
      initial_bias: What r starts from. The lower, the longer a query reads on at first: where
        queries begin by stopping at once, they learn nothing of what comes later.
      noise: Standard deviation of the noise that is added to energies in training.
      evaluation: What is done once training is over: `hard` decisions, or the `expected` alignment
        as in training.
    """

    score: Any = setting({"name": "normed_bahdanau"}, named=MECHANISMS.config)
    num_heads: int = setting(1, at_least=1)
    initial_bias: float = setting(-1.0)
    noise: float = setting(1.0, at_least=0.0)
    evaluation: str = setting("hard", choices=("hard", "expected"))
    normalizes: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Rejects what is no energy of slots."""
        check_energy(self.score, "score")

    @property
    def reads_keys(self) -> bool:  # type: ignore[override]
        """Whether the score compares queries with keys."""
        return self.score.reads_keys

    @property
    def tells_key_bias(self) -> bool:  # type: ignore[override]
        """Whether what is added to all keys alike changes more than r does."""
        return self.score.tells_key_bias


def check_energy(score: MechanismConfig, field: str) -> None:
    """Raises `ValueError`, naming the field, for what is no energy of slots."""
    check_inner_score(score, field)
    default = type(score)().normalizer
    if score.normalizer != default:
        raise ValueError(
            f"{field}.normalizer: expected {default!r}, as nothing normalises these scores, found "
            f"{score.normalizer!r}"
        )


def monotonic_parts(
    config: MonotonicConfig,
    query_dim: int,
    key_dim: int,
    decide: Decide,
    weigh: Weigh | None = None,
) -> MechanismParts:
    """Builds one head that stops.

    Args:
      config: The mechanism's.
      query_dim: Depth of the queries.
      key_dim: Depth of the keys.
      decide: From energies to whether a slot stops a query for good.
      weigh: From alignment to weights, see `ops.monotonic`; None where that is the alignment.
    """
    inner = inner_score(config.score, query_dim, key_dim)

    def score(
        params: Params, query: Array, memory: Memory, state: State, positions: Array
    ) -> Array:
        energies = inner.spec.score(params, query, memory, state, positions)
        return energies + upcast(params["stop_bias"])

    is_hard = config.evaluation == "hard"
    normalizer = monotonic_normalizer(
        decide=decide, noise=config.noise, is_hard=is_hard, weigh=weigh
    )
    spec = AttentionSpec(
        score,
        normalizer,
        prepare=inner.spec.prepare,
        trackers=((PREVIOUS, previous_alignment()),),
        reads=(PREVIOUS,),
    )
    bias = Parameter.of("bias").starting_at(config.initial_bias)
    return inner._replace(
        spec=spec,
        parameters={**inner.parameters, "stop_bias": bias},
        traits=inner.traits._replace(is_online=is_hard and not inner.traits.reads_length),
    )
