"""A search in stages, with room for more and more positions, finds what it finds at once."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.search import SearchConfig, search_stage
from tests.search.toy_model import ToyModel, jitted

SOURCES, LONGEST = jnp.array([2, 6, 0]), 10
CONFIGS = {
    "beam": {"beam_size": 3, "num_hypotheses": 2},
    "records": {"beam_size": 3, "coverage_penalty": "gnmt", "no_repeat_ngram_size": 2},
    "greedy": {"method": "greedy"},
    "sample": {"method": "sample", "num_hypotheses": 3},
}


WITH_X64 = {
    **CONFIGS,
    "stepwise": {
        "beam_size": 3, "coverage_penalty": "summary", "coverage_beta": 0.2,
        "coverage_stepwise": True, "length_normalization": "gnmt",
    },
    "nucleus": {"method": "sample", "top_k": 3, "top_p": 0.8},
}  # fmt: skip


class CachingToy(ToyModel):
    """The toy model, told of its past by all tokens so far, for which the state has room."""

    def start_with_room(self, room):
        state = self.start()
        del state["counts"]
        tokens = jnp.full((self.batch, 1, room), 0, jnp.int32)
        return {**state, "tokens": tokens, "position": jnp.zeros((self.batch, 1), jnp.int32)}

    def step(self, state, tokens):
        position, room = state["position"][0, 0], state["tokens"].shape[-1]
        written = state["tokens"].at[..., position].set(tokens, mode="drop")
        age = position - jnp.arange(room)
        decay = jnp.where(age >= 0, 0.5**age, 0.0)
        one_hot = jax.nn.one_hot(state["tokens"], self.vocabulary)
        before = jnp.einsum("bklv,l->bkv", one_hot, jnp.where(age > 0, 2 * decay, 0.0))
        told = {"hidden": state["hidden"], "bias": state["bias"], "counts": before}
        predictions, weights, after = super().step(told, tokens)
        after = {"hidden": after["hidden"], "bias": after["bias"], "tokens": written}
        return predictions, weights, {**after, "position": state["position"] + 1}


@functools.partial(jax.jit, static_argnames=("model", "config", "room"))
def stage_of(model, config, room, carry, rng, prefix=None):
    state = model.start_with_room(room)
    return search_stage(
        model.step, state, config, SOURCES, LONGEST, room, carry, rng, prefix=prefix
    )


def in_stages(model, config, rooms, rng):
    carry = None
    for room in rooms:
        stage = stage_of(model, config, room, carry, rng)
        if stage.is_done:
            break
        carry = stage.carry
    assert stage.is_done
    return stage.hypotheses, room


@pytest.mark.parametrize("fields", CONFIGS.values(), ids=CONFIGS)
def test_stages_find_what_is_found_at_once(fields):
    model, config = CachingToy(3, batch=3), SearchConfig(**fields)
    rng = jax.random.key(1)
    plain = ToyModel(3, batch=3)
    expected = jitted(plain.step, plain.start(), config, SOURCES, LONGEST, rng)
    found, _ = in_stages(model, config, (1, 3, LONGEST), rng)
    assert found.tokens.shape[-1] <= LONGEST
    for name, array in vars(found).items():
        other = np.asarray(getattr(expected, name))
        if name in ("tokens", "weights"):
            other = other[:, :, : array.shape[2]]
        np.testing.assert_allclose(array, other, rtol=1e-5, atol=1e-6, err_msg=name)


def test_a_search_that_has_ended_needs_no_further_stage():
    model, config = CachingToy(3, batch=3), SearchConfig(
        beam_size=3, max_length_factor=0.0, max_length_constant=4, min_length_ratio=1.0
    )
    _, room = in_stages(model, config, (4, LONGEST), None)
    assert room == 4
    _, room = in_stages(model, config, (1, LONGEST), None)
    assert room == LONGEST


@pytest.mark.parametrize("name", WITH_X64)
def test_every_search_runs_with_x64_and_scores_in_float64(name):
    """Its integers stay as short as they are without, or a loop would change their type."""
    config = SearchConfig(**WITH_X64[name])

    def find(rng):
        model = CachingToy(batch=3)
        state = model.start_with_room(LONGEST)
        stage = search_stage(model.step, state, config, SOURCES, LONGEST, LONGEST, None, rng)
        found = stage.hypotheses
        return (found.scores, found.log_probs, found.weights), (found.tokens, found.lengths)

    with jax.enable_x64(True):
        floats, integers = jax.eval_shape(find, jax.random.key(0))
    assert {leaf.dtype.name for leaf in floats} == {"float64"}
    assert {leaf.dtype.name for leaf in integers} == {"int32"}
