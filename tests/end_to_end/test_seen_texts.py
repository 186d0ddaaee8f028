"""A text and a picture, each of which lacks half of what is to be written: both have to be read."""

import json

import pytest
from PIL import Image

from attention_jax import api
from attention_jax.data.builders.smoke import half
from attention_jax.data.builders.smoke.smoke_dataset_builder import spelled
from attention_jax.data.builders.smoke_pictures import drawn
from attention_jax.decoding.scoring import Scorer, given_pairs
from attention_jax.errors import DataError
from attention_jax.runs.load import load_run

NUMBERS = ("3071", "26", "90417")


@pytest.fixture(scope="module")
def trained(launch, tmp_path_factory):
    directory = tmp_path_factory.mktemp("seen") / "run"
    ended = launch(
        "train", "--config=configs/huang2016.py:smoke", f"--workdir={directory}",
        "--config.training.num_steps=300", "--config.training.evaluate_every_steps=300",
        "--config.training.checkpoint_every_steps=300",
        "--config.evaluation.num_heat_maps=1", "--config.search.method=greedy",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    return directory


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawn")
    found = [folder / f"{number}.png" for number in NUMBERS]
    for number, path in zip(NUMBERS, found, strict=True):
        Image.fromarray(drawn(half(number, 1))[..., 0]).save(path)
    return found


@pytest.fixture
def translate(launch, trained, tmp_path):
    def run(paths):
        (tmp_path / "pictures").write_text("".join(f"{path}\n" for path in paths))
        lines = "".join(f"{half(number, 0)}\n" for number in NUMBERS).encode()
        given = f"--source=picture={tmp_path / 'pictures'}"
        return launch("translate", f"--workdir={trained}", given, stdin=lines)

    return run


def test_training_learns_what_neither_tells_alone(trained):
    results = json.loads((trained / "results.json").read_text())["test"]
    assert results["accuracy"] > 0.95 and results["exact_match"] > 80


def test_lines_are_translated_beside_paths_of_images(translate, paths, tmp_path):
    ended = translate(paths)
    assert ended.code == 0, ended.err
    assert ended.out.splitlines() == [spelled(number) for number in NUMBERS]
    assert translate(paths[1:]).error == (
        "--source=picture: expected 3 lines as in the input, found 2"
    )
    missing = tmp_path / "none.png"
    assert translate([missing, *paths[1:]]).error == (
        f"--source=picture: {missing}: expected an image, found no such file"
    )


def test_python_takes_the_paths_of_pictures(trained, paths):
    lines, further = [half(number, 0) for number in NUMBERS], {"picture": [*map(str, paths)]}
    outputs = api.load(trained).translate(lines, further)
    assert [output.text for output in outputs] == [*map(spelled, NUMBERS)]


def test_given_outputs_are_scored_beside_pictures(trained, paths, tmp_path):
    run = load_run(trained)
    sources, targets = [half(number, 0) for number in NUMBERS], [*map(spelled, NUMBERS)]
    pairs = given_pairs(run, sources, targets, {"picture": [*map(str, paths)]})
    assert min(pair.log_prob for pair in Scorer(run)(pairs)) > -1
    with pytest.raises(DataError, match="picture: .*: expected an image, found no such file"):
        given_pairs(run, sources, targets, {"picture": [str(tmp_path / "none.png")] * 3})


def test_sizes_that_are_not_the_pictures_are_one_line(launch, tmp_path):
    answer = launch(
        "train", "--config=configs/huang2016.py:smoke", f"--workdir={tmp_path / 'run'}",
        "--config.model.sources.picture.encoder.rows=2",
    )  # fmt: skip
    assert answer.err.splitlines()[-1] == (
        "error: config.model.sources.picture.encoder.rows: expected 1, as the data of config.data "
        "have it, found 2"
    )
