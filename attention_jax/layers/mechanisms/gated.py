"""Gated attention: at each step the decoder says how much of what it reads is to count.

  context[t] = beta[t] sum_s weights[t, s] values[s];   beta[t] = sig(query[t] . w + b)

Over any score, or over hard attention, whose sample is scaled likewise. `weights` stay as they are.

Deviation: the paper's gate reads the decoder's last state; this one reads what asks, which is that
state where a decoder attends before it updates, as `bahdanau` does.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import (
    MECHANISMS,
    MechanismConfig,
    MechanismParts,
    build_parts,
    described,
)
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.normalizers import Normalizer
from attention_jax.ops.products import add_bias
from attention_jax.ops.summation import accumulation_dtype
from attention_jax.types import Array, Memory, Params, State

PAPER = "Xu et al. (2015), section 4.2.1, the gating scalar"


@dataclasses.dataclass(frozen=True)
class Config(MechanismConfig):
    """Gated attention.

    Attributes:
      name: The mechanism.
      score: What chooses the slots, with one head: any score, or `hard`.
    """

    name: str = setting("gated")
    score: Any = setting({"name": "bahdanau"}, named=MECHANISMS.config)

    def __post_init__(self) -> None:
        """Rejects several heads, and what has to know more than two depths."""
        score = self.score
        if score.projects_heads or getattr(score, "num_heads", 1) != 1:
            raise ValueError(f"score.name: expected a single head, found {described(score)}")
        if score.needs:
            raise ValueError(
                "score.name: expected a score of queries and keys alone, found "
                f"{score.name!r}, which needs {' and '.join(score.needs)}"
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
    """Builds the score, and the gate of its queries."""
    inner = build_parts(config.score, query_dim, key_dim, {})
    gate = {
        "gate_kernel": Parameter.of("attention_kernel", query=query_dim, gate=1),
        "gate_bias": Parameter.of("bias", gate=1),
    }
    spec = dataclasses.replace(inner.spec, normalizer=_gating(inner.spec.normalizer))
    return inner._replace(
        spec=spec,
        parameters={**inner.parameters, **gate},
        traits=inner.traits._replace(reads_query=True),
    )


def _gating(normalizer: Normalizer) -> Normalizer:
    """Returns a normalizer under which less is read than another's weights say."""

    def gating(
        params: Params, scores: Array, mask: Array, query: Array, memory: Memory, state: State,
        **rest: Any,
    ) -> tuple[Array, Mapping[str, Array]]:  # fmt: skip
        # Weights say where it looks; how much of that counts goes into what is read.
        weights, aux = normalizer(params, scores, mask, query, memory, state, **rest)
        in_full = functools.partial(jnp.matmul, preferred_element_type=accumulation_dtype(query))
        gate = add_bias(in_full(query, params["gate_kernel"]), params["gate_bias"])  # *B T 1
        return weights, {**aux, "read": jax.nn.sigmoid(gate) * aux.get("read", weights)}

    return gating
