"""A lexicon in a training: it is learnt with, kept, looked up for new text, and not exchanged."""

import dataclasses
import json

import pytest

from attention_jax.data.lexicon import load_resources
from attention_jax.data.text.storage import load_vocabularies

SIZES = (
    "--config.training.num_steps=160", "--config.training.evaluate_every_steps=160",
    "--config.training.checkpoint_every_steps=160", "--config.evaluation.splits=('test',)",
    "--config.evaluation.num_heat_maps=0", "--config.search.method=greedy",
)  # fmt: skip


@pytest.fixture(scope="module")
def run(launch, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("arthur2016") / "run"
    command = "train", "--config=configs/arthur2016.py:smoke", f"--workdir={workdir}", *SIZES
    result = launch(*command)
    assert result.code == 0, result.err
    return workdir, command


def test_numbers_are_read_out_and_new_text_is_translated(run, launch):
    workdir, _ = run
    scores = json.loads((workdir / "results.json").read_text())["test"]
    assert scores["accuracy"] > 0.9
    answer = launch("translate", f"--workdir={workdir}", stdin=b"42\n")
    assert answer.out == "four two\n"


def test_given_outputs_are_scored_with_the_lexicon(run, launch, tmp_path):
    workdir, _ = run
    (tmp_path / "source").write_text("42\n42\n")
    (tmp_path / "target").write_text("four two\nfour three\n")
    texts = [f"--{name}={tmp_path / name}" for name in ("source", "target")]
    lines = launch("score", f"--workdir={workdir}", *texts).out.splitlines()
    right, wrong = (float(line.split()[0]) for line in lines)
    found = launch("translate", f"--workdir={workdir}", "--nbest=1", stdin=b"42\n").out.strip()
    assert right == pytest.approx(float(found.split(" ||| ")[2].split()[0]), abs=2e-4)
    assert right > wrong


def test_another_lexicon_is_noticed(run, launch):
    workdir, command = run
    vocab = workdir / "vocab"
    lexicon = load_resources(vocab, *load_vocabularies(vocab))["lexicon"]
    dataclasses.replace(lexicon, probs=lexicon.probs / 2).save(vocab)
    result = launch(*command, "--config.training.num_steps=170")
    assert "vocabularies" in result.error and str(workdir) in result.error


def test_a_lexicon_that_nothing_reads_is_refused(launch, tmp_path):
    workdir = f"--workdir={tmp_path / 'run'}"
    copying = "train", "--config=configs/see2017.py:smoke", workdir
    found = launch(*copying, "--config.data.lexicon.method=ibm1").error
    assert found == (
        "config.data.lexicon.method: expected none, for the readout reads no lexicon, found 'ibm1'"
    )
    lexical = "train", "--config=configs/arthur2016.py:smoke", workdir
    found = launch(*lexical, "--config.data.lexicon.method=none").error
    assert found == (
        "config.data.lexicon.method: expected a method, or a file beside it, for the readout "
        "'lexicon_bias', found neither"
    )


def test_a_shortlist_of_the_lexicon_is_searched_in_validation_and_translation(launch, tmp_path):
    """What digits are translated by is all that is needed to read them out."""
    workdir = f"--workdir={tmp_path / 'run'}"
    # One at a time: all ten digits occur in a batch of many.
    quick = (
        "--config.evaluation.splits=('test',)", "--config.evaluation.num_heat_maps=0",
        "--config.data.eval_batch_size=1", "--config.evaluation.num_validation_examples=4",
        "--config.training.evaluate_every_steps=400",
    )  # fmt: skip
    command = "train", "--config=configs/quickstart.py:smoke", workdir, *quick
    lists = "--config.search.shortlist=2", "--config.search.shortlist_frequent=1"
    lexicon = "--config.data.lexicon.method=ibm1", "--config.data.lexicon.size=2"
    assert launch(*command, *lists).error == (
        "config.data.lexicon.method: expected a method, or a file beside it, for "
        "search.shortlist=2, found neither"
    )
    most = launch(*command, *lexicon, "--config.search.shortlist=3").error
    assert most == "config.search.shortlist: expected at most data.lexicon.size, 2, found 3"
    result = launch(*command, *lexicon, *lists)
    assert result.code == 0, result.err
    scores = json.loads((tmp_path / "run" / "results.json").read_text())["test"]
    assert scores["bleu"] > 90
    answers = [
        launch("translate", workdir, "--nbest=1", *flags, stdin=b"42\n").out.split(" ||| ")
        for flags in ((), ("--search.shortlist=0",))
    ]
    assert [answer[1] for answer in answers] == ["four two"] * 2
    # What is left out leaves its probability to the others.
    short, whole = (float(answer[2].split()[0]) for answer in answers)
    assert short > whole
