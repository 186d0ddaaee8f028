"""Additive attention with structural biases: position, Markov condition and local fertility.

  scores[t, s] = vector . tanh(query[t] W_q + keys[s] W_k + psi(t, s, S) W_p
                             + xi(weights[t-1]; s) W_m + xi(sum_{t' < t} weights[t']; s) W_f)
  psi(t, s, S) = [log(1 + t), log(1 + s), log(1 + S)]
  xi(a; s) = [a[s - k], ..., a[s + k]], zero outside

Deviations: the authors' code leaves the query out of the first step, where its decoder has no state
yet; here the state that the decoder starts from is the first query. Its sources begin with BOS,
which has s = 0 and counts in S; here the first word has s = 0, or, with `boundary`, s = 1.
"""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.layers.additive import AdditiveConfig, additive_parts
from attention_jax.layers.mechanism import MechanismParts, Traits
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.products import add_bias
from attention_jax.ops.structural_biases import neighbourhood, query_position, slot_positions
from attention_jax.ops.summation import upcast
from attention_jax.ops.trackers import coverage, previous_weights
from attention_jax.types import Array, Memory, Params, State

PAPER = "Cohn, Hoang, Vymolova, Yao, Dyer and Haffari (2016), section 3"


@dataclasses.dataclass(frozen=True)
class Config(AdditiveConfig):
    """Additive attention with structural biases.

    Further fields are those of `layers.additive.AdditiveConfig`.

    Attributes:
      position: Whether the positions of query and slot enter (section 3.1).
      boundary: Whether s and S count a boundary before the first word, as in the authors' code,
        though there is no slot for it.
      markov: Whether the weights of the query before, around the slot, enter (section 3.2).
      fertility: Whether all earlier weights' sum, around the slot, enters (section 3.3).
      reach: k: how many neighbours on either side are around the slot (1 in the paper).
    """

    name: str = setting("structural_bias")
    position: bool = setting(True)
    boundary: bool = setting(False)
    markov: bool = setting(True)
    fertility: bool = setting(True)
    reach: int = setting(1, at_least=0)

    def __post_init__(self) -> None:
        """Rejects fields that would change nothing."""
        if not (self.position or self.markov or self.fertility):
            raise ValueError(
                "position, markov, fertility: expected one of them, found none; "
                "attention without a bias is named 'bahdanau'"
            )
        if self.boundary and not self.position:
            raise ValueError("boundary: expected position beside it, found none")
        if not (self.markov or self.fertility) and self.reach != 1:
            raise ValueError(f"reach: expected markov or fertility beside it, found {self.reach}")


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds the mechanism for queries and keys of the given depths."""
    depth, window = config.attention_dim, 2 * config.reach + 1
    tracked = {"markov": previous_weights(), "fertility": coverage()}
    trackers = {name: tracker for name, tracker in tracked.items() if getattr(config, name)}
    more = {f"{name}_kernel": _of_features(window, depth) for name in trackers}
    if config.position:
        more["position_kernel"] = _of_features(3, depth)  # t, s and S

    # log(1 + t) is the query's alone, log(1 + s) and log(1 + S) are the slot's.
    def prepare(params: Params, memory: Memory, positions: Array) -> Memory:
        keys = memory.keys @ params["key_kernel"]
        if config.position:
            features = slot_positions(memory.mask, positions, first=int(config.boundary))
            features = features.astype(keys.dtype)
            keys = keys + features @ params["position_kernel"][1:]
        return dataclasses.replace(memory, keys=keys)

    def query(params: Params, vectors: Array, positions: Array) -> Array:
        projected = vectors @ params["query_kernel"]
        if not config.position:
            return projected
        place = query_position(positions)[..., None]  # T -> T 1
        return add_bias(projected, place * upcast(params["position_kernel"][0]))

    def keys(params: Params, memory: Memory, state: State) -> Array:
        found = memory.keys
        for name in trackers:
            # *B S -> *B S W, W = 2 reach + 1
            features = neighbourhood(state[name], config.reach, memory).astype(found.dtype)
            found = found + features @ params[f"{name}_kernel"]
        return found

    # Where a sequence attends to itself as it grows, S would tell how far it is to go.
    return additive_parts(
        config, query_dim, key_dim, more, prepare=prepare, query=query, keys=keys,
        trackers=trackers, traits=Traits(reads_length=config.position),
    )  # fmt: skip


def _of_features(number: int, depth: int) -> Parameter:
    return Parameter.of("coverage_kernel", positions=number, attention=depth)
