"""What a mechanism file holds, and how it is found by its config's name.

A mechanism file in `layers/mechanisms` holds `PAPER`, a frozen dataclass `Config`, and
`build(config, query_dim, key_dim) -> MechanismParts`. Its file name is its name in configs.

A mechanism that depends on more of its model than these two depths names it in `NEEDS`, and its
`build` takes it by keyword:

  source_vocabulary_size  how many source ids there are; the memory's `aux["source_ids"]` holds them
  word_dim                depth of an embedded target word; `observed["written_word"]` is one
  value_dim               depth of the values
  place                   what asks what: `cross` (another sequence), `self`, or `causal` (itself,
                          up to the position that asks)

A mechanism with `PROJECTS = True` makes its heads out of the whole depths; see `HeadLayout`. One
with `READS_KEYS = False` tells slots apart by their places alone, or not at all. With
`TELLS_KEY_BIAS = True` what is added to all keys alike changes weights, as in additive scores.
"""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from attention_jax.discovery import Parts
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.attend import AttentionSpec
from attention_jax.types import Array, Params

MECHANISMS = Parts("attention_jax.layers.mechanisms")


class HeadLayout(NamedTuple):
    """Heads that all read whole queries, keys and values, and project them themselves.

    Attributes:
      num_memory_heads: How many of the heads have keys and values of their own; the query heads
        are dealt out to them in order.
      parameters: The parameters that belong to no head, used by `join`.
      join: (those parameters, the heads' contexts `*B T H Dv`) -> contexts `*B T D`.
    """

    num_memory_heads: int
    parameters: Mapping[str, Parameter]
    join: Callable[[Params, Array], Array]


class MechanismParts(NamedTuple):
    """What a mechanism file builds.

    Attributes:
      spec: How it attends.
      parameters: Its parameters, for one head.
      is_alignment: Whether its weights say which source positions were attended to.
      reads_query: Whether anything depends on what the queries are.
      context_dim: Depth of its contexts, where that is not the values' depth.
      remaining: Name of the tracked value `*B S C` that says how much of each slot is left to
        translate, if there is one.
      memory_parameters: Names of the parameters that only the memory depends on, which heads of
        one memory share.
      reads_length: Whether its weights depend on how many slots there are.
      is_causal: Whether it reads no slot after its query's own position, whatever the mask.
      product_scale: What the dot product of query and key is multiplied by, where that is the
        score; None for any other score.
      places_window: Whether each head places a window of its own.
      heads: How its heads are laid out, where they are not equal parts of the depths.
    """

    spec: AttentionSpec
    parameters: Mapping[str, Parameter]
    is_alignment: bool = True
    reads_query: bool = True
    context_dim: int | None = None
    remaining: str | None = None
    memory_parameters: frozenset[str] = frozenset()
    reads_length: bool = False
    is_causal: bool = False
    product_scale: float | None = None
    places_window: bool = False
    heads: HeadLayout | None = None


def mechanism_names() -> list[str]:
    """Lists the mechanisms: the modules of `layers/mechanisms`, and of extensions."""
    return MECHANISMS.names()


def find_mechanism(name: str) -> ModuleType:
    """Returns the module of a mechanism.

    Raises:
      KeyError: With the list of names, if there is none of that name.
    """
    return MECHANISMS.find(name)


def find_config(name: str) -> type:
    """Returns the config dataclass of a mechanism; raises `KeyError` as `find_mechanism` does."""
    return find_mechanism(name).Config


def described(config: Any) -> str:
    """Names a mechanism for messages, with the score inside its window if it has one."""
    inner = getattr(config, "score", None)
    return repr(config.name) if inner is None else f"{config.name!r} over {inner.name!r}"


def reads_keys(config: Any) -> bool:
    """Whether a mechanism, or the score inside its window, compares queries with keys."""
    inner = getattr(config, "score", config)
    return getattr(find_mechanism(inner.name), "READS_KEYS", True)


def tells_key_bias(config: Any) -> bool:
    """Whether what is added to all keys changes the weights of a mechanism, or of its window."""
    inner = getattr(config, "score", config)
    return getattr(find_mechanism(inner.name), "TELLS_KEY_BIAS", False)


def build_parts(
    config: Any, query_dim: int, key_dim: int, sizes: Mapping[str, Any]
) -> MechanismParts:
    """Builds one head of the mechanism that `config.name` names.

    Raises:
      ValueError: If `sizes` lacks something that the mechanism needs.
    """
    module = find_mechanism(config.name)
    needs = getattr(module, "NEEDS", ())
    missing = [name for name in needs if name not in sizes]
    if missing:
        raise ValueError(
            f"attention.name: expected a model with {' and '.join(missing)} for {config.name!r}, "
            "found none"
        )
    return module.build(config, query_dim, key_dim, **{name: sizes[name] for name in needs})


def check_window_score(config: Any, half_width: int) -> None:
    """Raises `ValueError` unless a mechanism's config can score the slots of a window."""
    size = 2 * half_width + 1
    if not hasattr(config, "normalizer"):
        raise ValueError(f"score.name: expected a score over all slots, found {config.name!r}")
    if config.num_heads != 1:
        raise ValueError(
            f"score.num_heads: expected 1, for the window's own num_heads count, "
            f"found {config.num_heads}"
        )
    sizes = dict.fromkeys(getattr(find_mechanism(config.name), "NEEDS", ()), 1)
    carried = [name for name, _ in build_parts(config, 1, 1, sizes).spec.trackers]
    if carried:
        raise ValueError(
            f"score.name: expected a score that carries nothing from query to query, found "
            f"{config.name!r}, which carries {' and '.join(carried)}"
        )
    if getattr(config, "max_positions", size) != size:
        raise ValueError(
            f"score.max_positions: expected {size}, one for each slot of the window, "
            f"found {config.max_positions}"
        )
