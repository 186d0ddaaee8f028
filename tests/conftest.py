"""What all tests share: a CPU, caches of their own, seeded randomness and the data directory."""

import gc
import importlib
import os
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parents[1]

# Before jax is imported, and inherited by the programs that tests start.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Tests compile far more than they compute. Without these, a training step takes three times as long
# to compile as with them, and seven times if optimised. The parts of a program that are compiled
# side by side take half as much again of a processor, and the workers leave none idle.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
if version("jaxlib").startswith("0.10."):  # later ones end at a flag that they no longer know
    os.environ.setdefault(
        "XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    )
os.environ["MPLBACKEND"] = "agg"
os.environ["PYTHONPATH"] = os.pathsep.join(
    path for path in (str(ROOT), os.environ.get("PYTHONPATH")) if path
)

from tests import type_checks  # noqa: E402  (it imports jax, which reads what is set above)

type_checks.install()  # before the package is imported

# Compilation makes the first example of a property slow, and a failure must come back when rerun.
hypothesis.settings.register_profile("tests", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("tests")

_MOST_MAPS = 3_000  # of programs, each of which has from 6 to 30
_CACHE = "ATTENTION_JAX_TEST_CACHE"
_CACHE_VARIABLES = (
    "XDG_CACHE_HOME", "MPLCONFIGDIR", "SACREBLEU", "TFDS_DATA_DIR", "PYTHONPYCACHEPREFIX",
)  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Gives the session cache directories of its own; parallel workers share their parent's."""
    if _CACHE not in os.environ:
        os.environ[_CACHE] = tempfile.mkdtemp(prefix="attention_jax_tests_")
        config.add_cleanup(_remove_cache)
    for variable in _CACHE_VARIABLES:
        os.environ[variable] = os.path.join(os.environ[_CACHE], variable.lower())
    # Hundreds of processes are started, each of which would compile what it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_finish() -> None:
    """Spares the garbage collector what lives as long as the tests, and most of its rounds.

    Tracing makes millions of objects, few of which are garbage: a tenth of the time of the tests of
    mechanisms went into looking for it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 10)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files first, so that no worker is left with one when the others are done."""
    items.sort(key=lambda item: item.get_closest_marker("early") is None)


@pytest.fixture(autouse=True, scope="session")
def _kept_programs():
    """Compiles once what several tests train or evaluate, and the programs that they start."""
    if "jax" in sys.modules:
        from attention_jax.commands import cli

        cli.use_compilation_cache()


@pytest.fixture(autouse=True, scope="module")
def _few_live_programs():
    """Forgets what was compiled before hundreds of programs slow down whatever is compiled next.

    Each keeps the context in which it was lowered, and lowering looks through all that there are:
    beside 900 programs, tests take a third longer. Their memory maps are counted, for these are
    bounded too: with more than 65,530 of them, by default, XLA ends with a segmentation fault.
    """
    yield
    maps = Path("/proc/self/maps")
    if "jax" in sys.modules and maps.exists() and maps.read_bytes().count(b"\n") > _MOST_MAPS:
        sys.modules["jax"].clear_caches()
        gc.collect()


def _remove_cache() -> None:
    shutil.rmtree(os.environ.pop(_CACHE), ignore_errors=True)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout, from which the command line is used."""
    return ROOT


@pytest.fixture(scope="session")
def python_environment() -> dict[str, str]:
    """Environment for a child process that runs `sys.executable`."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The directory with the real data sets; the test is skipped where there is none."""
    named = os.environ.get("ATTENTION_JAX_DATA")
    directory = Path(named) if named else ROOT.parent / "shared" / "data"
    if not directory.is_dir():
        asked = "ATTENTION_JAX_DATA" if named else "ATTENTION_JAX_DATA is not set and"
        pytest.skip(f"needs real data: {asked} {directory} is not a directory")
    return directory


@pytest.fixture(scope="session")
def launch():
    """Runs a program: `launch("train", "--workdir=x", ...) -> Result`."""
    from tests.programs import Commands

    commands = Commands()
    yield commands
    commands.close()


@pytest.fixture(scope="session")
def trained() -> Path:
    """The directory of a trained run; not to be changed."""
    from tests.smoke_runs import smoke_run

    directory, result = smoke_run()
    assert result.returncode == 0, result.stderr
    return directory


@pytest.fixture
def rng():
    """A JAX random key."""
    import jax

    return jax.random.key(0)


@pytest.fixture
def numpy_rng():
    """A NumPy generator, for inputs and for references."""
    import numpy as np

    return np.random.default_rng(0)


@pytest.fixture
def extension(tmp_path, monkeypatch):
    """A function that writes the file of a part, such as ("data/tasks", "mine", text)."""
    root, written = tmp_path / "extension", []
    root.mkdir()
    monkeypatch.setenv("ATTENTION_JAX_EXTENSIONS", str(root))

    def write(below, name, text):
        package = importlib.import_module(f"attention_jax.{below.replace('/', '.')}")
        monkeypatch.setattr(package, "__path__", list(package.__path__))
        path = root / below / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        importlib.invalidate_caches()
        written.append(f"{package.__name__}.{name}")

    yield write
    for name in written:
        sys.modules.pop(name, None)
