"""The Dockerfile read line by line, since there may be no Docker to build it."""

import re
import tomllib

import pytest

INSTRUCTIONS = {
    "ARG", "FROM", "WORKDIR", "ENV", "COPY", "RUN", "USER", "VOLUME", "ENTRYPOINT", "CMD",
}  # fmt: skip


@pytest.fixture(scope="module")
def text(repository):
    return (repository / "launch/docker/Dockerfile").read_text()


@pytest.fixture(scope="module")
def lines(text):
    """Pairs of instruction and arguments, continued lines joined and comments left out."""
    kept = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    joined = re.sub(r"\\\n\s*", "", kept)
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines() if line]


def test_instructions_are_known_and_in_order(lines):
    names = [name for name, _ in lines]
    assert set(names) <= INSTRUCTIONS
    assert set(names[: names.index("FROM")]) <= {"ARG"} and names.count("FROM") == 1
    assert names.count("ENTRYPOINT") == names.count("CMD") == 1
    assert names.index("USER") > max(i for i, name in enumerate(names) if name == "RUN")


def test_everything_copied_is_there_and_let_through(lines, repository):
    ignored = (repository / "launch/docker/Dockerfile.dockerignore").read_text().split()
    assert ignored[0] == "*"
    sources = [
        word for name, arguments in lines if name == "COPY" for word in arguments.split()[:-1]
    ]
    assert {"requirements.txt", "attention_jax", "configs", "experiments", "launch"} <= set(sources)
    for source in sources:
        assert (repository / source).exists(), source
        assert f"!{source}" in ignored, source


def test_accelerators_are_extras_of_jax_that_the_project_names(text, repository):
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    (chosen,) = re.findall(r"^ +((?:\w+ \| )+\w+)\) ;;", text, re.MULTILINE)
    assert chosen.split(" | ") == ["cuda", "cuda12", "tpu"]
    for accelerator in chosen.split(" | "):
        assert extras[accelerator][0].startswith("jax[")
        assert (repository / f"requirements-{accelerator}.txt").is_file()
    python = re.search(r"^ARG BASE=python:(\d+\.\d+)-", text, re.MULTILINE)[1]
    assert f"Programming Language :: Python :: {python}" in project["classifiers"]


def test_installs_are_pinned_and_name_no_host(text, lines):
    assert not re.search(r"https?://|--index-url|--extra-index-url|--trusted-host", text)
    installs = [words for name, words in lines if name == "RUN" and "pip install" in words]
    assert len(installs) == 2
    for install in installs:
        (command,) = re.findall(r"pip install (.*)", install)
        words = command.split()
        assert words.pop(0) == "--require-hashes"
        assert set(words[::2]) == {"--requirement"} and "requirements.txt" in words


def test_the_process_gets_its_signals_and_is_not_root(lines):
    by_name = dict(lines)
    assert by_name["ENTRYPOINT"] == '["python", "-m", "launch.train"]'  # no shell in between
    assert by_name["USER"] not in ("root", "0")
