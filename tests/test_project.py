"""The project's own files: pins, packaging, configs, and what an import costs."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator

import pytest

import attention_jax

PINS = ("requirements.txt", "requirements-dev.txt")
ACCELERATORS = ("cuda", "cuda12", "tpu")  # each has a file with what it adds to requirements.txt
EXTRA_PINS = tuple(f"requirements-{name}.txt" for name in ACCELERATORS)
TRAINER_LIBRARIES = (  # flax itself needs absl
    "array_record",
    "grain",
    "matplotlib",
    "ml_collections",
    "optax",
    "orbax",
    "sacrebleu",
    "sentencepiece",
    "tensorboardX",
    "tensorflow",
    "tensorflow_datasets",
)


@pytest.mark.parametrize("name", PINS + EXTRA_PINS)
def test_pins_have_hashes(repository, name):
    for entry in _entries(repository / name):
        assert re.match(r"[a-z0-9-]+==[0-9][^ ]* ", entry), f"not an exact pin: {entry[:80]}"
        assert "--hash=sha256:" in entry, f"without a hash: {entry[:80]}"


@pytest.mark.parametrize("name", PINS + EXTRA_PINS)
def test_pins_name_no_host_and_no_path(repository, name):
    text = (repository / name).read_text(encoding="utf-8")
    assert not re.search(r"://|--[a-z-]*index|--find-links|--trusted-host|@ |file:|/", text)


@pytest.mark.parametrize("name", PINS)
def test_pins_do_without_tensorflow_and_accelerators(repository, name):
    names = {entry.split("==")[0] for entry in _entries(repository / name)}
    assert not names & {"tensorflow", "tensorflow-cpu", "tf-nightly", "keras", "torch"}
    assert not {other for other in names if other.startswith(("nvidia-", "jax-cuda", "libtpu"))}


@pytest.mark.parametrize("name", PINS)
def test_pins_serve_both_python_lines(repository, name):
    jax = [entry for entry in _entries(repository / name) if entry.startswith("jax==")]
    markers = sorted(re.search(r"; (.*?) (--hash|$)", entry).group(1) for entry in jax)
    assert markers == ["python_full_version < '3.12'", "python_full_version >= '3.12'"]


@pytest.mark.parametrize("name", EXTRA_PINS)
def test_pins_of_accelerators_add_to_the_others(repository, name):
    pins, added = (
        dict(_versions(repository / file)) for file in ("requirements.txt", name)
    )  # fmt: skip
    assert added and not pins.keys() & added.keys()
    for marker in ("python_full_version < '3.12'", "python_full_version >= '3.12'"):
        plugins = [package for package, when in added if when == marker]
        assert plugins
        for package in plugins:
            if package.startswith("jax-"):
                assert added[package, marker] == pins["jax", marker]


def test_pins_of_both_files_agree(repository):
    runtime, dev = (
        {re.sub(r" --hash.*", "", entry) for entry in _entries(repository / name)} for name in PINS
    )
    assert runtime <= dev


def test_pins_cover_every_dependency(repository):
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.match(r"[A-Za-z0-9_.-]+", line).group() for line in project["dependencies"]]
    pinned = {entry.split("==")[0] for entry in _entries(repository / PINS[0])}
    assert {re.sub(r"[-_.]+", "-", name).lower() for name in names} <= pinned


def test_changelog_dates_every_version(repository):
    text = (repository / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert headings[1].startswith(f"[{attention_jax.__version__}] - ")
    for heading in headings[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", heading), heading


def test_dependencies_are_bounded_on_both_sides(repository):
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert set(extras) >= {"cuda", "tpu", "align", "track", "bench", "dev"}
    for line in [*project["dependencies"], *(line for extra in extras.values() for line in extra)]:
        assert re.fullmatch(r"[A-Za-z0-9_.-]+(\[\w+\])?>=[0-9.]+,<[0-9.]+", line), line


def test_configs_import_nothing_but_config_dicts_and_one_another(repository):
    paths = sorted((repository / "configs").glob("*.py"))
    allowed = {"ml_collections", *(f"configs.{path.stem}" for path in paths)}
    found = {
        f"{path.name}: {module}"
        for path in paths
        for module in _imported_modules(path)
        if module not in allowed and module.split(".")[0] not in sys.stdlib_module_names
    }
    assert not found


def test_configs_say_what_they_are(repository):
    for path in sorted((repository / "configs").glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), f"{path.name} has no docstring"


@pytest.mark.parametrize(
    "statement",
    [
        "import attention_jax",
        "from attention_jax.ops.attend import attend",
        "import attention_jax.layers",
        "import pkgutil, importlib, attention_jax.ops as ops; [importlib.import_module("
        "m.name) for m in pkgutil.walk_packages(ops.__path__, ops.__name__ + '.')]",
        "import pkgutil, importlib, attention_jax.layers as layers; [importlib.import_module("
        "m.name) for m in pkgutil.walk_packages(layers.__path__, layers.__name__ + '.')]",
    ],
)
def test_import_leaves_the_trainers_libraries_alone(repository, statement):
    # An import of one of them fails, as it would where only jax and flax are installed.
    code = f"""
import sys
for name in {TRAINER_LIBRARIES!r}:
    sys.modules[name] = None
{statement}
"""
    _run(repository, "-c", code)


def test_importing_the_package_loads_nothing(repository):
    code = "import attention_jax, sys; print(sorted({'jax', 'flax', 'numpy'} & set(sys.modules)))"
    assert _run(repository, "-c", code).strip() == "[]"


def _entries(path) -> list[str]:
    """Returns one line per pin, with its hashes."""
    text = re.sub(r"#.*", "", path.read_text(encoding="utf-8")).replace("\\\n", " ")
    return [re.sub(r"\s+", " ", line).strip() + " " for line in text.splitlines() if line.strip()]


def _versions(path) -> Iterator[tuple[tuple[str, str], str]]:
    """Yields (package, marker), version of every pin; the marker is empty where there is none."""
    for entry in _entries(path):
        package, version, marker = re.match(r"(.*?)==(\S+)(?: ; (.*?))? --hash", entry).groups()
        yield (package, marker or ""), version


def _imported_modules(path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "configs":
            modules |= {f"configs.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
    return modules


def _run(repository, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=repository, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
