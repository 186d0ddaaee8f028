"""Functions of Python files: what is kept of their bodies, how names are cut, and bad files."""

import ast

import pytest

from attention_jax.data.loading import build_task
from attention_jax.data.method_names import functions_of, read_modules, standard_library, subtokens
from attention_jax.data.tasks.method_naming import Config
from attention_jax.errors import DataError
from attention_jax.types import SpecialIds

SOURCE = '''
class Page:
    def __init__(self): self.url, self.parts = None, []

    async def parseHTMLPage(self, count=3):
        """Not seen."""
        text = f"{count} pages"  # nor this
        if count > 1.5e3:
            return await self.parseHTMLPage(count - 1)
        def inner_sum(): return count + len('a"b')
        return inner_sum()

    def nothing(self):
        "Only this."
    def __(self): return 1 + 1
'''
PARSE = (
    "text = <string> if count > <number> : return await self . <self> ( count - <number> ) "
    "def inner sum ( ) : return count + len ( <string> ) return inner sum ( )"
)


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("parseHTMLPage", "parse html page"), ("read_all2", "read all 2"), ("__x__", "x"),
        ("_", ""),
        ("HTTP2Server", "http 2 server"), ("ID", "id"), ("größeÄndern", "gr öß e ä ndern"),
    ],
)  # fmt: skip
def test_identifiers_are_cut_where_their_parts_meet(identifier, parts):
    assert subtokens(identifier) == parts.split()


def test_bodies_are_tokens_without_what_gives_names_away(tmp_path):
    (tmp_path / "page.py").write_text(SOURCE)
    found = dict((name, body) for body, name in functions_of(tmp_path / "page.py"))
    assert found == {"parse html page": PARSE, "inner sum": "return count + len ( <string> )"}


def test_modules_are_read_by_their_paths_but_for_tests(tmp_path):
    for place in ("b.py", "a/c.py", "a/tests/d.py", "empty.py"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        text = "" if place == "empty.py" else "def add_one(x): return x + 1\n"
        (tmp_path / place).write_text(text)
    assert read_modules(tmp_path) == {
        place: [("return x + <number>", "add one")] for place in ("a/c.py", "b.py")
    }


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"def f(:\n", r"bad\.py:1: expected Python source, found"),
        (b"def f():\n return " + b"+".join([b"1"] * 20_000), r"bad\.py: expected .*less deeply"),
        (b"def f():\n return " + b"(" * 9000, r"bad\.py.*: expected "),
        (b"x = 1\n\xff\n", r"bad\.py.*: expected Python source, found"),
        (b"x = 1\n", "expected Python files with functions, found none"),
    ],
)
def test_bad_files_are_one_line(tmp_path, content, words):
    (tmp_path / "bad.py").write_bytes(content)
    with pytest.raises(DataError, match=words) as error:
        read_modules(tmp_path)
    assert "\n" not in str(error.value)
    with pytest.raises(DataError, match="nowhere: expected a folder of Python files, found none"):
        read_modules(tmp_path / "nowhere")


def test_modules_are_split_whole_and_rare_subtokens_are_unknown(tmp_path):
    for number in range(60):
        lines = [f"def get_{kind}{number}(x): return x.{kind} + {number}" for kind in "abc"]
        (tmp_path / f"module{number}.py").write_text("\n".join(lines) + "\n")
    config = Config(folder=str(tmp_path), vocabulary_size=9)
    task = build_task(config, tmp_path / "vocab")
    names = {name: {target.split()[-1] for target in split.targets}
             for name, split in task.splits.items()}  # fmt: skip
    assert all(names.values()) and not names["train"] & (names["validation"] | names["test"])
    assert task.target_vocabulary.size == 9
    assert any(SpecialIds.UNK in ids for ids in task.split("train").target_ids)
    (tmp_path / "few").mkdir()
    (tmp_path / "few" / "one.py").write_text("def f(x): return x + 1\n")
    with pytest.raises(DataError, match="few: expected enough modules .*, found none"):
        Config(folder=str(tmp_path / "few")).load()


def test_the_standard_library_is_there():
    path = standard_library() / "textwrap.py"
    names = {name for _, name in functions_of(path)}
    wanted = {node.name for node in ast.walk(ast.parse(path.read_bytes()))
              if isinstance(node, ast.FunctionDef) and not node.name.startswith("__")}  # fmt: skip
    assert "dedent" in names and len(names) <= len(wanted)
