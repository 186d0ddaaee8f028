"""The selective read against NumPy: scores of a step, and what the next one reads of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.decoder import DECODERS, DecoderSizes
from attention_jax.layers.encoder import ENCODERS, Encoded
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.selective_read import SCORES, with_selective_read
from attention_jax.types import SpecialIds
from tests.quick import quick_jit

B, S, E, D = 2, 4, 3, 5
WORDS = jnp.asarray([[7, 4, 7, 0], [5, 9, 0, 0]])
WRITTEN = jnp.asarray([[SpecialIds.BOS, 7, 4], [SpecialIds.BOS, 9, 8]])  # 8 is in no source


def reader(name="luong", **fields):
    encoder = ENCODERS.find("concatenation").build(ENCODERS.config("concatenation")(), D, None)
    sizes = DecoderSizes(E, {"source": encoder}, 10)
    config = DECODERS.config(name)(bridge="mean", hidden_dim=6, **fields)
    attention = MECHANISMS.config("bahdanau")(attention_dim=4)
    module = DECODERS.find(name)
    return with_selective_read(
        lambda sizes: module.build(config, sizes, attention), sizes, "extended_source", name
    )


@pytest.mark.parametrize(
    ("name", "fields"),
    [("luong", {"attentional_dim": 6}), ("luong", {"attentional_dim": 6, "input_feeding": False}),
     ("bahdanau", {"readout_dim": 6}), ("conditional_gru", {"readout_dim": 6})],
)  # fmt: skip
def test_what_is_read_is_where_the_word_was_copied_from(name, fields):
    rng, decoder = np.random.default_rng(0), reader(name, **fields)
    params = jax.tree.map(
        lambda part: jnp.asarray(rng.normal(size=part.shape), float), decoder.parameters
    )
    mask = WORDS > 0
    slots = jnp.where(mask[..., None], jnp.asarray(rng.normal(size=(B, S, D)), float), 0.0)
    encoded = Encoded(slots, mask, aux={"extended_source": WORDS})
    embedded = jnp.asarray(rng.normal(size=(B, 3, E)), float)
    memory, state = decoder.start(params, {"source": encoded}, 3)
    told = {"written_id": WRITTEN[..., None]}

    @quick_jit
    def both(params):
        whole = decoder.run(params, memory, state, embedded, told=told)
        steps, carried = [], state
        for t in range(3):
            now = {"written_id": WRITTEN[:, t, None]}
            *found, carried = decoder.step(params, memory, carried, embedded[:, t], now)
            steps.append((*found, carried["copied"]))
        return whole, steps

    whole, steps = both(params)
    keys = np.tanh(np.asarray(slots) @ np.asarray(params["copy_kernel"]))
    scores = np.einsum("btf,bsf->bts", whole.features, keys)
    np.testing.assert_allclose(whole.attention.aux[SCORES], scores, rtol=1e-4, atol=1e-5)
    for t, (features, attention, read) in enumerate(steps):
        np.testing.assert_allclose(features, whole.features[:, t], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(attention.aux[SCORES], scores[:, t], rtol=1e-4, atol=1e-5)
        expected = np.zeros((B, D))
        for row in range(B):
            held = (np.asarray(WORDS[row]) == int(WRITTEN[row, t])) & (t > 0)
            if held.any():
                shares = np.where(held, np.exp(scores[row, t - 1]), 0)
                expected[row] = shares / shares.sum() @ np.asarray(slots[row])
        np.testing.assert_allclose(read, expected, rtol=1e-4, atol=1e-5)
    assert np.abs(steps[1][2]).max() > 0 and not steps[2][2][1].any()


def test_decoders_that_hand_nothing_on_are_refused():
    with pytest.raises(ValueError, match=r"readout.selective_read: expected False .* 'transducer'"):
        reader("transducer")
