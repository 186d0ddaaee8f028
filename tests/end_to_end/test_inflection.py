"""Hard monotonic attention learns to inflect, and users' tables are read, judged and answered."""

import json

import numpy as np
import pytest

RNG = np.random.default_rng(0)
LETTERS = ("bdgklmnprst", "aeiou", "bdgklmnprst", "aeiou", "ktsn")
STEMS = sorted({"".join(RNG.choice([*each]) for each in LETTERS) for _ in range(250)})
ENDS = {"N;PL": "lar", "N;LOC": "da", "N;SG": "", "N;PL;1": "larim"}
SIZES = (
    "--config.model.sources.source.input.embedding_dim=32",
    "--config.model.target_embedding_dim=32",
    "--config.model.sources.source.encoder.hidden_dim=48", "--config.model.decoder.hidden_dim=48",
    "--config.model.decoder.readout_dim=48", "--config.optimizer.learning_rate=8e-3",
    "--config.training.num_epochs=None", "--config.training.num_steps=400",
    "--config.training.evaluate_every_steps=200", "--config.training.checkpoint_every_steps=200",
    "--config.schedule.warmup_steps=20", "--config.data.num_buckets=1",
    "--config.search.method=greedy", "--config.evaluation.splits=('test',)",
    "--config.evaluation.num_heat_maps=2",
)  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("inflections") / "train.tsv"
    rows = [f"{stem}\t{stem}{end}\t{tags}" for stem in STEMS for tags, end in ENDS.items()]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def run(table, launch, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("inflect") / "run"
    result = launch(
        "train", "--config=configs/aharoni2017.py:inflections", f"--workdir={workdir}",
        f"--config.data.train_table={table}", "--config.data.test_examples=60", *SIZES,
    )  # fmt: skip
    assert result.code == 0, result.err
    return workdir, result


def test_the_pointer_learns_to_inflect(run):
    workdir, result = run
    scores = json.loads((workdir / "results.json").read_text())["test"]
    assert scores["exact_match"] > 90.0 and scores["edit_distance"] < 0.3
    assert scores["exact_match_tag_PL_words"] > 0
    assert any(line.split()[:1] == ["PL"] for line in result.out.splitlines())


def test_no_output_has_a_step_and_links_count_letters(run):
    workdir, _ = run
    outputs = (workdir / "predictions.test.txt").read_text().splitlines()
    links = (workdir / "alignments.test.txt").read_text().splitlines()
    table = (workdir / "predictions.test.tsv").read_text()
    assert outputs and "<step>" not in table and not any("step" in line for line in outputs)
    for output, line in zip(outputs, links, strict=True):
        pairs = [tuple(map(int, link.split("-"))) for link in line.split()]
        assert all(target < len(output) for _, target in pairs)
        assert pairs == sorted(pairs, key=lambda pair: pair[1])
        sources = [source for source, _ in pairs]
        assert sources == sorted(sources)  # it never goes back


def test_a_lemma_with_tags_is_answered(run, launch):
    workdir, _ = run
    given = "".join(f"{stem}\tN;LOC\n" for stem in STEMS[:5]).encode()
    found = launch("translate", f"--workdir={workdir}", stdin=given)
    assert found.code == 0, found.err
    right = [f"{stem}da" for stem in STEMS[:5]]
    assert sum(a == b for a, b in zip(found.out.split("\n"), right, strict=False)) >= 4


def test_a_lemma_without_tags_is_one_line(run, launch):
    workdir, _ = run
    given = f"{STEMS[0]}\tN;PL\n{STEMS[1]}\n".encode()
    error = launch("translate", f"--workdir={workdir}", stdin=given).error
    assert error == (
        "input line 2: source: expected 2 columns separated by tabs (lemma, tags), found 1"
    )


def test_tags_that_nothing_reads_are_one_line(table, launch, tmp_path):
    result = launch(
        "train", "--config=configs/luong2015.py:inflections", f"--workdir={tmp_path / 'run'}",
        f"--config.data.train_table={table}", "--config.data.tags=apart",
    )  # fmt: skip
    assert result.code == 2 and "Traceback" not in result.err
    assert result.err.splitlines()[-1] == (
        "error: config.model.sources: expected an input that reads tags, which are apart from the "
        "source here, found one of source, source_mask"
    )


def test_a_pointer_without_steps_is_one_line(table, launch, tmp_path):
    result = launch(
        "train", "--config=configs/aharoni2017.py:inflections", f"--workdir={tmp_path / 'run'}",
        f"--config.data.train_table={table}", "--config.data.oracle_steps=none",
    )  # fmt: skip
    assert result.error == (
        "config.model.attention.name: expected data whose targets have STEPs for 'step_pointer', "
        "such as inflections with config.data.oracle_steps=hmm, found none"
    )
