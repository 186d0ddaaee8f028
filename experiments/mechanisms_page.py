"""The catalogue of parts: writes the tables of docs/mechanisms.md from the files they list."""

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from attention_jax import layers, objectives
from attention_jax.commands import cli
from attention_jax.errors import UserError
from attention_jax.sweeps.tables import NOTHING, table
from experiments.kit.sections import write_sections

USAGE = """
Writes the tables of docs/mechanisms.md: every part of a model that a config chooses by its name,
and every objective, with its paper and its fields as its file has them.

usage: python -m experiments.mechanisms_page
"""
PAGE = Path("docs/mechanisms.md")
SECTION = "parts"
# The order of the page; other kinds of parts follow in alphabetical order.
FIRST = ("mechanisms", "refinements", "inputs", "encoders", "decoders")
HEADINGS = ("name", "what it is", "paper", "fields", "used by")
# Config groups that are not named after the folder from which they choose a part.
_GROUPS = {"attention": "mechanisms", "score": "mechanisms"}
_MOST_USERS = 3


def main() -> None:
    """Writes the tables."""
    write_sections(PAGE, {SECTION: parts_section()})
    print(f"Written: {PAGE}")


def parts_section() -> str:
    """Makes a table for each kind of part; the parts are discovered as files."""
    users = config_users()
    lines: list[str] = []
    for package in [*part_packages(), objectives]:
        kind = package.__name__.rpartition(".")[2]
        modules = part_modules(package)
        rows = [row(name, part, users.get((kind, name), [])) for name, part in modules.items()]
        lines += [f"## {kind.capitalize()}", "", table(HEADINGS, rows).replace("---:", "---"), ""]
    return "\n".join(["", *lines])


def part_packages() -> list[ModuleType]:
    """Lists the folders of `layers`, each of which has a file for each part of one kind."""
    folders = [found.name for found in pkgutil.iter_modules(layers.__path__) if found.ispkg]
    names = [name for name in folders if part_modules(_folder(name))]
    names.sort(key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
    return [_folder(name) for name in names]


def _folder(name: str) -> ModuleType:
    return importlib.import_module(f"{layers.__name__}.{name}")


def part_modules(package: ModuleType) -> dict[str, ModuleType]:
    """Finds the modules of a folder that declare a config, by their names."""
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    modules = {name: importlib.import_module(f"{package.__name__}.{name}") for name in names}
    return {name: module for name, module in modules.items() if config_of(module)}


def config_of(module: ModuleType) -> type | None:
    """Finds the config class of a file: `Config`, or the `Term` of an objective."""
    declared = [getattr(module, name, None) for name in ("Config", "Term")]
    for config in filter(dataclasses.is_dataclass, declared):
        # Not one that the file merely imports.
        if config.__module__ == module.__name__:
            return config
    return None


def row(name: str, module: ModuleType, users: Sequence[str]) -> list[str]:
    """Returns the row of a part.

    Args:
      name: Its name in configs.
      module: Its file.
      users: The config files that start with it.

    Raises:
      UserError: If the file names no paper.
    """
    path = "/".join(module.__name__.split(".")) + ".py"
    if not hasattr(module, "PAPER"):
        raise UserError(f"{path}: expected PAPER, the paper that it is from, found none")
    shown = [f"[{user}](../configs/{user}.py)" for user in users[:_MOST_USERS]]
    others = len(users) - len(shown)
    used = ", ".join([*shown, *([f"{others} more"] if others else [])])
    term = (module.__doc__ or "").strip().partition("\n")[0].removesuffix(".")
    cells = [f"[`{name}`](../{path})", term, module.PAPER,
             ", ".join(_fields(config_of(module))), used]  # fmt: skip
    return [cell.replace("|", r"\|") or NOTHING for cell in cells]


def config_users() -> dict[tuple[str, str], list[str]]:
    """Finds the config files that use a part by default, by (kind, name)."""
    users: dict[tuple[str, str], list[str]] = {}
    for path in sorted(Path("configs").glob("*.py")):
        # `configs/common.py` and `__init__.py` are no configs.
        if "def get_config" not in path.read_text(encoding="utf-8"):
            continue
        for part in set(_chosen(cli.load_config(str(path)).to_dict())):
            users.setdefault(part, []).append(path.stem)
    return users


def _chosen(group: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields (kind, name) of the parts that a config chooses: by `name`, or by their presence."""
    for key, value in group.items():
        if not isinstance(value, Mapping):
            continue
        if "name" in value:
            yield _GROUPS.get(key, f"{key}s"), value["name"]
        # A plural group, such as `objectives`, has a member for each part.
        elif key == key.removesuffix("s") + "s":
            yield from ((key, name) for name in value)
        yield from _chosen(value)


def _fields(config: type) -> Iterator[str]:
    """Yields the fields of a config with their defaults, but for its name."""
    for field in dataclasses.fields(config):
        if not field.init or field.name == "name":
            continue
        default = field.default
        if default is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if default is dataclasses.MISSING or dataclasses.is_dataclass(default):
            default = getattr(default, "name", None)  # a part chosen by name, or a group of fields
            yield f"`{field.name}={default}`" if default else f"`{field.name}`"
        else:
            yield f"`{field.name}={default}`"


if __name__ == "__main__":
    cli.run(main, USAGE)
