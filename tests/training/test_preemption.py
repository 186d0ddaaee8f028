"""Signals are noted while training, obeyed at once while nothing is to be saved."""

import os
import signal

import pytest

from attention_jax.training.preemption import Preempted, Preemption


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_watching_notes_a_signal_and_leaves_with_its_code(number, code):
    with Preemption().watching() as preemption:
        assert not preemption.requested()
        os.kill(os.getpid(), number)
        assert preemption.requested()
        with pytest.raises(Preempted) as left:
            preemption.leave()
    assert left.value.code == code


def test_at_once_ends_the_block_immediately():
    done = []
    with Preemption().watching() as preemption, pytest.raises(Preempted), preemption.at_once():
        os.kill(os.getpid(), signal.SIGTERM)
        done.append("not reached")
    assert not done


def test_at_once_does_not_start_after_a_signal():
    with Preemption().watching() as preemption:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Preempted), preemption.at_once():
            pytest.fail("started")


def test_watching_restores_the_old_handlers():
    before = signal.getsignal(signal.SIGTERM)
    with Preemption().watching():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
