"""The pages for readers: the README is short, links lead somewhere, and every page is found."""

import re
import string
from collections.abc import Collection
from pathlib import Path

import pytest

SHORT = 8 * 1024
# What a reader of the field searches the pages for.
TERMS = (
    "teacher forcing",
    "KV cache",
    "cross-attention",
    "causal mask",
    "gradient accumulation",
    "mixed precision",
    "early stopping",
)
# Names that are made of two, of other programs, or of the reader's.
NOT_IN_SOURCES = {
    "alignment.md: aer_integrated_gradients", "alignment.md: match_value_norms",
    "python.md: lines_in_french",
    "launching.md: my_config", "configuration.md: my_config",
}  # fmt: skip
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_PROGRAM = re.compile(
    r"python -m ((?:attention_jax|experiments|launch)(?:\.[a-z]\w*)+)(?!\.?[\w<])"
)
_SOURCE_FILE = re.compile(r"`([\w./-]+\.(?:py|sh))`(:\n\n```)?")
_FENCE = re.compile(r"^(```|~~~).*?^\1$", re.DOTALL | re.MULTILINE)


def pages(repository: Path) -> list[Path]:
    """The pages of the project, generated ones included."""
    return [
        *sorted(repository.glob("*.md")),
        *sorted((repository / "docs").rglob("*.md")),
        *sorted((repository / "attention_jax").rglob("*.md")),
    ]


def links(page: Path) -> list[tuple[Path, str]]:
    """The files and anchors of this project that a page links to."""
    found = []
    for target in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            found.append(((page.parent / path).resolve() if path else page, anchor))
    return found


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them; `-1` counts headings alike."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    dropped = str.maketrans("", "", string.punctuation.replace("-", "").replace("_", "") + "…")
    names: list[str] = []
    for heading in re.findall(r"^#+ (.*?)\s*$", text, re.MULTILINE):
        name = heading.lower().translate(dropped).replace(" ", "-")
        count = sum(re.fullmatch(rf"{re.escape(name)}(-\d+)?", other) is not None
                    for other in names)  # fmt: skip
        names.append(f"{name}-{count}" if count else name)
    return set(names)


def missing_programs(text: str, repository: Path) -> list[str]:
    """The programs of this project that a text runs and that are not there."""
    found = _PROGRAM.findall(text)
    return [name for name in found if not (repository / f"{name.replace('.', '/')}.py").exists()]


def missing_files(text: str, files: Collection[str]) -> list[str]:
    """The source files that a text names, in whole or by the end of their paths, in vain.

    Files whose contents the text gives are the reader's to write, as `NAME.py` is.
    """
    named = _SOURCE_FILE.findall(text)
    given = {name for name, contents in named if contents}
    return [
        name
        for name, _ in named
        if name not in given
        and "NAME" not in name
        and not any(f"/{file}".endswith(f"/{name}") for file in files)
    ]


def written_by_hand(repository: Path) -> list[Path]:
    """The pages that speak of the present; records and the changelog speak of the past."""
    results = repository / "docs" / "results"
    past = repository / "CHANGELOG.md"
    return [page for page in pages(repository) if results not in page.parents and page != past]


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    return [
        f"{page.name}: {path}#{anchor}"
        for path, anchor in links(page)
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path))
    ]


def unmarked(text: str) -> list[str]:
    """The blocks of code that do not say their language, by their first lines."""
    blocks = [block.group().split("\n") for block in _FENCE.finditer(text)]
    return [first for fence, first, *_ in blocks if not fence.strip("`~")]


def test_blocks_of_code_say_their_language(repository):
    assert unmarked("```sh\nls\n```\n\n```\nmade\n```\n") == ["made"]
    texts = {page.name: page.read_text(encoding="utf-8") for page in pages(repository)}
    assert not {name: found for name, text in texts.items() if (found := unmarked(text))}


def test_readme_is_short(repository):
    assert len((repository / "README.md").read_bytes()) <= SHORT


def test_links_lead_somewhere(repository):
    assert not [link for page in pages(repository) for link in broken(page)]


@pytest.mark.parametrize("target", ["missing.md", "there.md#missing", "#missing"])
def test_a_broken_link_is_found(tmp_path, target):
    (tmp_path / "there.md").write_text("# Here I am\n")
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n[a](there.md#here-i-am) [b](#page) [c]({target})")
    assert len(broken(page)) == 1


def test_programs_are_there(repository):
    texts = {page.name: page.read_text(encoding="utf-8") for page in written_by_hand(repository)}
    assert any(_PROGRAM.search(text) for text in texts.values())
    assert not {name: found for name, text in texts.items()
                if (found := missing_programs(text, repository))}  # fmt: skip


def test_source_files_are_there(repository):
    files = [
        path.relative_to(repository).as_posix()
        for folder in ("attention_jax", "configs", "experiments", "launch", "tests")
        for path in (repository / folder).rglob("*.*")
    ]
    texts = {page.name: page.read_text(encoding="utf-8") for page in written_by_hand(repository)}
    assert not {
        name: found for name, text in texts.items() if (found := missing_files(text, files))
    }


def test_names_in_code_are_those_of_the_sources(repository):
    """Options, fields, metrics and functions, by their words: what has an underscore is a name."""
    sources = [
        path
        for folder in ("attention_jax", "configs", "experiments", "launch", "tests")
        for path in (repository / folder).rglob("*")
        if path.suffix in (".py", ".sh", ".sbatch", ".js")
    ]
    known = {path.stem for path in sources}
    for path in sources:
        known |= set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    missing = {
        f"{page.name}: {name}"
        for page in written_by_hand(repository)
        for code in re.findall(r"`([^`]+)`", _FENCE.sub("", page.read_text(encoding="utf-8")))
        for name in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", code)
        if name not in known
    }
    assert not missing - NOT_IN_SOURCES


def test_experiments_of_the_table_are_there(repository):
    text = (repository / "docs" / "results.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    names = [name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)]
    assert len(names) > 10
    assert not missing_programs(" ".join(f"python -m experiments.{n}" for n in names), repository)


def test_what_is_not_there_is_found(tmp_path):
    (tmp_path / "launch").mkdir()
    (tmp_path / "launch" / "train.py").touch()
    text = "python -m launch.train, python -m launch.trian. `python -m launch.NAME`"
    assert missing_programs(text, tmp_path) == ["launch.trian"]
    text = "`ops/scores.py`, `search/scores.py`, `ops/NAME.py`; `mine.py`:\n\n```python\n```"
    assert missing_files(text, ["attention_jax/ops/scores.py"]) == ["search/scores.py"]


def test_every_page_is_reached_from_the_readme(repository):
    reached, waiting = set(), [repository / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md" and page.exists():
            reached.add(page)
            waiting += [path for path, _ in links(page)]
    documents = set((repository / "docs").glob("*.md")) | set(
        (repository / "docs" / "results").rglob("*.md")
    )
    # What stands beside a page's records, such as its reading, is part of the page.
    parts = {path for path in documents if path.parent.name != "docs" and path.stem == "reading"}
    assert not sorted(str(path) for path in documents - parts - reached)


@pytest.mark.parametrize("term", TERMS)
def test_the_words_of_the_field_are_found(repository, term):
    texts = [(repository / "README.md"), *(repository / "docs").glob("*.md")]
    assert any(term.lower() in path.read_text(encoding="utf-8").lower() for path in texts)
