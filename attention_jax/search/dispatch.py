"""The entry points to all searches: at once, or in stages with more and more room."""

from typing import Any

import jax
from jaxtyping import Array, Bool, Int

from attention_jax.search.beam import beam_method
from attention_jax.search.config import SearchConfig
from attention_jax.search.hypotheses import Hypotheses
from attention_jax.search.method import Method, Stage, Step, advance_all, enlarged
from attention_jax.search.rollout import greedy_method
from attention_jax.search.sample import sample_method


def search(
    step: Step,
    state: Any,
    config: SearchConfig,
    source_lengths: Int[Array, "B"],
    max_length: int,
    rng: jax.Array | None = None,
    words: Bool[Array, "B S"] | None = None,
    prefix: Int[Array, "B P"] | None = None,
) -> Hypotheses:
    """Decoding: searches the outputs of a batch of sources by the configured method.

    It can be jitted with `config` and `max_length` static.

    Args:
      step: `step(state, tokens)` with the previous token of every hypothesis (`B K`, BOS at
        first) returns (predictions `B K` of V + X ids, attention weights `B K S`, new state).
      state: A pytree with leaves `B 1 ...` as it stands before the first token. It is repeated
        for the K hypotheses, and every leaf follows its hypothesis from then on.
      config: Method, limits and normalisation.
      source_lengths: Source tokens with EOS, for the limits; 0 for filler rows.
      max_length: L, the longest output that the arrays have room for, EOS included; see
        `SearchConfig.longest`.
      rng: Key of the randomness, with `config.seed`; needed by `sample` only.
      words: True at the slots of attention that stand for words, for a coverage penalty; None where
        slot s is source token s.
      prefix: What each output begins with, whatever the model prefers, PAD behind it; of UNK and
        ids that are not special, fewer than the longest output has tokens. Its log-probability
        counts, and so do its length, its attention and its n-grams. None where nothing is forced.

    Returns:
      The `config.num_hypotheses` best hypotheses of each source.

    Raises:
      ValueError: If a leaf of `state` is not `B 1 ...`, or `sample` has no `rng`.
    """
    method = _method(step, state, config, source_lengths, max_length, rng, words, prefix)
    return method.finish(advance_all(method, method.begin(max_length), max_length))


def search_stage(
    step: Step,
    state: Any,
    config: SearchConfig,
    source_lengths: Int[Array, "B"],
    max_length: int,
    room: int,
    carry: Any = None,
    rng: jax.Array | None = None,
    words: Bool[Array, "B S"] | None = None,
    prefix: Int[Array, "B P"] | None = None,
) -> Stage:
    """Staged decoding: searches as `search` does, with room for the first positions only.

    Outputs are mostly much shorter than they may be, and a state that holds something of every
    position, such as the keys of those written so far, is read and copied whole at each of them.
    Searches that are not done for want of room go on with more.

    Args:
      step: As for `search`.
      state: As for `search`, before the first token, but for outputs of `room` tokens; its leaves
        hold zeros for positions that were not written yet, behind those that were.
      config: As for `search`.
      source_lengths: As for `search`.
      max_length: The longest output, as for `search`.
      room: How many positions are searched, `max_length` at most.
      carry: That of the stage before, which had less room, or None at the beginning.
      rng: As for `search`, the same at every stage.
      words: As for `search`.
      prefix: As for `search`.

    Returns:
      Where the search stands.
    """
    method = _method(step, state, config, source_lengths, max_length, rng, words, prefix)
    first = method.begin(room)
    # A later stage goes on from the carry of the one before, padded to this one's room.
    carry = advance_all(method, first if carry is None else enlarged(carry, first), room)
    # The longest output ends a search, whatever is still alive.
    is_done = ~method.is_alive(carry) | (carry[0] >= max_length)
    return Stage(carry if room < max_length else None, method.finish(carry), is_done)


def _method(
    step: Step,
    state: Any,
    config: SearchConfig,
    source_lengths: Array,
    max_length: int,
    rng: jax.Array | None,
    words: Array | None,
    prefix: Array | None,
) -> Method:
    arguments = (step, state, config, source_lengths, max_length)  # what all three methods take
    if config.method == "beam":
        return beam_method(*arguments, words, prefix)
    if config.method == "greedy":
        return greedy_method(*arguments, words, prefix)
    if rng is None:
        raise ValueError("search by sampling needs rng")
    # Folded into the run's key: another seed draws other outputs of the same run.
    return sample_method(*arguments, jax.random.fold_in(rng, config.seed), words, prefix)
