"""Aligners beside each other, on a made-up corpus; no time is judged."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from attention_jax.data.alignment.aligners import METHODS
from attention_jax.errors import DataError, UserError
from attention_jax.evaluation.pharaoh import marked_links
from experiments.benchmarks import aligner_worker, aligners
from experiments.benchmarks.speed import report

RATES = ("forward", "reverse", "grow-diag", "grow-diag-final-and")


@pytest.fixture
def corpus():
    words = {"a": "ein", "dog": "Hund", "cat": "Katze", "runs": "rennt", "sits": "sitzt"}
    sources = [["a", noun, verb] for noun in ("dog", "cat") for verb in ("runs", "sits")] * 5
    targets = [[words[word] for word in sentence] for sentence in sources]
    golds = {3: marked_links([(0, 0), (1, 1), (2, 2)]), 0: marked_links([(0, 0)], [(1, 1)])}
    return aligner_worker.GoldCorpus(sources, targets, golds)


@pytest.fixture
def fast_align(tmp_path, monkeypatch):
    """Puts a program on the PATH that links words in order, and fails if it is told so."""

    def install(code=0):
        program = tmp_path / "fast_align"
        program.write_text(
            f"#!{sys.executable}\n"
            "import sys\n"
            "for line in open(sys.argv[sys.argv.index('-i') + 1]):\n"
            "    sides = [side.split() for side in line.split(' ||| ')]\n"
            "    print(*(f'{n}-{n}' for n in range(min(map(len, sides)) - ('-r' in sys.argv))))\n"
            f"sys.exit({code})\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))

    return install


@pytest.mark.parametrize("name", ["hmm", "spelling"])
def test_a_worker_measures_an_aligner(corpus, name):
    found = aligner_worker.measured(corpus, name)
    assert (found["pairs"], found["gold_pairs"]) == (20, 2)
    assert found["forward"] == pytest.approx(100 * (1 - (4 + 5) / (6 + 4)))  # one link too many
    assert found["seconds"] > 0 and found["cpu_seconds"] > 0 and found["peak_mib"] > 10


def test_error_rates_are_of_the_pairs_with_gold_links(corpus):
    right = [[(0, 0), (1, 1), (2, 2)]] * 20
    half = [[(0, 0)] * (number == 3) for number in range(20)]
    found = aligner_worker.error_rates(right, half, corpus.golds)
    assert found.keys() == set(RATES)
    assert found["reverse"] == pytest.approx(100 * (1 - (1 + 1) / (1 + 4)))
    assert found["grow-diag"] == pytest.approx(100 * (1 - (3 + 3) / (3 + 4)))


def test_fast_align_is_called_for_both_directions(corpus, fast_align):
    fast_align()
    forward, reverse = aligner_worker.fast_align(corpus.sources, corpus.targets)
    assert forward == [[(0, 0), (1, 1), (2, 2)]] * 20 and reverse == [[(0, 0), (1, 1)]] * 20
    fast_align(code=3)
    with pytest.raises(UserError, match="fast_align: failed with code 3"):
        aligner_worker.fast_align(corpus.sources, corpus.targets)


def test_a_worker_prints_what_it_has_measured(corpus, monkeypatch, capsys):
    monkeypatch.setattr(aligner_worker, "CORPORA", {"made_up": lambda: corpus})
    aligner_worker.main("made_up", "ibm1")
    assert json.loads(capsys.readouterr().out)["pairs"] == 20
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match="fast_align: expected the program on the PATH"):
        aligner_worker.main("made_up", "fast_align")


def test_data_and_programs_that_are_missing_are_one_line(tmp_path, monkeypatch, corpus):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="fast_align: expected the program on the PATH, found none"):
        aligner_worker.measured(corpus, "fast_align")
    monkeypatch.setenv("ATTENTION_JAX_DATA", str(tmp_path))
    for load in aligner_worker.CORPORA.values():
        with pytest.raises(DataError, match="expected a folder with (hansards_aer|multi30k)/"):
            load()


def test_corpora_are_read(data_root, monkeypatch):
    if not (data_root / "hansards_aer").is_dir() or not (data_root / "multi30k/tok").is_dir():
        pytest.skip(f"needs real data: hansards_aer and multi30k in {data_root}")
    monkeypatch.setenv("ATTENTION_JAX_DATA", str(data_root))
    sizes = {"hansards": (447, 447), "multi30k_1k": (1000, 100), "multi30k_30k": (30_000, 100)}
    for name, (pairs, golds) in sizes.items():
        corpus = aligner_worker.CORPORA[name]()
        assert (len(corpus.sources), len(corpus.golds)) == (pairs, golds)
        assert len(corpus.targets) == pairs
        for number, links in corpus.golds.items():
            for source, target in links.possible:
                assert source < len(corpus.sources[number])
                assert target < len(corpus.targets[number])


def test_rounds_are_joined_and_what_fails_is_skipped_with_its_reason(tmp_path, monkeypatch):
    asked = []

    def run(command, **_):
        corpus, name = command[-2:]
        asked.append((corpus, name))
        if name == "eflomal" or corpus == "multi30k_1k":
            return SimpleNamespace(returncode=2, stdout="", stderr="so\neflomal: found none\n")
        rates = dict.fromkeys(RATES, 5.0 + len(asked))
        costs = {"seconds": 1.0, "cpu_seconds": 2.0, "peak_mib": 60.4}
        line = json.dumps({"pairs": 447, "gold_pairs": 100, **rates, **costs})
        return SimpleNamespace(returncode=0, stdout=f"INFO\n{line}\n", stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(aligners, "commit", lambda: None)
    monkeypatch.setattr(aligners.machine, "hardware", lambda: {"cpu": "abacus", "cores": 2})
    monkeypatch.setattr(aligners, "cli", SimpleNamespace(
        value={"rounds": 3, "out": str(tmp_path / "new")}.get
    ))  # fmt: skip
    aligners.main()
    assert {name for _, name in asked} == {*METHODS, "fast_align"}
    assert asked.count(("hansards", "eflomal")) == 1 and asked.count(("hansards", "hmm")) == 3
    names = sorted(os.listdir(tmp_path / "new"))
    assert names == ["aligners.json", "aligners.md", "aligners.png"]
    results, = json.loads((tmp_path / "new" / "aligners.json").read_text())
    hmm = results["corpora"]["hansards"]["hmm"]
    assert hmm["median"]["forward"] == hmm["rounds"][1]["forward"]
    text = (tmp_path / "new" / "aligners.md").read_text()
    assert "447 pairs, 100 with gold links." in text and "abacus" in text
    assert "Not measured: eflomal (eflomal: found none)." in text
    monkeypatch.setattr(aligners.machine, "hardware", lambda: {"cpu": "slide rule", "cores": 1})
    aligners.main()
    text = (tmp_path / "new" / "aligners.md").read_text()
    assert "abacus" in text and "## On slide rule" in text and text.count("# Hansards") == 2


def test_time_is_compared_with_eflomal():
    values = {"pairs": 1, "gold_pairs": 1, **dict.fromkeys(RATES, 5.0),
              "seconds": 3.0, "cpu_seconds": 2.0, "peak_mib": 60.4}  # fmt: skip
    measured = {"hmm": {"median": values}, "eflomal": {"median": {**values, "cpu_seconds": 8.0}}}
    results = {"corpora": {"hansards": measured}, "rounds": 1, "command": "python", "commit": None,
               "time": "now", "hardware": {"cpu": "abacus", "cores": 2}}  # fmt: skip
    text = aligners.page(results)
    assert "| hmm | 5.00 | 5.00 | 5.00 | 5.00 | 3.0 | 2.0 | 60 | 0.25 |" in text
    assert "| eflomal | 5.00 | 5.00 | 5.00 | 5.00 | 3.0 | 8.0 | 60 | 1.00 |" in text


def test_a_folder_that_cannot_be_written_is_told_before_measuring(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(aligners, "measure", lambda rounds: pytest.fail("measured"))
    monkeypatch.setattr(aligners, "cli", SimpleNamespace(value=lambda name: str(tmp_path / "file")))
    with pytest.raises(UserError, match="cannot be written"):
        aligners.main()


def test_the_committed_page_is_what_its_record_gives(repository):
    page = repository / "docs/results/aligners.md"
    if not page.exists():
        pytest.skip("no measurement of aligners is committed")
    results = report.load_measured(page.with_suffix(".json"))
    assert page.read_text() == report.beside(aligners.page, results)
