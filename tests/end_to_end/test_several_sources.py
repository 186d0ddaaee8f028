"""Two sources, each of which lacks half of what is to be written, through the command line."""

import json
import shutil

import numpy as np
import pytest

from attention_jax import api
from attention_jax.data.builders.smoke import half
from attention_jax.data.builders.smoke.smoke_dataset_builder import spelled
from attention_jax.decoding.scoring import Scorer, given_pairs
from attention_jax.errors import UserError
from attention_jax.runs.load import load_run

NUMBERS = ("3071", "26", "90417")


@pytest.fixture(scope="module")
def trained(launch, tmp_path_factory):
    directory = tmp_path_factory.mktemp("several") / "run"
    ended = launch(
        "train", "--config=configs/libovicky2017.py:smoke", f"--workdir={directory}",
        "--config.training.num_steps=300", "--config.training.evaluate_every_steps=150",
        "--config.evaluation.num_heat_maps=1", "--config.search.method=greedy",
        "--config.objectives.coverage_penalty.weight=0.01",
        "--config.model.attention.over.attention_dim=16",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    return directory


@pytest.fixture
def translate(launch, trained, tmp_path):
    def run(*arguments, others=NUMBERS):
        (tmp_path / "other").write_text("".join(f"{half(number, 1)}\n" for number in others))
        lines = "".join(f"{half(number, 0)}\n" for number in NUMBERS).encode()
        return launch("translate", f"--workdir={trained}", *arguments, stdin=lines)

    run.other = f"--source=other={tmp_path / 'other'}"
    return run


def test_training_learns_what_neither_source_tells_alone(trained):
    results = json.loads((trained / "results.json").read_text())
    assert results["test"]["accuracy"] > 0.95
    assert (trained / "plots" / "attention.test.png").exists()  # of the first source
    assert (trained / "viewer.test.html").exists()


def test_lines_of_both_sources_are_translated(translate):
    ended = translate(translate.other, "--alignments")
    assert ended.code == 0, ended.err
    outputs, links = zip(*(line.split(" ||| ") for line in ended.out.splitlines()), strict=True)
    assert outputs == tuple(map(spelled, NUMBERS))
    # Alignments are to the first source, of as many characters as the output has words.
    for number, each in zip(NUMBERS, links, strict=True):
        sources = [int(link.split("-")[0]) for link in each.split()]
        assert sources and max(sources) < len(number)


def test_given_outputs_are_scored_with_all_sources(trained, launch, tmp_path):
    run = load_run(trained)
    sources, further = ([half(number, side) for number in NUMBERS] for side in (0, 1))
    pairs = given_pairs(run, sources, [spelled(number) for number in NUMBERS], {"other": further})
    found = [pair.log_prob for pair in Scorer(run)(pairs)]
    assert min(found) > -1

    def score(*arguments, others=further, **texts):
        given = {"source": sources, "other": others, **texts}
        for name, lines in given.items():
            (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
        files = [f"--{name}={tmp_path / name}" for name in ("source", *texts)]
        return launch("score", f"--workdir={trained}", *files, *arguments)

    other, outputs = f"--source=other={tmp_path / 'other'}", [*map(spelled, NUMBERS)]
    scored = score(other, target=outputs)
    assert scored.code == 0, scored.err
    totals = [float(line.split()[0]) for line in scored.out.splitlines()]
    assert totals == pytest.approx(found, abs=1e-4)
    # Of n-best lists: an output knows the sources of its own line, in whatever order they stand.
    nbest = [f"2 ||| {outputs[2]}", f"0 ||| {outputs[1]}", f"0 ||| {outputs[0]}"]
    ranked = [line.split(" ||| ") for line in score(other, nbest=nbest).out.splitlines()]
    assert [line[:2] for line in ranked] == [
        ["0", outputs[0]], ["0", outputs[1]], ["2", outputs[2]]
    ]  # fmt: skip
    assert float(ranked[0][2].split()[0]) == pytest.approx(found[0], abs=1e-4)
    assert float(ranked[2][2].split()[0]) == pytest.approx(found[2], abs=1e-4)
    expected = "--source: expected FILE and other=FILE, found"
    assert score(target=outputs).error == f"{expected} {tmp_path / 'source'}"
    assert score(other.replace("other=", "fr=", 1), target=outputs).error.startswith(expected)
    assert score(other, other, target=outputs).error.startswith("--source: expected NAME=FILE,")
    for lists in ({"target": outputs}, {"nbest": nbest}):
        assert score(other, others=further[1:], **lists).error == (
            "other: expected one for each of the 3 sources, found 2"
        )


def test_given_pairs_are_aligned_and_compared_with_all_sources(trained, launch, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    lines = {"source": [half(number, 0) for number in NUMBERS], "target": [*map(spelled, NUMBERS)],
             "other": [half(number, 1) for number in NUMBERS], "gold": ["0-0"] * 3}  # fmt: skip
    for name, texts in lines.items():
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts))
    texts = [f"--{name}={tmp_path / name}" for name in ("source", "target")]
    other, links = f"--source=other={tmp_path / 'other'}", tmp_path / "links"
    ended = launch("align", "apply", f"--run={run}", *texts, other, f"--output={links}")
    assert ended.code == 0, ended.err
    scored = launch("score", f"--workdir={run}", *texts, other, "--alignments").out.splitlines()
    assert links.read_text().splitlines() == [line.split(" ||| ")[1].strip() for line in scored]
    assert launch("align", "apply", f"--run={run}", *texts, f"--output={links}").error == (
        f"--source: expected FILE and other=FILE, found {tmp_path / 'source'}"
    )
    evaluate = "evaluate", f"--workdir={run}", *texts, f"--against={trained}", "--name=mine"
    ended = launch(*evaluate, other, f"--alignment={tmp_path / 'gold'}")
    assert ended.code == 0, ended.err
    results = json.loads((run / "evaluations" / "mine" / "results.json").read_text())["mine"]
    assert results["chrf"] > 95 and "aer" in results
    assert "further sources: expected other, found none" in launch(*evaluate).error


def test_python_gives_each_source_its_lines(trained, tmp_path):
    run = api.load(shutil.copytree(trained, tmp_path / "run"))
    sources, others = ([half(number, side) for number in NUMBERS] for side in (0, 1))
    texts, further = [*map(spelled, NUMBERS)], {"other": others}
    outputs = run.translate(sources, further)
    assert [output.text for output in outputs] == texts
    [[best], *_] = run.translate_nbest(sources, 1, further)
    assert best.log_prob == pytest.approx(outputs[0].log_prob, abs=1e-5)
    for pair, output in zip(run.score(sources, texts, further), outputs, strict=True):
        assert pair.log_prob == pytest.approx(output.log_prob, abs=1e-4)
    assert run.evaluate(sources, texts, further, name="mine")["chrf"] == pytest.approx(100)
    forced = run.attend(sources[0], texts[0], {"other": others[0]})
    np.testing.assert_allclose(forced.weights, outputs[0].attention, atol=1e-4)
    values = run.attribute(sources[0], texts[0], "occlusion", {"other": others[0]}).values
    assert values.shape == forced.weights.shape
    with pytest.raises(UserError, match=r"^further: expected {'other': \[...\]}, with a line"):
        run.translate(sources)
    with pytest.raises(UserError, match="^further sources: expected other, found none$"):
        run.evaluate(sources, texts, name="again")


def test_a_source_that_is_not_there_or_does_not_fit_is_one_line(translate, tmp_path):
    assert translate().error == (
        "--source: expected other=FILE, with a line for each of the input, found none"
    )
    assert translate(translate.other, others=NUMBERS[1:]).error == (
        "--source=other: expected 3 lines as in the input, found 2"
    )
    wrong = translate.other.replace("other=", "fr=", 1)
    assert translate(wrong).error == "--source: expected further sources (other), found 'fr'"
    assert "--source: expected NAME=FILE, each name once" in translate("--source=other").error
    missing = translate(f"--source=other={tmp_path / 'none'}").error
    assert missing.endswith("none: expected a text file, found none")


def test_weights_are_exported_by_the_names_of_sources(launch, trained, tmp_path):
    path = tmp_path / "weights.safetensors"
    ended = launch("weights", f"--workdir={trained}", f"--output={path}")
    assert ended.code == 0, ended.err
    header = path.read_bytes()[:20_000]
    for name in ("sources.other.key_kernel", "over.shared.vector"):
        assert f"decoder.attention.{name}".encode() in header
