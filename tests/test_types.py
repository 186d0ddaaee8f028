"""What a call hands down: keys of places, and masks by the paths of parameters."""

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.types import Call


def test_masks_are_found_below_the_part_that_they_are_of():
    heads = np.asarray([True, False])[None, :, None, None]
    masks = {"forward/decoder/layer_0/attention": heads, "reverse/decoder/attention": ~heads}
    call = Call(masks=masks)
    below = call.within("forward").within("decoder")
    assert set(below.masks) == {"layer_0/attention"}
    np.testing.assert_array_equal(below.mask_of("layer_0/attention"), heads)
    causal = jnp.tril(jnp.ones((3, 3), bool))
    both = below.mask_of("layer_0/attention", causal)
    np.testing.assert_array_equal(both, heads & np.asarray(causal))
    assert both.shape == (1, 2, 3, 3)
    assert below.mask_of("layer_1/attention") is None
    assert below.mask_of("layer_1/attention", causal) is causal


def test_a_call_under_jit_keeps_its_mode_and_masks(rng):
    @jax.jit
    def taken(call):
        part = call.fold(3).within("decoder")
        return jax.random.key_data(part.rng), part.mask_of("attention"), jnp.asarray(part.train)

    call = Call(True, rng, {"decoder/attention": np.asarray([True])})
    key, mask, train = taken(call)
    np.testing.assert_array_equal(key, jax.random.key_data(jax.random.fold_in(rng, 3)))
    assert bool(mask[0]) and bool(train)
    assert Call().split(2) is None and Call().fold(1).rng is None


def test_a_step_keeps_the_key_of_the_whole_sequence(rng):
    """What is drawn once for a sequence is drawn by it, at whatever depth its steps are split."""
    call = Call(True, rng, training_step=jnp.int32(7))
    own = jax.random.fold_in(rng, 1)
    step = call.at_step(own)
    inner = step.at_step(jax.random.fold_in(own, 2)).fold(3)
    for found in (call, step, inner):
        assert found.sequence_key == rng and found.training_step == 7
    assert step.rng == own and inner.rng != own
    assert Call(True).at_step(None).sequence_key is None
