"""Programs that threads compile: the same numbers as a plain call's, each compiled once."""

import os
import signal
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.devices.background_compilation import BackgroundCompilation
from attention_jax.training.preemption import Preempted, Preemption

KEY = jax.random.key(3)
SECONDS = 30.0  # after which a test that hangs fails


def batch_of(length):
    return {"source": np.arange(length, dtype=np.float32)}


class Slow:
    """A step that notes what it is lowered for, and compiles when it is let."""

    def __init__(self):
        self.lowered, self.free, self.waits = [], threading.Event(), threading.Event()

    def __call__(self, state, batch):
        raise AssertionError("compiled twice")

    def lower(self, state, batch):
        self.lowered.append(batch["source"].shape[0])
        return self

    def compile(self):
        if len(self.lowered) > 1:
            self.waits.set()
            assert self.free.wait(SECONDS)
        return lambda state, batch: state + 1


def test_numbers_are_those_of_a_call_and_each_program_is_compiled_once():
    def step(state, batch, rng):
        noise = jax.random.normal(rng, batch["source"].shape)
        return jnp.tanh(state + jnp.sum(batch["source"] * noise)), state

    jitted, batches, made = jax.jit(step, donate_argnums=0), list(map(batch_of, (3, 5, 7))), []

    def count(event, seconds, **more):
        if event.endswith("backend_compile_duration"):
            made.append(more)

    expected = [jax.jit(step)(jnp.float32(0.5), batch, KEY) for batch in batches]
    jax.monitoring.register_event_duration_secs_listener(count)
    try:
        like = jax.ShapeDtypeStruct((), np.float32)
        with BackgroundCompilation(jitted, like, batches, KEY, threads=2) as compiled:
            found = [compiled(jnp.float32(0.5), batch, KEY) for batch in batches * 2]
            assert all(map(compiled.is_ready, batches))
    finally:
        jax.monitoring.unregister_event_duration_listener(count)
    assert len(made) == len(batches) and jitted._cache_size() == 0
    jax.tree.map(np.testing.assert_array_equal, found, expected * 2)


def test_a_call_waits_for_its_own_program_only():
    slow = Slow()
    with BackgroundCompilation(slow, 0, map(batch_of, (4, 2, 3))) as compiled:
        assert compiled(1, batch_of(4)) == 2
        assert compiled.is_ready(batch_of(4)) and not compiled.is_ready(batch_of(2))
        slow.free.set()
        assert compiled(5, batch_of(3)) == 6
    assert slow.lowered == [4, 2, 3]  # in the order of need


def test_what_has_not_begun_when_training_ends_never_does():
    slow = Slow()
    compiled = BackgroundCompilation(slow, 0, map(batch_of, (4, 2, 3)))
    compiled(1, batch_of(4))
    assert slow.waits.wait(SECONDS)
    threading.Timer(0.05, slow.free.set).start()
    compiled.close()
    assert slow.lowered == [4, 2] and slow.free.is_set()


def test_an_error_of_the_compiler_is_raised_where_its_program_is_needed():
    def step(state, batch):
        if batch["source"].shape == (2,):
            raise FloatingPointError("out of memory")
        return state

    with BackgroundCompilation(jax.jit(step), 1.0, map(batch_of, (3, 2))) as compiled:
        assert compiled(1.0, batch_of(3)) == 1.0
        with pytest.raises(FloatingPointError, match="out of memory"):
            compiled(1.0, batch_of(2))


def test_what_cannot_be_compiled_before_is_called():
    with BackgroundCompilation(lambda state, batch: state + 1, 0, [batch_of(2)]) as compiled:
        assert not compiled.is_ready(batch_of(2))
        assert compiled(1, batch_of(2)) == 2


@pytest.mark.parametrize("option", ["jax_debug_nans", "jax_debug_infs"])
def test_debuggers_of_jax_see_the_call(option):
    def step(state, batch):
        return state / jnp.sum(batch["source"] - batch["source"])

    jax.config.update(option, True)
    try:
        with BackgroundCompilation(jax.jit(step), 0.0, [batch_of(2)]) as compiled:
            state = jnp.float32(0.0 if option == "jax_debug_nans" else 1.0)
            with pytest.raises(FloatingPointError, match="encountered in div"):
                compiled(state, batch_of(2))
    finally:
        jax.config.update(option, False)


def test_a_signal_is_answered_while_a_program_is_waited_for():
    slow, preemption = Slow(), Preemption()
    slow.lowered.append(0)  # so that no program is ready
    compiled = BackgroundCompilation(slow, 0, [batch_of(4)])
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM)).start()
    threading.Timer(0.3, slow.free.set).start()
    with preemption.watching(), pytest.raises(Preempted), preemption.at_once():
        compiled(1, batch_of(4))
    assert compiled.is_ready(batch_of(4))  # nothing compiles any more when the process ends
