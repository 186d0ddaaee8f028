"""Listen, attend and spell learns to write down dialled numbers, and those of a user's files."""

import json

import numpy as np
import pytest
import soundfile

from attention_jax import api
from attention_jax.data.builders.tones import RATE, dial
from attention_jax.plotting.curves import read_metrics
from tests.plotting.viewer_data import page_data

QUICK = (
    "--config.data.num_buckets=1", "--config.search.method=greedy",
    "--config.evaluation.num_validation_examples=0", "--config.training.metric=nll",
    "--config.training.num_steps=400", "--config.training.evaluate_every_steps=400",
    "--config.training.checkpoint_every_steps=400",
)  # fmt: skip
NUMBERS = {"four": [4], "nine zero": [9, 0], "one one five": [1, 1, 5]}


@pytest.fixture(scope="module")
def run(launch, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("speech") / "run"
    result = launch("train", "--config=configs/chan2016.py:smoke", f"--workdir={workdir}", *QUICK)
    assert result.code == 0, result.err
    return workdir, result


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Numbers that somebody else has dialled, at twice the rate."""
    folder = tmp_path_factory.mktemp("sounds")
    for number, digits in enumerate(NUMBERS.values()):
        count = len(digits)
        sound = dial(digits, [480] * count, [240] * count, 5)
        soundfile.write(folder / f"{number}.flac", np.repeat(sound, 2), 2 * RATE)
    return folder


def test_it_learns(run):
    workdir, result = run
    scores = json.loads((workdir / "results.json").read_text())["test"]
    assert scores["wer"] < 10.0 and scores["cer"] < 10.0
    assert any("wer" in line for line in result.out.splitlines())
    rows = (workdir / "predictions.test.tsv").read_text().splitlines()
    assert rows[0] == "source\toutput\treference" and len(rows) == 65


def test_files_of_another_rate_are_transcribed(run, files, launch):
    workdir, _ = run
    given = "".join(f"{files / str(n)}.flac\n" for n in range(len(NUMBERS))).encode()
    found = launch("translate", f"--workdir={workdir}", stdin=given)
    assert found.code == 0, found.err
    pairs = zip(found.out.splitlines(), NUMBERS, strict=True)
    assert sum(output == expected for output, expected in pairs) >= 2


def test_the_viewer_shows_and_plays_what_was_heard(run):
    workdir, _ = run
    sentences = page_data(workdir / "viewer.test.html")["sentences"]
    assert len(sentences) == 64 and all(one["sound"] for one in sentences)
    assert (workdir / "plots" / "attention.test.png").exists()
    # The model has learnt to listen: words begin where they do, in most of the outputs.
    starts = [(one["picture"]["starts"], one["views"][0]["starts"]) for one in sentences]
    near = [abs(a - b) < 0.1 for x, y in starts if len(x) == len(y) for a, b in zip(x, y)]  # noqa: B905
    assert np.mean(near) > 0.5


def test_python_names_the_frames_and_draws_them(run, files):
    loaded = api.load(run[0])
    [output] = loaded.translate([str(files / "0.flac")])
    assert output.attention.shape == (len(output.tokens), len(output.source_tokens))
    assert output.source_tokens[:2] == ["0", "1"]
    above, below = loaded.plot(output).axes
    assert above.get_xlim() == below.get_xlim() and len(below.lines) == len(output.tokens) - 1


def test_attention_under_spectrograms_is_drawn_for_files(run, files, launch, tmp_path):
    plot, given = tmp_path / "heard.png", f"{files / '0.flac'}\n{files / '2.flac'}\n".encode()
    found = launch("translate", f"--workdir={run[0]}", f"--plot={plot}", stdin=given)
    assert found.code == 0, found.err
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("spelling", ["words", "characters"])
def test_the_beginnings_of_words_teach_attention(launch, tmp_path, spelling):
    result = launch(
        "train", "--config=configs/chan2016.py:smoke", f"--workdir={tmp_path / 'run'}", *QUICK,
        "--config.training.num_steps=2", "--config.training.log_every_steps=1",
        f"--config.data.spelling={spelling}", "--config.data.max_train_examples=32",
        "--config.objectives.supervised_alignment.weight=0.3", "--config.evaluation.splits=()",
    )  # fmt: skip
    assert result.code == 0, result.err
    lines = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert all(line["loss/supervised_alignment"] > 0 for line in lines if line["split"] == "train")


def test_a_missing_file_is_one_line(run, files, launch):
    workdir, _ = run
    given = f"{files / '0.flac'}\n{files / 'nowhere.wav'}\n".encode()
    error = launch("translate", f"--workdir={workdir}", stdin=given).error
    assert error == f"{files / 'nowhere.wav'}: expected a sound file, found none"


def test_tokens_of_sound_are_one_line(launch, tmp_path):
    result = launch(
        "train", "--config=configs/chan2016.py:smoke", f"--workdir={tmp_path / 'run'}",
        "--config.model.sources.source.input.name=tokens", *QUICK,
    )  # fmt: skip
    assert result.code == 2 and "Traceback" not in result.err
    assert result.err.splitlines()[-1].startswith(
        "error: config.model.sources.source.input.name: expected an input of vectors, such as "
        "'frames', for an array of shape ("
    )
