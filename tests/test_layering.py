"""Imports go down only: the layers of the package, held by reading every file's imports.

Nor do folders side by side import one another, in both directions or in a longer round.

`problems` looks at a tree of source files and returns one line for each broken rule; the first
test runs it on this repository, the others on small trees that break one rule each.
"""

import ast
import collections
import graphlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

LAYERS = {
    "attention_jax": 0,
    "attention_jax.types": 0,
    "attention_jax.array_files": 0,
    "attention_jax.errors": 0,
    "attention_jax.files": 0,
    "attention_jax.host": 0,
    "attention_jax.json_files": 0,
    "attention_jax.locks": 0,
    "attention_jax.paths": 0,
    "attention_jax.config_choices": 0,
    "attention_jax.config_values": 0,
    "attention_jax.config_walk": 0,
    "attention_jax.configuration": 0,
    "attention_jax.discovery": 0,
    "attention_jax.python_arguments": 0,
    "attention_jax.quiet": 0,
    "attention_jax.spaced_words": 0,
    "attention_jax.ops": 1,
    "attention_jax.layers": 2,
    "attention_jax.models": 3,
    "attention_jax.objectives": 3,
    "attention_jax.search": 3,
    "attention_jax.evaluation": 3,
    "attention_jax.data": 3,
    "attention_jax.data.tasks": 4,
    "attention_jax.updates": 4,
    "attention_jax.devices": 5,
    "attention_jax.runs": 5,
    "attention_jax.decoding": 5,
    "attention_jax.training": 6,
    "attention_jax.plotting": 6,
    "attention_jax.analysis": 6,
    "attention_jax.experiment": 7,
    "attention_jax.sweeps": 7,
    "attention_jax.commands": 8,
    "attention_jax.api": 8,
    "configs": 9,
    "experiments": 9,
    "launch": 9,
}
INDEPENDENT = 3  # packages of this layer do not import one another
MAY_USE_FLAX = ("attention_jax.layers", "attention_jax.models")
PURE = "attention_jax.ops"
PURE_LIBRARIES = {"jax", "jaxtyping", "numpy"}
OF_ANY_PYTHON = "attention_jax.host"  # its programs start others, outside of their environment
IMPURE_MODULES = {"io", "os", "pathlib", "shutil", "socket", "subprocess", "tempfile", "urllib"}

OF_PARTS = {"Builder", "Config", "Term"}  # what every file of a part calls them

FILE_LINES = 500
MAIN_LINES = 70
OF_MAINS = ("attention_jax.commands", "launch")
FUNCTION_LINES = 80


def test_repository_keeps_its_layers(repository):
    found = problems(repository)
    assert not found, "\n".join(found)


def test_repository_is_read(repository):
    modules = dict(read_modules(repository))
    assert "attention_jax.types" in modules
    assert "attention_jax.ops.attend" in modules


def test_a_training_imports_nothing_of_what_is_done_with_a_trained_run(repository):
    """But in functions, which are called when it is over."""
    modules = dict(read_modules(repository))
    seen, waiting = set(), ["attention_jax.commands.train", "attention_jax.experiment"]
    while waiting:
        name = waiting.pop()
        if name not in seen and name in modules:
            seen.add(name)
            waiting += _imports(name, modules[name][0], modules, walk=_at_import)
    assert "attention_jax.training.loop" in seen
    above = {"attention_jax.analysis", "attention_jax.plotting"}
    assert not above & {_package(name) for name in seen}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {
                "attention_jax/ops/a.py": "class Step:\n    pass",
                "experiments/b.py": "class Step:\n    pass\n\n\nclass Config:\n    pass",
                "experiments/c.py": "class Config:\n    pass",
            },
            "attention_jax.ops.a: class Step is also in experiments.b",
        ),
        (
            {"attention_jax/ops/a.py": "from attention_jax.layers import b"},
            "attention_jax.ops.a: imports attention_jax.layers, which is above it",
        ),
        (
            {"attention_jax/models/a.py": "def f():\n    import attention_jax.training.loop"},
            "attention_jax.models.a: imports attention_jax.training.loop, which is above it",
        ),
        (
            {
                "attention_jax/data/a.py": "from attention_jax import plotting",
                "attention_jax/plotting/b.py": "",
            },
            "attention_jax.data.a: imports attention_jax.plotting, which is above it",
        ),
        (
            {"attention_jax/search/a.py": "from ..data.text import load_vocabulary"},
            "attention_jax.search.a: imports attention_jax.data.text, a neighbour of its layer",
        ),
        (
            {
                "attention_jax/ops/a.py": "from attention_jax.ops import b",
                "attention_jax/ops/b.py": "from attention_jax.ops.a import f",
            },
            "attention_jax.ops.a -> attention_jax.ops.b -> attention_jax.ops.a: a cycle",
        ),
        (
            {"attention_jax/sweeps/a.py": "from attention_jax.commands import b"},
            "attention_jax.sweeps.a: imports attention_jax.commands, which is above it",
        ),
        (
            {
                "experiments/one/a.py": "from experiments.other import b",
                "experiments/one/c.py": "",
                "experiments/other/b.py": "",
                "experiments/other/inner/d.py": "import experiments.one.c",
            },
            "experiments.one -> experiments.other -> experiments.one: folders in a cycle",
        ),
        (
            {"attention_jax/host/a.py": "import numpy"},
            "attention_jax.host.a: imports numpy, but attention_jax.host is for any Python",
        ),
        (
            {"attention_jax/ops/a.py": "import flax.linen as nn"},
            "attention_jax.ops.a: imports flax, allowed in attention_jax.layers, "
            "attention_jax.models only",
        ),
        (
            {"attention_jax/training/a.py": "from flax import traverse_util"},
            "attention_jax.training.a: imports flax, allowed in attention_jax.layers, "
            "attention_jax.models only",
        ),
        (
            {"attention_jax/ops/a.py": "import optax"},
            "attention_jax.ops.a: imports optax, but attention_jax.ops is pure",
        ),
        (
            {"attention_jax/ops/a.py": "from pathlib import Path"},
            "attention_jax.ops.a: imports pathlib, but attention_jax.ops is pure",
        ),
        (
            {"attention_jax/extras/a.py": ""},
            "attention_jax.extras.a: has no layer; give it one in tests/test_layering.py",
        ),
        (
            {"attention_jax/ops/a.py": "import tests.helpers"},
            "attention_jax.ops.a: imports tests.helpers, which has no layer",
        ),
        (
            {"attention_jax/ops/a.py": "x = 1\n" * 501},
            "attention_jax.ops.a: 501 lines, at most 500 allowed",
        ),
        (
            {"attention_jax/ops/a.py": "def f():\n" + "    x = 1\n" * 80},
            "attention_jax.ops.a.f: 81 lines, at most 80 allowed",
        ),
        (
            {"launch/a.py": "def main():\n    pass\n" + "x = 1\n" * 69},
            "launch.a: 71 lines, at most 70 allowed in a file with a main",
        ),
        (
            {"attention_jax/commands/a.py": "def main():\n    pass\n" + "x = 1\n" * 69},
            "attention_jax.commands.a: 71 lines, at most 70 allowed in a file with a main",
        ),
        (
            {"attention_jax/commands/a.py": "from configs import b", "configs/b.py": ""},
            "attention_jax.commands.a: imports configs.b, which is above it",
        ),
    ],
)
def test_problems_finds_each_broken_rule(tmp_path, files, expected):
    _write(tmp_path, files)
    assert expected in problems(tmp_path)


def test_problems_accepts_what_is_allowed(tmp_path):
    _write(
        tmp_path,
        {
            "attention_jax/types.py": "import jax",
            "attention_jax/ops/scores.py": "import math\nfrom attention_jax.types import Memory",
            "attention_jax/ops/attend.py": "from attention_jax.ops import scores",
            "attention_jax/layers/a.py": "import flax\nfrom attention_jax.ops.attend import attend",
            "attention_jax/search/beam.py": "from attention_jax.search import greedy",
            "attention_jax/search/greedy.py": "",
            "attention_jax/training/loop.py": "import attention_jax.search.beam",
            "attention_jax/commands/train.py": "from attention_jax.training import loop",
            "launch/train.py": "from attention_jax.commands.train import run",
        },
    )
    assert problems(tmp_path) == []


def problems(root: Path) -> list[str]:
    """Returns one line for every broken rule in the source tree under `root`."""
    modules = dict(read_modules(root))
    imports = {name: set(_imports(name, tree, modules)) for name, (tree, _) in modules.items()}
    found = []
    for name, (tree, source) in modules.items():
        found += _import_problems(name, imports[name])
        found += _size_problems(name, tree, source)
    found += _name_problems(modules)
    for graph, what in ((imports, "a cycle"), (_between_folders(imports), "folders in a cycle")):
        try:
            graphlib.TopologicalSorter(graph).prepare()
        except graphlib.CycleError as error:
            found.append(f"{' -> '.join(_from_smallest(error.args[1]))}: {what}")
    return sorted(found)


def read_modules(root: Path) -> Iterator[tuple[str, tuple[ast.Module, str]]]:
    """Yields the dotted name of every module under `root`, with its syntax tree and its text."""
    for package in sorted({name.split(".")[0] for name in LAYERS}):
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            source = path.read_text(encoding="utf-8")
            yield name, (ast.parse(source, str(path)), source)


def _at_import(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yields the statements that run when a module is imported."""
    yield from tree.body


def _imports(name: str, tree: ast.Module, modules: dict, walk=ast.walk) -> Iterator[str]:
    packages = {".".join(other.split(".")[:-1]) for other in modules}
    for node in walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = name.split(".")[: None if name in packages else -1]
                above = above[: len(above) - node.level + 1]
                base = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in modules or inner in packages else base


def _between_folders(imports: dict[str, set[str]]) -> dict[str, set[str]]:
    """Returns which folder imports which that stands beside it, in files of any depth below."""
    folders = {name.rpartition(".")[0] for name in imports}
    graph = collections.defaultdict(set)
    for name, targets in imports.items():
        for target in targets & (imports.keys() | folders):
            of_both = [
                (each if each in folders else each.rpartition(".")[0]).split(".")
                for each in (name, target)
            ]
            shared = len(os.path.commonprefix(of_both))
            if shared < min(map(len, of_both)):  # neither is inside of the other
                importing, imported = (".".join(parts[: shared + 1]) for parts in of_both)
                graph[importing].add(imported)
    return graph


def _import_problems(name: str, imported: set[str]) -> Iterator[str]:
    own = _package(name)
    if own is None:
        yield f"{name}: has no layer; give it one in tests/test_layering.py"
        return
    for target in sorted(imported):
        top = target.split(".")[0]
        other = _package(target)
        if other is None:
            if top in ("attention_jax", "tests"):
                yield f"{name}: imports {target}, which has no layer"
        elif LAYERS[other] > LAYERS[own]:
            yield f"{name}: imports {target}, which is above it"
        elif LAYERS[other] == LAYERS[own] == INDEPENDENT and other != own:
            yield f"{name}: imports {target}, a neighbour of its layer"
        if top == "flax" and own not in MAY_USE_FLAX:
            yield f"{name}: imports flax, allowed in {', '.join(MAY_USE_FLAX)} only"
        pure = top in PURE_LIBRARIES or top in sys.stdlib_module_names - IMPURE_MODULES
        if own == PURE and other is None and not pure:
            yield f"{name}: imports {top}, but {PURE} is pure"
        if own == OF_ANY_PYTHON and other != own and top not in sys.stdlib_module_names:
            yield f"{name}: imports {top}, but {OF_ANY_PYTHON} is for any Python"


def _size_problems(name: str, tree: ast.Module, source: str) -> Iterator[str]:
    lines = len(source.splitlines())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    if lines > FILE_LINES:
        yield f"{name}: {lines} lines, at most {FILE_LINES} allowed"
    is_main = any(function.name == "main" for function in functions)
    if _package(name) in OF_MAINS and is_main and lines > MAIN_LINES:
        yield f"{name}: {lines} lines, at most {MAIN_LINES} allowed in a file with a main"
    for function in functions:
        length = function.end_lineno - function.lineno + 1
        if length > FUNCTION_LINES:
            yield f"{name}.{function.name}: {length} lines, at most {FUNCTION_LINES} allowed"


def _name_problems(modules: dict) -> Iterator[str]:
    """Public classes have names of their own, by which a reader finds them."""
    places = collections.defaultdict(list)
    for name, (tree, _) in modules.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    for of, (first, *others) in places.items():
        if others and of not in OF_PARTS:
            yield f"{first}: class {of} is also in {', '.join(others)}"


def _package(name: str) -> str | None:
    """Returns the longest prefix of `name` that has a layer, the bare root only for itself."""
    parts = name.split(".")
    prefixes = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    known = [prefix for prefix in prefixes if prefix in LAYERS]
    if not known or (known[0] == "attention_jax" and len(parts) > 1):
        return None
    return known[0]


def _from_smallest(cycle: list[str]) -> list[str]:
    """Turns a closed walk so that it starts at its smallest name, in the order of importing."""
    ring = cycle[:0:-1]
    start = ring.index(min(ring))
    return [*ring[start:], *ring[:start], ring[start]]


def _write(root: Path, files: dict[str, str]) -> None:
    for name, source in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
