"""Multi-head attention: heads that project queries, keys and values, over any score.

  head_h = average(normalizer(score(query W_q^h, keys W_k^h)), values W_v^h)
  context = sum_h head_h W_o^h

With fewer heads of keys and values than of queries, groups of query heads share one.
"""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from attention_jax.configuration import setting
from attention_jax.layers.attention import HeadLayout, MultiHead
from attention_jax.layers.mechanism import (
    MECHANISMS,
    MechanismConfig,
    MechanismParts,
    build_parts,
    described,
)
from attention_jax.layers.parameters import Parameter, shared_names
from attention_jax.layers.refinement import (
    REFINEMENTS,
    Head,
    check_refinements,
    refine,
    refinements_telling_key_bias,
)
from attention_jax.ops.attend import keep_memory
from attention_jax.ops.products import add_bias, multiply_rows
from attention_jax.ops.scores import product_scale
from attention_jax.types import Array, Memory, Params

PAPER = "Vaswani et al. (2017), section 3.2.2; Ainslie et al. (2023) for groups of heads"


@dataclasses.dataclass(frozen=True)
class Config(MechanismConfig):
    """Multi-head attention.

    Attributes:
      name: The mechanism.
      num_heads: How many heads ask (8 in the paper).
      num_memory_heads: How many of them have keys and values of their own, a divisor of
        `num_heads`; None for all, 1 for multi-query attention.
      head_dim: Depth of a head's queries and keys (64 in the paper).
      head_value_dim: Depth of a head's values; None for `head_dim`.
      use_bias: Whether the projections of queries, values and contexts add a bias.
      use_key_bias: Whether that of keys does, too. Under a score by products, such as `scaled_dot`,
        it would add the same to all scores of a query and change no weights, so that it is for
        additive scores that have none themselves, and beside the refinements `rope`, `qk_norm`,
        `soft_cap` and `attention_sink`. Attention to another sequence, which has no `rope`, has no
        such bias either where nothing else lets it change weights.
      dropout: Share of the weights that is dropped after normalisation, for the average of the
        values in training; the weights that are reported are whole.
      score: The mechanism that each head scores queries and keys with, with its normalizer.
      refinements: What later papers changed, by name; see `layers/refinements`.
    """

    name: str = setting("multi_head")
    num_heads: int = setting(8, at_least=1)
    num_memory_heads: int | None = setting(None, at_least=1)
    head_dim: int = setting(64, at_least=1)
    head_value_dim: int | None = setting(None, at_least=1)
    use_bias: bool = setting(False)
    use_key_bias: bool = setting(False)
    dropout: float = setting(0.0, at_least=0.0, below=1.0)
    score: Any = setting({"name": "scaled_dot"}, named=MECHANISMS.config)
    refinements: Mapping[str, Any] = setting({}, members=REFINEMENTS.config)
    needs: ClassVar[tuple[str, ...]] = ("value_dim", "place")
    projects_heads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Rejects heads that cannot be laid out, and checks the refinements."""
        if self.num_heads % (self.num_memory_heads or 1):
            raise ValueError(
                f"num_memory_heads: expected a divisor of num_heads = {self.num_heads}, "
                f"found {self.num_memory_heads}"
            )
        if getattr(self.score, "num_heads", 1) != 1:
            raise ValueError(
                f"score.num_heads: expected 1, for num_heads beside it counts, "
                f"found {self.score.num_heads}"
            )
        if self.score.projects_heads or not hasattr(self.score, "num_heads"):
            raise ValueError(
                "score.name: expected a score of which there may be several, with a field "
                f"num_heads, found {self.score.name!r}"
            )
        if not self.score.reads_keys:
            inner = getattr(self.score, "score", self.score)  # that of a window
            place = "score.name" if inner is self.score else "score.score.name"
            raise ValueError(
                f"{place}: expected a score of queries and keys, for heads project both, "
                f"found {inner.name!r}"
            )
        check_refinements(self.refinements)
        for name, refinement in self.refinements.items():
            if refinement.adds_slot and not self.score.normalizes:
                raise ValueError(
                    f"refinements.{name}: expected a score that is normalised over slots beside "
                    f"it, found {self.score.name!r}"
                )
        if self.use_key_bias and not _tells_key_bias(self.score, self.refinements):
            raise ValueError(
                "use_key_bias: expected an additive score that has none itself, or one of the "
                f"refinements {', '.join(refinements_telling_key_bias())} beside it, found "
                f"{self.score.name!r} without"
            )

    def without_refinements(self, names: Collection[str]) -> "Config":
        """Returns these heads without some refinements, nor a bias of keys that needs them."""
        kept = {name: part for name, part in self.refinements.items() if name not in names}
        # It would change no weights any more, and the config would be refused.
        has_key_bias = self.use_key_bias and _tells_key_bias(self.score, kept)
        return dataclasses.replace(self, refinements=kept, use_key_bias=has_key_bias)


def _tells_key_bias(score: MechanismConfig, refinements: Collection[str]) -> bool:
    """Whether a bias that is added to all keys alike changes weights."""
    telling = refinements_telling_key_bias()
    return score.tells_key_bias or any(name in refinements for name in telling)


def build(
    config: Config, query_dim: int, key_dim: int, value_dim: int, place: str
) -> MultiHead:
    """Builds the heads; raises `ValueError` if their parts do not fit."""
    depth = config.head_dim
    if config.score.needs:
        raise ValueError(
            "attention.score.name: expected a score of queries and keys alone, found "
            f"{config.score.name!r}"
        )
    # The score is built for the depth of a head, to which queries and keys are projected first.
    inner = build_parts(config.score, depth, depth, {})
    width = config.head_value_dim or depth  # of a head's values
    num_memory_heads = config.num_memory_heads or config.num_heads
    if (
        num_memory_heads < config.num_heads
        and inner.spec.prepare is not keep_memory
        and not shared_names(inner.parameters, "heads")
    ):
        raise ValueError(
            "attention.num_memory_heads: expected as many as num_heads for "
            f"{config.score.name!r}, found {num_memory_heads}"
        )
    parts = _with_projections(config, inner, (query_dim, key_dim, value_dim), width)
    head = Head(
        config.num_heads, num_memory_heads, depth, width, place, described(config.score),
        product_scale(inner.spec.score, depth),
    )  # fmt: skip
    parts = refine(config.refinements, parts, head)
    # The score's own preparation comes last, when keys are projected, normalised and rotated.
    before = parts.spec.prepare

    def prepare(params: Params, memory: Memory, positions: Array) -> Memory:
        return inner.spec.prepare(params, before(params, memory, positions), positions)

    joint = {
        "output_kernel": Parameter.of(
            "head_output", heads=config.num_heads, head_dim=width, query=query_dim
        )
    }
    if config.use_bias:
        joint["output_bias"] = Parameter.of("bias", query=query_dim)
    spec = dataclasses.replace(parts.spec, prepare=prepare, dropout=config.dropout)
    layout = HeadLayout(num_memory_heads, joint, _join)
    return MultiHead(parts._replace(spec=spec), query_dim, config.num_heads, layout)


def _with_projections(
    config: Config, inner: MechanismParts, depths: tuple[int, int, int], width: int
) -> MechanismParts:
    """Adds the projections of queries, keys and values before the score."""
    query_dim, key_dim, value_dim = depths
    parameters = {
        "query_projection": Parameter.of("kernel", query=query_dim, head_dim=config.head_dim),
        "key_projection": Parameter.of("kernel", key=key_dim, head_dim=config.head_dim),
        "value_projection": Parameter.of("kernel", value=value_dim, head_dim=width),
    }
    if config.use_bias:
        parameters |= {
            "query_bias": Parameter.of("bias", head_dim=config.head_dim),
            "value_bias": Parameter.of("bias", head_dim=width),
        }
    if config.use_key_bias:
        # Only where it is asked for: under a softmax of products it would never learn.
        parameters["key_bias"] = Parameter.of("bias", head_dim=config.head_dim)

    # For one head: `MultiHead` maps all of this over the heads.
    def project(params: Params, name: str, vectors: Array) -> Array:
        projected = multiply_rows(vectors, params[f"{name}_projection"])
        bias = f"{name}_bias"
        return add_bias(projected, params[bias]) if bias in parameters else projected

    def prepare(params: Params, memory: Memory, positions: Array) -> Memory:
        return dataclasses.replace(
            memory,
            keys=project(params, "key", memory.keys),
            values=project(params, "value", memory.values),
        )

    def prepare_query(params: Params, query: Array, positions: Array) -> Array:
        return project(params, "query", query)

    # Query heads of a group share these; each has the query's projection for itself.
    for name in [name for name in parameters if name.startswith(("key_", "value_"))]:
        parameters[name] = parameters[name].shared("heads")
    return inner._replace(
        spec=dataclasses.replace(inner.spec, prepare=prepare, prepare_query=prepare_query),
        parameters={**inner.parameters, **parameters},
    )


def _join(params: Params, contexts: Array) -> Array:
    kernel = params["output_kernel"]
    num_heads, depth, width = kernel.shape
    # *B T H Dv -> *B T HDv: the sum over heads becomes part of one product.
    side_by_side = contexts.reshape(*contexts.shape[:-2], num_heads * depth)
    joined = multiply_rows(side_by_side, kernel.reshape(num_heads * depth, width))
    return add_bias(joined, params["output_bias"]) if "output_bias" in params else joined
