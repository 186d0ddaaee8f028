"""A cache of compiled programs changes no number, keeps to its size, and never ends a program."""

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import monitoring
from jax.experimental.compilation_cache import compilation_cache as jax_cache

from attention_jax.devices import compilation_cache
from attention_jax.devices.compilation_cache import keep_compiled, remove_longest_unused

_OPTIONS = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")


@pytest.fixture
def fresh():
    """Returns a function that forgets what this process has compiled, and its cache."""
    before = {name: getattr(jax.config, name) for name in _OPTIONS}

    def forget():
        jax.clear_caches()
        jax_cache.reset_cache()

    forget()
    yield forget
    for name, value in before.items():
        jax.config.update(name, value)
    forget()


@pytest.fixture
def hits():
    """The programs that were taken from the cache."""
    found = []

    def count(event, **_):
        if event == "/jax/compilation_cache/cache_hits":
            found.append(event)

    monitoring.register_event_listener(count)
    yield found
    monitoring.unregister_event_listener(count)


def _update(params, keys):
    """An update of attention: what a train step consists of, in few lines."""

    def loss(params):
        weights = jax.nn.softmax(keys @ params["query"])
        return jnp.square(jnp.tanh(weights @ keys) @ params["output"]).sum()

    value, gradient = jax.value_and_grad(loss)(params)
    return value, jax.tree.map(lambda one, other: one - 0.1 * other, params, gradient)


def test_an_update_has_the_same_bits_uncached_kept_and_taken(fresh, hits, tmp_path):
    draw = np.random.default_rng(0).standard_normal
    keys = draw((17, 5), np.float32)
    params = {"query": draw(5, np.float32), "output": draw(5, np.float32)}

    def updated():
        fresh()
        return [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(_update)(params, keys))]

    jax.config.update("jax_compilation_cache_dir", None)
    uncached = updated()
    assert keep_compiled(tmp_path) is None
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    kept = updated()
    assert not hits and list(tmp_path.rglob("jit__update*"))
    taken = updated()
    assert hits
    for one, two, three in zip(uncached, kept, taken, strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, three)


def test_a_program_that_was_cut_off_is_compiled_again(fresh, recwarn, tmp_path):
    compilation_cache.keep_what_takes_long()
    assert keep_compiled(tmp_path) is None
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    triple = jax.jit(lambda x: 3 * x + 1)
    assert triple(jnp.arange(2)).tolist() == [1, 4]
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        path.write_bytes(path.read_bytes()[:20])
    fresh()
    assert triple(jnp.arange(2)).tolist() == [1, 4]
    assert not recwarn.list


def test_what_a_program_has_chosen_is_left_alone(fresh, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "")
    jax.config.update("jax_compilation_cache_dir", None)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 7.0)
    compilation_cache.keep_by_default(pytest.fail)  # none
    assert jax.config.jax_compilation_cache_dir is None
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "mine"))
    compilation_cache.keep_by_default(pytest.fail)  # its own
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / "mine")
    assert jax.config.jax_persistent_cache_min_compile_time_secs == 7.0


def test_what_is_compiled_after_the_first_program_is_kept_too(fresh, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    jax.config.update("jax_compilation_cache_dir", None)
    jax.jit(lambda x: x + 1)(1)  # in a notebook, before a run is loaded
    compilation_cache.keep_by_default(pytest.fail)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.jit(_update)({"query": jnp.ones(5), "output": jnp.ones(5)}, jnp.ones((17, 5)))
    assert list(tmp_path.rglob("jit__update*"))


def test_a_place_that_cannot_be_written_is_said(fresh, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    jax.config.update("jax_compilation_cache_dir", None)
    said = []
    compilation_cache.keep_by_default(said.append)
    [line] = said
    assert line.startswith("notice: compiled programs are not kept: ") and "Not a dir" in line


def test_processors_of_two_kinds_share_nothing(monkeypatch, tmp_path):
    info = tmp_path / "cpuinfo"
    real, names = Path.read_text, set()
    monkeypatch.setattr(Path, "read_text", lambda path, **how: real(info, **how))
    for text in ("model name : A\nflags : avx2\n", "model name : A\nflags : avx2 avx512f\n"):
        info.write_text(2 * text)
        names.add(compilation_cache._processor())
        info.write_text(f"processor : 1\ncpu MHz : 2450\n{text}")
        names.add(compilation_cache._processor())
    assert len(names) == 2


def test_what_was_not_used_for_longest_is_removed(tmp_path):
    (tmp_path / "autotuned").mkdir()
    ages = {"old": 3, "read_since": 1, "autotuned/older": 4, "new": 2}
    for name, age in ages.items():
        path = tmp_path / name
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - 9))
    left = {400: set(ages), 399: {"old", "new", "read_since"}, 250: {"new", "read_since"}}
    for size, names in left.items():
        remove_longest_unused(tmp_path, size)
        assert {
            str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()
        } == names


def test_a_folder_that_cannot_be_made_is_no_cache(tmp_path):
    (tmp_path / "file").write_text("")
    before = jax.config.jax_compilation_cache_dir
    assert keep_compiled(tmp_path / "file" / "cache") == "Not a directory"
    assert jax.config.jax_compilation_cache_dir == before


def test_a_full_disk_is_no_cache(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("a device that is always full is Linux's")

    class Full:
        def __enter__(self):
            self.file = open("/dev/full", "wb")
            return self.file

        def __exit__(self, *error):
            try:
                self.file.close()
            except OSError:
                pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation_cache.tempfile, "TemporaryFile", lambda dir: Full())
        assert keep_compiled(tmp_path) == "No space left on device"
