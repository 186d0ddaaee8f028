"""Hierarchical attention learns made-up reviews; a user's own are read, labelled and refused."""

import json
import re

import pytest


@pytest.fixture(scope="module")
def run(launch, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("documents") / "run"
    result = launch(
        "train", "--config=configs/yang2016.py:smoke", f"--workdir={workdir}",
        "--config.evaluation.splits=('test',)", "--config.training.num_steps=60",
        "--config.training.evaluate_every_steps=60",
    )  # fmt: skip
    assert result.code == 0, result.err
    return workdir, result


def test_it_learns_the_labels(run):
    workdir, result = run
    scores = json.loads((workdir / "results.json").read_text())["test"]
    assert scores["label_accuracy"] > 90.0 and scores["f1_label_neg"] > 90.0
    assert scores["accuracy"] == pytest.approx(scores["label_accuracy"] / 100)
    assert any(line.split()[:1] == ["neg"] for line in result.out.splitlines())


def test_the_page_shades_the_words_that_tell(run):
    workdir, _ = run
    page = (workdir / "documents.test.html").read_text()
    most = [line for line in page.splitlines() if 'style="width: 100%"' in line]
    darkest = re.findall(r'<b class="w9">(\w+)</b>', "\n".join(most))
    telling = {"dull", "bad", "fun", "good", "fine", "quite", "very", "no", "so"}
    assert page.count("<h2>") == len(most) == 64 and len(darkest) >= 64
    assert sum(word in telling for word in darkest) > 0.7 * len(darkest)
    assert not (workdir / "viewer.test.html").exists()


def test_lines_are_labelled_one_by_one(run, launch):
    workdir, _ = run
    given = b"the film was quite dull \xe2\x80\xa8 the end\n\nit was very fine\n"
    found = launch("translate", f"--workdir={workdir}", stdin=given)
    assert found.code == 0, found.err
    assert found.out == "neg\n\npos\n"
    best = launch(
        "translate", f"--workdir={workdir}", "--nbest=2", "--search.method=beam", stdin=given
    ).out.splitlines()
    assert [line.split(" ||| ")[:2] for line in best] == [
        ["0", "neg"], ["0", "pos"], ["2", "pos"], ["2", "neg"],
    ]  # fmt: skip
    found = launch("translate", f"--workdir={workdir}", "--alignments", stdin=given)
    assert found.error == (
        "--alignments: expected a model that attends to tokens of its source, found none"
    )


def test_given_labels_have_the_scores_of_the_search(run, launch, tmp_path):
    workdir, _ = run
    source, nbest, target = (tmp_path / name for name in ("source", "nbest", "target"))
    source.write_text("the film was quite dull\nit was very fine\n")
    found = launch(
        "translate", f"--workdir={workdir}", "--nbest=2", "--search.method=beam",
        stdin=source.read_bytes(),
    )  # fmt: skip
    nbest.write_text(found.out)
    given = "score", f"--workdir={workdir}", f"--source={source}"
    scored = launch(*given, f"--nbest={nbest}", "--tokens")
    assert scored.code == 0, scored.err
    for line, expected in zip(scored.out.splitlines(), found.out.splitlines(), strict=True):
        *same, tokens = line.split(" ||| ")
        *of_search, numbers = expected.split(" ||| ")
        assert same[:-1] == of_search and tokens.split() == [same[-1].split()[0], "0.0000"]
        for one, other in zip(same[-1].split(), numbers.split(), strict=True):
            assert float(one) == pytest.approx(float(other), abs=2e-4)
    target.write_text("neg\npositive\n")
    mistake = "pair 2: expected a label of the training documents (neg, pos), found 'positive'"
    assert mistake in launch(*given, f"--target={target}").error
    evaluated = "evaluate", f"--workdir={workdir}", f"--source={source}", f"--target={target}"
    assert mistake in launch(*evaluated).error
    target.write_text("\npositive\n")
    begun = launch("translate", f"--workdir={workdir}", f"--prefix={target}",
                   stdin=source.read_bytes()).error  # fmt: skip
    assert begun.endswith(mistake.replace("pair 2", "--prefix line 2").removeprefix("error: "))
    online = launch("translate", f"--workdir={workdir}", "--online", stdin=b"it\n").error
    assert online == "--online: expected a model that attends to tokens of its source, found none"


def test_a_document_of_the_users_own_without_a_label_is_one_line(launch, tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("good\tA film. Fine.\nA film.\n")
    error = launch(
        "train", "--config=configs/yang2016.py:documents", f"--workdir={tmp_path / 'run'}",
        f"--config.data.train_table={path}",
    ).error  # fmt: skip
    assert error == f"{path}:2: expected 2 columns separated by a tab (label, text), found 1"
    assert not (tmp_path / "run").exists()
