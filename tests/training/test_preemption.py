"""Signals are noted while training, obeyed at once while nothing is to be saved.

They are sent to a child: sent to pytest itself, one that nothing catches would end all tests.
"""

import signal
import subprocess
import sys
import threading
import time

import pytest

from attention_jax.training import preemption
from attention_jax.training.preemption import Interruption, Preempted, Preemption

CHILD = """
import signal, sys, time
from attention_jax.training.preemption import Preempted, Preemption

def say(*words):
    print(*words, flush=True)

def wait(preemption):
    say("ready", preemption.requested())
    end = time.monotonic() + 60
    while not preemption.requested() and time.monotonic() < end:
        time.sleep(0.01)

def watching(preemption):
    wait(preemption)
    say(preemption.requested())
    preemption.leave()

def at_once(preemption):
    with preemption.at_once():
        say("ready", preemption.requested())
        time.sleep(60)
        say("not reached")

def at_once_too_late(preemption):
    wait(preemption)
    with preemption.at_once():
        say("started")

def twice(preemption):
    wait(preemption)
    say("once")
    time.sleep(60)

for line in sys.stdin:
    with Preemption().watching() as preemption:
        try:
            globals()[line.strip()](preemption)
        except Preempted as left:
            say("left", left.code)
"""


class _Child:
    """A process that does one thing after another; `answer` is the next line that it prints."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def told(self, what: str, number: int) -> None:
        """Has it begin with something, and sends a signal once it has."""
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        assert self.answer() == "ready False"
        self.process.send_signal(number)

    def answer(self) -> str:
        return self.process.stdout.readline().rstrip("\n")


@pytest.fixture(scope="module")
def child():
    one = _Child()
    yield one
    one.process.kill()
    one.process.communicate()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_watching_notes_a_signal_and_leaves_with_its_code(child, number, code):
    child.told("watching", number)
    assert [child.answer(), child.answer()] == ["True", f"left {code}"]


def test_at_once_ends_the_block_immediately(child):
    child.told("at_once", signal.SIGTERM)
    assert child.answer() == "left 75"


def test_at_once_does_not_start_after_a_signal(child):
    child.told("at_once_too_late", signal.SIGTERM)
    assert child.answer() == "left 75"


def test_a_second_signal_is_not_waited_for(child):
    child.told("twice", signal.SIGTERM)
    assert child.answer() == "once"
    child.process.send_signal(signal.SIGINT)
    assert child.process.wait(30) == 130


def test_watching_restores_the_old_handlers():
    before = signal.getsignal(signal.SIGTERM)
    with Preemption().watching():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


_DEAF = """
import hashlib, sys, threading
from attention_jax.training import preemption

def deaf():
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # lets no handler run before it returns

def tell(main):
    while sys._current_frames()[main].f_code is not deaf.__code__:
        pass
    print("begins", flush=True)

preemption._DEAF_SECONDS = 0.2
with preemption.Preemption().watching() as watch, watch.at_once():
    threading.Thread(target=tell, args=[threading.get_ident()], daemon=True).start()
    deaf()
    print("ends", flush=True)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_at_once_ends_even_code_that_lets_no_handler_run(number, code):
    child = subprocess.Popen(
        [sys.executable, "-c", _DEAF],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout.readline() == "begins\n"
    child.send_signal(number)
    out, err = child.communicate(timeout=300)
    assert (child.returncode, out) == (code, "")
    assert err == "told to stop: nothing was to be saved, the same command continues\n"


_DROPPED = """
import gc, signal, sys, time
from attention_jax.training import preemption

preemption._DEAF_SECONDS = 0.2
sys.unraisablehook = lambda error: None
with preemption.Preemption().watching() as watch, watch.at_once():
    def callback(phase, info):
        gc.callbacks.remove(callback)
        signal.raise_signal(signal.SIGTERM)
    gc.callbacks.append(callback)
    gc.collect()
    print("goes on", flush=True)
    time.sleep(60)
"""


def test_at_once_ends_where_what_a_handler_raises_is_dropped():
    child = subprocess.run([sys.executable, "-c", _DROPPED], capture_output=True, text=True)
    assert (child.returncode, child.stdout) == (75, "goes on\n")
    assert child.stderr == "told to stop: nothing was to be saved, the same command continues\n"


def test_watching_leaves_no_thread_behind():
    before = threading.active_count()
    with Preemption().watching():
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


@pytest.fixture
def lives_on(monkeypatch):
    """Fails where the process would have been ended."""
    monkeypatch.setattr(preemption.os, "_exit", lambda code: pytest.fail("ends the process"))
    monkeypatch.setattr(preemption, "_DEAF_SECONDS", 0.01)


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Preempted)]
)
def test_another_program_is_interrupted_and_not_ended(lives_on, number, raised):
    handlers = [signal.getsignal(number), signal.set_wakeup_fd(-1)]
    with Interruption().watching() as watch:
        assert not watch.requested()
        signal.raise_signal(number)  # noted: the step is to be saved
        assert watch.requested()
        with pytest.raises(raised):
            watch.leave()
        with pytest.raises(raised):  # a second one
            signal.raise_signal(number)
    with Interruption().watching() as watch, watch.at_once():
        threads = threading.active_count()
        with pytest.raises(raised):
            signal.raise_signal(number)
        time.sleep(0.1)  # in code that lets no handler run, nothing ends the process either
    assert [signal.getsignal(number), signal.set_wakeup_fd(-1)] == handlers
    assert threading.active_count() == threads


def test_another_programs_threads_leave_signals_alone():
    before, found = signal.getsignal(signal.SIGINT), []

    def work():
        with Interruption().watching() as watch, watch.at_once():
            found.append((signal.getsignal(signal.SIGINT), watch.requested()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(before, False)]
