"""Names of functions and their bodies, as the sub-tokens of identifiers, from Python source files.

A body is the sequence of its tokens, without docstrings and comments. Identifiers are cut where
their parts meet, `parse_HTMLPage` into `parse html page`; strings and numbers are told as such, and
the function's own name as `<self>`, for a recursive call would give it away.
"""

import ast
import os
import re
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

from attention_jax.errors import DataError

OWN_NAME, STRING, NUMBER = "<self>", "<string>", "<number>"
_FEWEST_TOKENS = 3  # a body of fewer, such as `pass`, says nothing
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")
_TOKEN = re.compile(r"<self>|<string>|<number>|[^\W\d]\w*|[-+*/%@&|^=<>!:~]+|\S")
# Folders of the standard library that hold no library: other people's packages, and tests.
_LEFT_OUT = frozenset({"site-packages", "dist-packages", "test", "tests", "idle_test"})


def standard_library() -> Path:
    """Returns the folder of the running interpreter's standard library."""
    return Path(sysconfig.get_paths()["stdlib"])


def read_modules(folder: str | Path) -> dict[str, list[tuple[str, str]]]:
    """Reads the functions of all Python files of a folder and of those below it.

    Args:
      folder: The folder; of the standard library, tests and installed packages are left out.

    Returns:
      For each file, by its path within the folder, the (body, name) of each function, as
      sub-tokens with single spaces between them.

    Raises:
      DataError: If there is no such folder, if it has no function, or if a file is no Python of
        this interpreter.
    """
    folder = Path(folder)
    if not os.path.isdir(folder):
        raise DataError(f"{folder}: expected a folder of Python files, found none")
    found = {}
    for path in sorted(folder.rglob("*.py")):
        within = path.relative_to(folder)
        if not _LEFT_OUT.intersection(within.parts) and (functions := [*functions_of(path)]):
            found[within.as_posix()] = functions
    if not found:
        raise DataError(f"{folder}: expected Python files with functions, found none")
    return found


def functions_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yields the (body, name) of each function of a file but for those with names like `__init__`.

    Raises:
      DataError: If it cannot be read or parsed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in strings, which nobody reads here
            tree = ast.parse(path.read_bytes())
        yield from _functions(_Literals().visit(tree))
    except OSError as error:
        raise DataError(f"{path}: expected a readable file ({error.strerror})") from None
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if getattr(error, "lineno", None) else ""
        reason = getattr(error, "msg", None) or error
        raise DataError(f"{path}{line}: expected Python source, found {reason}") from None
    except (RecursionError, MemoryError):
        raise DataError(f"{path}: expected expressions nested less deeply, found others") from None


def subtokens(identifier: str) -> list[str]:
    """Returns the parts of an identifier in lower case; none of one that is all underscores."""
    return [part.lower() for part in _PART.findall(identifier)]


def _functions(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        name = subtokens(node.name)
        if node.name.startswith("__") or not name:
            continue
        tokens = [*_tokens(node)]
        if len(tokens) >= _FEWEST_TOKENS:
            yield " ".join(tokens), " ".join(name)


def _tokens(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Yields the sub-tokens of a body, without its docstring."""
    first, *rest = function.body
    statements = rest if _is_string(first) else [first, *rest]
    for statement in statements:
        for token in _TOKEN.findall(ast.unparse(statement)):
            if token == function.name:
                yield OWN_NAME
            elif token[0].isalpha() or token[0] == "_":
                yield from subtokens(token) or [token]
            else:
                yield token


def _is_string(statement: ast.stmt) -> bool:
    """Whether a statement is a string alone, as docstrings are."""
    value = getattr(statement, "value", None)
    return isinstance(statement, ast.Expr) and getattr(value, "id", None) == STRING


class _Literals(ast.NodeTransformer):
    """Puts names for kinds in the place of literals, so that they are tokens of their own."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:  # noqa: N802  (called by its name)
        if isinstance(node.value, str | bytes):
            return ast.copy_location(ast.Name(STRING, ast.Load()), node)
        if isinstance(node.value, int | float | complex) and not isinstance(node.value, bool):
            return ast.copy_location(ast.Name(NUMBER, ast.Load()), node)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:  # noqa: N802
        return ast.copy_location(ast.Name(STRING, ast.Load()), node)
