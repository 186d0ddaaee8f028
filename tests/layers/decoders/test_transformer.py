"""The Transformer's decoder with every mechanism that it takes: what it reads of its own past."""

import contextlib
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.decoder import DecoderSizes
from attention_jax.layers.decoders.transformer import Config, build
from tests.conformance.battery import D, all_cases
from tests.quick import quick_jit

B, T, SHORT = 2, 6, 4
STACK = Config(num_layers=1, feed_forward_dim=2)


def served():
    """Yields (name, decoder) for each case of the battery that serves, without a source."""
    for case in all_cases():
        if case.refusal:
            continue
        with contextlib.suppress(ValueError):  # is refused
            yield case.name, build(STACK, DecoderSizes(D, {}), case.config)


SERVED = dict(served())


def test_mechanisms_are_served_unless_they_carry_something_or_read_lengths():
    names = {name.split("-")[0] for name in SERVED}
    assert names == {
        "bahdanau", "gated", "local_m", "luong_concat", "luong_dot", "luong_general",
        "luong_location", "multi_head", "normed_bahdanau", "scaled_dot",
    }  # fmt: skip


@pytest.mark.parametrize("decoder", SERVED.values(), ids=SERVED)
def test_a_beginning_is_read_alike_whether_more_follows_or_is_still_to_be_written(decoder):
    """The whole, its beginning alone, and one token after the other beside a cache."""
    rng = np.random.default_rng(0)
    params = jax.tree.map(
        lambda parameter: jnp.asarray(0.4 * rng.normal(size=parameter.shape), jnp.float32),
        decoder.parameters,
        is_leaf=lambda node: hasattr(node, "role"),
    )
    embedded = jnp.asarray(rng.normal(size=(B, T, D)), jnp.float32)

    @quick_jit
    def features(params, embedded):
        start = functools.partial(decoder.first_state, params, B, dtype=embedded.dtype)
        run = functools.partial(decoder.run, params, (), start(0))

        def step(state, token):
            found, _, state = decoder.step(params, (), state, token)
            return state, found

        _, stepwise = jax.lax.scan(step, start(T), jnp.swapaxes(embedded, 0, 1))
        return run(embedded)[0], run(embedded[:, :SHORT])[0], jnp.swapaxes(stepwise, 0, 1)

    whole, beginning, stepwise = features(params, embedded)
    np.testing.assert_allclose(whole[:, :SHORT], beginning, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(stepwise, whole, rtol=1e-4, atol=1e-5)
