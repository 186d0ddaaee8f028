"""A single head as a mechanism: one query is compared with all slots of one source."""

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from attention_jax.errors import ConfigError
from attention_jax.layers.encoder import Sources
from attention_jax.layers.mechanism import Mechanism, MechanismParts, Traits
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.attend import attend, init_state, make_memory, observe
from attention_jax.ops.attribution import norms_of_sums
from attention_jax.ops.normalizers import softmax_normalizer
from attention_jax.ops.products import average_values
from attention_jax.types import Array, AttentionOutput, Memory, Params, State


@dataclasses.dataclass(frozen=True, eq=False)
class OneSource(Mechanism):
    """Attention to one source: what mechanisms share whose heads are `MechanismParts`.

    Those that were built of equal configs and sizes are equal and have one hash, so that a function
    under `jit` that takes one as a static argument is compiled once for all of them.

    Attributes:
      parts: Spec and parameters of one head.
      context_dim: Depth of the contexts.
      built: What made what: (config and sizes, the parts). Parts that took the place of these
        equal themselves alone.
    """

    parts: MechanismParts
    context_dim: int
    built: tuple[Any, MechanismParts] | None = dataclasses.field(default=None, kw_only=True)

    def __eq__(self, other: object) -> bool:
        """Whether both were built of equal configs and sizes, and so do the same."""
        if not isinstance(other, OneSource):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        """Hashes what `__eq__` compares."""
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[Any, ...]:
        made_of, parts = self.built or (None, None)
        # Parts hold closures, which have no equality: they are known by what they were built of.
        what = made_of if parts is self.parts else id(self.parts)
        made = ("parts", "layout", "built")  # which follow from what they were built of
        names = (field.name for field in dataclasses.fields(self) if field.name not in made)
        return type(self), what, *(getattr(self, name) for name in names)

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """What may be relied on."""
        return self.parts.traits

    @property
    def is_parallel(self) -> bool:  # type: ignore[override]
        """Whether queries do not depend on one another."""
        return self.parts.spec.is_parallel

    @property
    def is_causal(self) -> bool:  # type: ignore[override]
        """Whether it reads no slot after its query's own position, whatever the mask."""
        return self.parts.spec.is_causal

    @property
    def observes(self) -> frozenset[str]:  # type: ignore[override]
        """Names of what `observe` has to be given between queries."""
        return self.parts.spec.observes

    @property
    def carries(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of what it carries from query to query."""
        return tuple(name for name, _ in self.parts.spec.trackers)

    @property
    def tells_remaining(self) -> bool:  # type: ignore[override]
        """Whether `remaining` returns anything."""
        return self.parts.remaining is not None

    @property
    def provides(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names in `aux` of what only an objective that reads them teaches it by."""
        return self.parts.provides

    def value_norms(
        self, params: Params, memory: Memory, output: AttentionOutput
    ) -> Float[Array, "*B T S"]:
        """Norm-based analysis; see `Mechanism.value_norms`."""
        if self.parts.spec.average is not average_values:
            raise ConfigError(
                "config.model.attention: expected contexts that are averages of the source's "
                "values, for value norms, found others"
            )
        weights, vectors = self._contributions(params, memory, output)
        return norms_of_sums(weights, vectors)

    @abc.abstractmethod
    def _contributions(
        self, params: Params, memory: Memory, output: AttentionOutput
    ) -> tuple[Float[Array, "*B T H S"], Float[Array, "*B S H D"]]:
        """Returns what each head's values were averaged under, and each slot's in its context."""

    def _of_source(self, sources: Sources) -> tuple[Array, Array, Array, Mapping[str, Array]]:
        """Returns keys, values, mask and what stands beside them of the only source."""
        if len(sources) != 1:
            raise ValueError(
                "attention.name: expected a mechanism that attends to several sources for "
                f"{', '.join(sources)}, found one that attends to one"
            )
        (encoded,) = sources.values()
        # The fixed vector of a model without attention: what a recurrent encoder ends with.
        aux = {"summary": encoded.summary, **encoded.aux} if encoded.finals else encoded.aux
        return encoded.annotations, encoded.averaged, encoded.mask, aux


@dataclasses.dataclass(frozen=True, eq=False)
class SingleHead(OneSource):
    """Single-head attention: one head over whole queries, keys and values."""

    @property
    def averages_values(self) -> bool:  # type: ignore[override]
        """Whether contexts are averages of the values as they were given."""
        return self.context_dim > 0  # `none` has contexts without depth

    @property
    def is_softmax(self) -> bool:  # type: ignore[override]
        """Whether weights are the softmax of the scores, over all slots."""
        spec = self.parts.spec
        return spec.pattern is None and spec.normalizer is softmax_normalizer

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The head's parameters."""
        return dict(self.parts.parameters)

    def make_memory(
        self, params: Params, sources: Sources, positions: Int[Array, "S"] | None = None
    ) -> Memory:
        """Prepares the source."""
        keys, values, mask, aux = self._of_source(sources)
        return make_memory(self.parts.spec, params, keys, values, mask, positions, **aux)

    def init_state(self, params: Params, memory: Memory) -> State:
        """Returns what is carried into the first query."""
        return init_state(self.parts.spec, params, memory)

    def observe(
        self,
        params: Params,
        memory: Memory,
        state: State,
        observed: Mapping[str, Array],
        where: Bool[Array, "*B"] | None = None,
    ) -> State:
        """Tells the trackers what became known since the last query."""
        return observe(self.parts.spec, params, memory, state, observed, where)

    def remaining(self, state: State) -> Float[Array, "*B S C"] | None:
        """Returns how much of each slot is left to translate, where that is tracked."""
        return state[self.parts.remaining] if self.tells_remaining else None

    def _contributions(
        self, params: Params, memory: Memory, output: AttentionOutput
    ) -> tuple[Float[Array, "*B T H S"], Float[Array, "*B S H D"]]:
        """Returns those of the only head."""
        read = output.aux.get("read", output.weights)
        return read[..., None, :], memory.values[..., None, :]  # *B T 1 S, *B S 1 D

    def attend(
        self,
        params: Params,
        query: Float[Array, "*B T Dq"],
        memory: Memory,
        state: State | None = None,
        *,
        mask: Bool[Array, "*#B #T S"] | Bool[Array, "*#B #H #T S"] | None = None,
        bias: Float[Array, "*#B #T S"] | Float[Array, "*#B #H #T S"] | None = None,
        **rest: Any,
    ) -> tuple[AttentionOutput, State]:
        """Answers queries; a mask or a bias `*B H T S` is of the only head."""
        axis = query.ndim - 2
        # The mask, `*B S`, tells how many batch axes the memory has, the query how many it needs.
        memory = with_batch_axes(memory, axis - memory.mask.ndim + 1)
        rows = {"mask": mask, "bias": bias}
        for name, row in rows.items():
            if row is not None and row.ndim > axis + 2:
                rows[name] = rows_by_head(name, row, axis, 1)[0]
        return attend(self.parts.spec, params, query, memory, state, **rows, **rest)


def with_batch_axes(memory: Memory, missing: int) -> Memory:
    """Gives a memory that all rows share leading axes of one, for queries with more batch axes."""
    return jax.tree.map(lambda leaf: leaf[(None,) * missing], memory) if missing > 0 else memory


def rows_by_head(name: str, rows: Array, axis: int, num_heads: int) -> Array:
    """Turns a mask or bias `*B H T S` into one `*B T S` for each head, on a leading axis.

    Raises:
      ValueError: If it is neither of all heads nor of each.
    """
    if rows.ndim > axis + 3 or rows.shape[axis] not in (1, num_heads):
        raise ValueError(
            f"{name}: expected one for all heads, of {axis + 2} axes, or one for each of "
            f"{num_heads} heads, on the third axis from the end, found shape {rows.shape}"
        )
    every = (*rows.shape[:axis], num_heads, *rows.shape[axis + 1 :])
    return jnp.moveaxis(jnp.broadcast_to(rows, every), axis, 0)  # *B #H T S -> H *B T S
