"""A text and a picture, each of which lacks half of what is to be written: both have to be read."""

import json

import pytest
from PIL import Image

from attention_jax.data.builders.smoke import half
from attention_jax.data.builders.smoke.smoke_dataset_builder import spelled
from attention_jax.data.builders.smoke_pictures import drawn

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


def test_lines_are_translated_beside_paths_of_images(translate, tmp_path):
    paths = []
    for number in NUMBERS:
        paths.append(tmp_path / f"{number}.png")
        Image.fromarray(drawn(half(number, 1))[..., 0]).save(paths[-1])
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


def test_sizes_that_are_not_the_pictures_are_one_line(launch, tmp_path):
    answer = launch(
        "train", "--config=configs/huang2016.py:smoke", f"--workdir={tmp_path / 'run'}",
        "--config.model.sources.picture.encoder.rows=2",
    )  # fmt: skip
    assert answer.err.splitlines()[-1] == (
        "error: config.model.sources.picture.encoder.rows: expected 1, as the data of config.data "
        "have it, found 2"
    )
