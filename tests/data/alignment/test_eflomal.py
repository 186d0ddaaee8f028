"""eflomal by a stand-in: what it is given, what is made of its answer, what its failures say."""

import subprocess
import sys
import types

import pytest

from attention_jax.data.alignment import eflomal
from attention_jax.errors import UserError


@pytest.fixture
def stand_in(monkeypatch):
    """Installs a package `eflomal` that writes the given text, or raises the given error."""

    def install(answer):
        given = {}

        class Aligner:
            def align(self, source, target, links_filename_fwd):
                given.update(source=list(source), target=list(target))
                if isinstance(answer, Exception):
                    raise answer
                with open(links_filename_fwd, "w") as file:
                    file.write(answer)

        module = types.ModuleType("eflomal")
        module.Aligner = Aligner
        monkeypatch.setitem(sys.modules, "eflomal", module)
        return given

    return install


def test_links_come_back_to_their_pairs(stand_in):
    given = stand_in("0-0 2-1\n\n")
    links = eflomal.align([["a", "b", "c"], [], ["d"]], [["x", "y"], ["z"], ["w"]])
    assert links == [[(0, 0), (2, 1)], [], []]
    assert given == {"source": ["a b c\n", "d\n"], "target": ["x y\n", "w\n"]}


def test_nothing_to_align(stand_in):
    given = stand_in("")
    assert eflomal.align([[]], [["x"]]) == [[]] and not given


def test_a_missing_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "eflomal", None)
    with pytest.raises(UserError, match="pip install eflomal"):
        eflomal.align([["a"]], [["x"]])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (subprocess.CalledProcessError(3, "eflomal"), "eflomal: failed .*exit status 3"),
        (OSError("disk\nfull"), r"eflomal: failed \(disk full\)"),
        ("0-0\n0-0\n", "eflomal: expected 1 lines of links, found 2"),
        ("0-0 x\n", "eflomal: expected links such as 0-1, found '0-0 x'"),
    ],
)
def test_failures_are_one_line(stand_in, answer, words):
    stand_in(answer)
    with pytest.raises(UserError, match=words):
        eflomal.align([["a"]], [["x"]])


def test_eflomal_itself_learns_what_words_mean(toy):
    pytest.importorskip("eflomal", reason="needs eflomal, of the extra `align`")
    sources, targets = zip(*toy * 20, strict=True)
    links = eflomal.align(sources, targets)
    assert all(each == [(0, 0), (1, 1)] for each in links)
