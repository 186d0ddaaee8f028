"""Soft and hard attention learn to describe pictures; images and tables of users are read."""

import json
import shutil

import numpy as np
import pytest

from attention_jax.data.pictures import read_picture
from attention_jax.plotting.curves import read_metrics
from tests.pictures import draw_squares
from tests.plotting.viewer_data import page_data

SMALL = (
    "--config.data.num_buckets=1", "--config.data.batch_size=24",
    "--config.model.sources.source.input.embedding_dim=32",
    "--config.model.sources.source.encoder.rows=2",
    "--config.model.sources.source.encoder.num_layers=1",
    "--config.model.target_embedding_dim=16", "--config.model.decoder.hidden_dim=32",
    "--config.model.decoder.readout_dim=32", "--config.optimizer.learning_rate=1e-2",
    "--config.schedule.warmup_steps=10", "--config.training.num_epochs=None",
    "--config.training.num_steps=200", "--config.training.averaging.decay=0.9",
    "--config.training.evaluate_every_steps=200", "--config.training.checkpoint_every_steps=200",
    "--config.search.method=greedy", "--config.evaluation.num_heat_maps=2",
)  # fmt: skip
PIXELS = (
    "--config.data.height=8", "--config.data.cell=4", "--config.data.colours=rgb",
    "--config.model.sources.source.input.rows=2", "--config.model.sources.source.input.cell=4",
    "--config.model.sources.source.input.channels=3",
    "--config.model.attention.score.name=bahdanau", "--config.objectives.reinforce=false",
    "--config.model.attention.score.attention_dim=32",
)  # fmt: skip
FEATURES = (
    "--config.data.rows=2", "--config.data.depth=8",
    "--config.model.sources.source.input.frame_dim=8",
    "--config.model.attention.score.score.attention_dim=32",
)  # fmt: skip


@pytest.fixture(scope="module")
def squares(tmp_path_factory):
    return draw_squares(tmp_path_factory.mktemp("captions") / "squares")


def train(launch, workdir, table, *more, source="pictures"):
    return launch(
        "train", f"--config=configs/xu2015.py:{source}", f"--workdir={workdir}",
        f"--config.data.train_table={table}", f"--config.data.test_table={table}",
        *SMALL, *(PIXELS if source == "pictures" else FEATURES), *more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(squares, launch, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("caption") / "run"
    result = train(launch, workdir, squares)
    assert result.code == 0, result.err
    return workdir, result


def test_pictures_are_described(run):
    workdir, result = run
    scores = json.loads((workdir / "results.json").read_text())["test"]
    assert scores["exact_match"] > 90.0 and scores["bleu_1"] > 90.0 and scores["chrf"] > 90.0
    assert 0.0 <= scores["attention_entropy"] <= 1.0 and "attention_in_gold" not in scores
    assert "exact_match" in result.out
    assert "red_left_0.png\tred square, left" in (workdir / "predictions.test.tsv").read_text()
    assert (workdir / "plots" / "attention.test.png").exists()
    assert not (workdir / "alignments.test.txt").exists()
    page = page_data(workdir / "viewer.test.html")["sentences"]
    assert len(page) == 24 and page[0]["text"] == "red_left_0.png"
    picture = page[0]["picture"]
    assert (picture["width"], picture["height"]) == (16, 8)
    assert picture["boxes"][:2] == [[0, 0, 4, 4], [0, 4, 4, 8]] and len(picture["boxes"]) == 8


def test_paths_of_images_are_answered_and_drawn(run, squares, launch, tmp_path):
    workdir, _ = run
    images = [squares.parent / f"{name}_1.png" for name in ("blue_left", "red_right")]
    plot = tmp_path / "seen.png"
    given = "\n".join([str(images[0]), "", str(images[1])]).encode()
    found = launch("translate", f"--workdir={workdir}", f"--plot={plot}", stdin=given)
    assert found.code == 0, found.err
    assert found.out.split("\n")[:3] == ["blue square, left", "", "red square, right"]
    assert plot.stat().st_size > 1000


def test_what_is_asked_of_no_picture_is_one_line(run, launch, tmp_path):
    workdir, _ = run
    place = tmp_path / "none.png"
    error = launch("translate", f"--workdir={workdir}", stdin=f"{place}\n".encode()).error
    assert error == f"{place}: expected an image, found no such file"
    error = launch("translate", f"--workdir={workdir}", "--alignments", stdin=b"x\n").error
    assert error == (
        "--alignments: expected a model that attends to tokens of its source, found none"
    )


def test_sizes_that_are_not_the_pictures_are_one_line(squares, launch, tmp_path):
    more = "--config.model.sources.source.encoder.rows=4"
    error = train(launch, tmp_path / "run", squares, more).err.splitlines()[-1]
    assert error == (
        "error: config.model.sources.source.encoder.rows: expected 2, as the data of config.data "
        "have it, found 4"
    )


def test_hard_attention_describes_features_of_pictures(squares, launch, tmp_path):
    """Of each cell its mean colour, as if another network had made it, in a file of NumPy's."""
    rows = squares.read_text().splitlines()
    for row in rows:
        picture = read_picture(squares.parent / row.partition("\t")[0], "rgb") / 127.5 - 1.0
        means = picture.reshape(2, 4, 4, 4, 3).mean((1, 3))  # H y W x C -> H W C
        name = row.partition(".")[0]
        np.save(tmp_path / f"{name}.npy", np.pad(means, ((0, 0), (0, 0), (0, 5))))
    table = tmp_path / "captions.tsv"
    table.write_text("".join(f"{row.replace('.png', '.npy')}\n" for row in rows))
    workdir = tmp_path / "run"
    result = train(launch, workdir, table, source="features")
    assert result.code == 0, result.err
    scores = json.loads((workdir / "results.json").read_text())["test"]
    assert scores["exact_match"] > 80.0
    first = (workdir / "metrics.jsonl").read_text().splitlines()[0]
    assert "reinforce/squared_advantage" in first
    assert (workdir / "plots" / "attention.test.png").exists()  # on white ground
    path = tmp_path / "red_left_1.npy"
    found = launch("translate", f"--workdir={workdir}", stdin=f"{path}\n".encode())
    assert found.out.splitlines()[0] == "red square, left"
    np.save(path, np.zeros((2, 4, 16)))
    error = launch("translate", f"--workdir={workdir}", stdin=f"{path}\n".encode()).error
    assert error.startswith(f"{path}: expected an array of 2 x W x 8 numbers")


def test_rectangles_of_symbols_teach_attention(launch, tmp_path):
    result = launch(
        "train", "--config=configs/xu2015.py:formulas", f"--workdir={tmp_path / 'run'}",
        *(each for each in SMALL if "rows" not in each), "--config.data.num_formulas=32",
        "--config.data.max_symbols=4", "--config.model.attention.score.name=bahdanau",
        "--config.model.attention.score.attention_dim=8", "--config.objectives.reinforce=false",
        "--config.objectives.supervised_alignment.weight=0.3", "--config.evaluation.splits=()",
        "--config.training.num_steps=2", "--config.training.log_every_steps=1",
    )  # fmt: skip
    assert result.code == 0, result.err
    lines = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert all(line["loss/supervised_alignment"] > 0 for line in lines if line["split"] == "train")


def test_a_changed_picture_is_noticed(run, squares, launch, tmp_path):
    """An evaluation is refused where an image is not what the run was trained on."""
    workdir, _ = run
    folder = tmp_path / "squares"
    shutil.copytree(squares.parent, folder)
    shutil.copy(folder / "red_left_0.png", folder / "red_left_1.png")
    tables = (f"--{split}_table={folder / squares.name}" for split in ("train", "test"))
    copy = tmp_path / "run"
    shutil.copytree(workdir, copy)
    found = launch(
        "evaluate", f"--workdir={copy}", "--split=test",
        *(each.replace("--", "--data.") for each in tables),
    )  # fmt: skip
    assert found.code == 2 and "Traceback" not in found.err
