"""Made-up code whose names no vocabulary has: models that copy learn to write them, and say how."""

import functools
import json
import re

import jax
import numpy as np
import optax
import pytest

from attention_jax.configuration import typed
from attention_jax.data.builders.smoke_code import Config
from attention_jax.data.decoded import DecodedSplit
from attention_jax.data.loading import build_task
from attention_jax.data.pipeline import make_train_iterator
from attention_jax.data.tasks import code
from attention_jax.decoding.output_text import OutputWriter
from attention_jax.decoding.searcher import Searcher
from attention_jax.models import MODELS, build_model
from attention_jax.objectives import build_objective
from attention_jax.search import SearchConfig
from tests.quick import quick_jit

D = 24
ATTENTION = {
    "copynet": {"name": "bahdanau", "attention_dim": D},
    "convolutional_copy": {"name": "convolutional", "hidden_dim": D, "channels": 8,
                           "hidden_width": 3, "feature_width": 3},
}  # fmt: skip
DATA = Config(batch_size=64, eval_batch_size=64, num_buckets=1)


def build(readout, sizes):
    """A model whose slots know their own word and place, so that unknown words differ by place."""
    values = {
        "name": "encoder_decoder",
        "target_embedding_dim": D,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": D},
                "encoder": {"name": "concatenation", "max_positions": 8},
            }
        },
        "attention": ATTENTION[readout],
        "decoder": {"name": "luong", "cell": "gru", "hidden_dim": D, "attentional_dim": D,
                    "bridge": "mean"},
        "readout": {"name": readout},
        "initialization": {"name": "default", "embedding_scale": 1.0},
    }  # fmt: skip
    return build_model(typed(MODELS.config("encoder_decoder"), values, "config.model"), *sizes)


@pytest.mark.parametrize("readout", ATTENTION)
def test_names_that_no_vocabulary_has_are_copied(readout, tmp_path):
    task = build_task(DATA, tmp_path)
    model = build(readout, (task.source_vocabulary.size, task.target_vocabulary.size))
    task, objective = task.with_fields(model.fields), build_objective({"nll": {}})
    optimizer, batches = optax.adam(2e-2), make_train_iterator(task, DATA, 0)

    @functools.partial(quick_jit, donate_argnums=(0, 1))
    def update(params, state, batch):
        gradient = jax.grad(lambda params: objective(model.apply(params, batch), batch)[0])(params)
        change, state = optimizer.update(gradient, state)
        return optax.apply_updates(params, change), state

    params = model.init(jax.random.key(0))
    state = optimizer.init(params)
    for _ in range(150):
        params, state = update(params, state, next(batches))
    split = task.split("test")
    found = Searcher(model, SearchConfig(method="greedy"))(params, split, DATA)
    writer = OutputWriter(SearchConfig(), task.source_vocabulary, task.target_vocabulary)
    outputs = writer.best(found, split.sources)
    assert code.scores(split, outputs, DATA)["exact_match"] > 90
    details = code.unknown_words(DecodedSplit(split, DATA, outputs))
    assert details["unknown_words"] > 100 and details["unknown_word_recall"] > 90
    copied = [ids >= task.target_vocabulary.size for (best,) in found for ids in (best.tokens,)]
    assert np.concatenate(copied).mean() > 0.2


@pytest.fixture(scope="module")
def run(launch, tmp_path_factory):
    """A pointer-generator with coverage, of the config, with batches in two parts."""
    workdir = tmp_path_factory.mktemp("copying") / "run"
    result = launch(
        "train", "--config=configs/see2017.py:smoke", f"--workdir={workdir}",
        "--config.training.num_steps=240", "--config.training.evaluate_every_steps=240",
        "--config.training.checkpoint_every_steps=240", "--config.training.accumulate_steps=2",
        "--config.model.sources.source.encoder.name=concatenation",
        "--config.model.initialization.embedding_scale=1", "--config.optimizer.learning_rate=2e-2",
        "--config.model.embedding_dropout=0", "--config.model.output_dropout=0",
        "--config.search.beam_size=2", "--config.evaluation.splits=('test',)",
        "--config.evaluation.num_heat_maps=2",
    )  # fmt: skip
    assert result.code == 0, result.err
    return workdir


def test_a_pointer_generator_writes_names_and_never_unknown(run):
    scores = json.loads((run / "results.json").read_text())["test"]
    assert scores["exact_match"] > 80 and scores["unknown_word_recall"] > 85
    table = (run / "predictions.test.tsv").read_text()
    assert "<unk>" not in table and re.search(r"[a-z]\d+[a-z] \(", table)


def test_outputs_are_explained(launch, run, tmp_path):
    """Names are copied from where they stand, in every output of an n-best list."""
    line = b"call q7w with z81a\n\n"
    result = launch(
        "translate", f"--workdir={run}", "--explain", "--nbest=2", f"--plot={tmp_path / 'a.png'}",
        stdin=line,
    )  # fmt: skip
    assert result.code == 0, result.err
    outputs = [line.split(" ||| ") for line in result.out.splitlines()]
    assert [fields[0] for fields in outputs] == ["0", "0"]
    text, explained = outputs[0][1].split(), outputs[0][-1].split()
    assert text == ["q7w", "(", "z81a", ")"] and len(explained) == 4
    assert [word.partition(":")[0] for word in explained] == ["c1", "g", "c3", "g"]
    assert all(0.5 <= float(word.partition(":")[2]) <= 1 for word in explained)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_copied_words_are_scored_as_the_search_did(launch, run, tmp_path):
    """Words beyond the vocabulary are words of given outputs, too, and are aligned."""
    line = "call q7w with z81a"
    written = launch("translate", f"--workdir={run}", "--nbest=1", stdin=f"{line}\n".encode())
    _, output, numbers = written.out.strip().split(" ||| ")
    paths = {"source": tmp_path / "source", "target": tmp_path / "target"}
    for path, text in zip(paths.values(), (line, output), strict=True):
        path.write_text(f"{text}\n")
    given = [f"--{side}={path}" for side, path in paths.items()]
    scored = launch("score", f"--workdir={run}", *given, "--alignments")
    total, links = scored.out.strip().split(" ||| ")
    np.testing.assert_allclose(float(total.split()[0]), float(numbers.split()[0]), atol=2e-3)
    assert {"1-0", "3-2"} <= {*links.split()}


def test_the_viewer_has_what_was_copied(run):
    assert "run, copied" in (run / "viewer.test.html").read_text()


def test_only_models_that_copy_can_explain(launch, trained):
    result = launch("translate", f"--workdir={trained}", "--explain", stdin=b"12\n")
    assert result.code == 2 and "--explain: expected a model that copies" in result.err
