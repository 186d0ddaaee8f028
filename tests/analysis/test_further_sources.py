"""Further sources: their attention has their own length, their own tokens and pages of its own."""

import contextlib
import dataclasses
import json

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure

from attention_jax import api
from attention_jax.analysis import pictures
from attention_jax.analysis.evaluation_request import EvaluationRequest, evaluate_as_asked
from attention_jax.analysis.matrices import (
    attention_matrices,
    forced_outputs,
    write_matrices,
)
from attention_jax.analysis.self_attention import self_attention
from attention_jax.analysis.views import DecodedRun, output_tokens
from attention_jax.data.loading import build_task
from attention_jax.data.pipeline import make_eval_batches
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.decoding.translate import Translator
from tests.plotting.viewer_data import page_data, view_weights
from tests.training.two_sources import two_sources_run


@pytest.fixture(scope="module")
def translating(tmp_path_factory):
    """A Transformer that reads two sources, and its test split."""
    run, task = two_sources_run(tmp_path_factory.mktemp("two") / "run")
    return run, task.split("test")


def test_self_attention_of_a_further_source_is_as_long_as_that_source(translating):
    run, split = translating
    found = self_attention(run, split)
    ids = {"encoder": split.source_ids, "encoder_second": split.columns["second"],
           "decoder": split.target_ids}  # fmt: skip
    assert {layer.split("/")[0] for layer in found} == {*ids}
    for layer, pairs in found.items():
        for each, its in zip(pairs, ids[layer.split("/")[0]], strict=True):
            assert each.weights.shape == (2, len(its), len(its))
            assert each.reach.shape == (2, len(its))
            np.testing.assert_allclose(each.weights.sum(-1), 1, rtol=1e-5)


def test_every_source_has_a_page_of_self_attention_with_its_own_tokens(translating):
    run, split = translating
    evaluate_as_asked(run, _task(run), EvaluationRequest(split=("test",), heads=True))
    found = self_attention(run, split)
    for side, called in (("encoder", "encoder"), ("encoder_second", "encoder of second")):
        data = page_data(run.directory.viewer("test", side))
        assert data["title"] == f"run, test, self-attention of the {called}"
        assert data["views"] == ["layer 0 head 0", "layer 0 head 1"]
        texts = split.sources if side == "encoder" else split.extras["second"]
        for index, (sentence, text) in enumerate(zip(data["sentences"], texts, strict=True)):
            assert sentence["text"] == text and sentence["source"] == sentence["target"]
            assert "".join(sentence["source"]) == "".join(text.split()) + "</s>"
            expected = found[f"{side}/layer_0/self_attention"][index].weights[1]
            np.testing.assert_allclose(view_weights(sentence, 1), expected, atol=0.003)
    again = dataclasses.replace(run, step=run.step + 1)  # the pages tell of the old parameters
    evaluate_as_asked(again, _task(run), EvaluationRequest(split=("test",)))
    assert not [*run.directory.path.glob("viewer.test.*coder*.html")]


def _task(run):
    return build_task(run.config.data, run.directory.vocabularies)


def test_attend_tells_of_every_source_by_its_tokens(translating):
    run, split = translating
    text, second = split.targets[0], split.extras["second"][0]
    forced = api.Run(run).attend(split.sources[0], text, {"second": second})
    assert [*forced.further_tokens["second"]] == [*second.split(), "</s>"]
    sizes = {"source": len(forced.source_tokens), "second": len(forced.further_tokens["second"])}
    assert forced.heads["attention"].shape == (4, len(forced.tokens), sizes["source"])
    to_second = forced.heads["attention/second"]
    assert to_second.shape == (4, len(forced.tokens), sizes["second"])
    np.testing.assert_allclose(to_second.sum(-1), 1, rtol=1e-5)
    assert len(api.Run(run).plot(forced).axes) == 3  # a map of each source, and the scale
    own = forced.heads["encoder_second/layer_0/self_attention"]
    assert own.shape == (2, sizes["second"], sizes["second"])
    np.testing.assert_allclose(own.sum(-1), 1, rtol=1e-5)
    # As the model itself says, of the heads of the last layer but one.
    batch = next(iter(make_eval_batches(split.select([0]), run.config.data)))
    output = jax.jit(run.model.apply)(run.params, batch)
    row = batch["index"].tolist().index(0)
    expected = output.outputs["attention/second"][row, : len(forced.tokens), : sizes["second"]]
    np.testing.assert_allclose(to_second[:2].mean(0), expected, rtol=1e-4, atol=1e-6)


def test_matrices_are_written_with_the_tokens_of_further_sources(translating, tmp_path):
    run, split = translating
    further = {"second": split.extras["second"]}
    outputs = [(1, Hypothesis(split.target_ids[1], 0.0, 0.0, np.zeros((0, 0))))]
    for end in ("npz", "jsonl"):
        write_matrices(tmp_path / f"matrices.{end}", run, outputs, split.sources, further)
    with np.load(tmp_path / "matrices.npz") as file:
        tokens, weights = file["0/further_tokens/second"], file["0/heads/attention/second"]
    assert [*tokens] == [*further["second"][1].split(), "</s>"]
    assert weights.shape == (4, len(split.target_ids[1]), len(tokens))
    line = json.loads((tmp_path / "matrices.jsonl").read_text())
    assert line["further_tokens"] == {"second": [*tokens]}
    np.testing.assert_allclose(line["heads"]["attention/second"], weights, atol=1e-5)


def test_every_source_is_drawn_beside_the_first(translating, tmp_path, monkeypatch):
    """An empty line is left out, and those of other sources with it."""
    run, split = translating
    shown, drawn = [split.sources[1], "", split.sources[0]], []
    second = [split.extras["second"][1], "", split.extras["second"][0]]
    translations = Translator(run).translate(shown, {"second": second})

    def grid(maps, columns):
        drawn.extend(maps)
        return Figure()

    monkeypatch.setattr(pictures, "heat_map_grid", grid)
    monkeypatch.setattr(pictures, "save_figure", lambda figure, path: None)
    monkeypatch.setattr(pictures, "replacing", contextlib.nullcontext)
    pictures.draw_translations(run, translations, tmp_path / "map.png", {"second": second})
    assert [one.title for one in drawn] == [shown[0], "second", shown[2], "second"]
    hypotheses = [one.hypotheses for one in translations if one.hypotheses]
    for index, one in enumerate(drawn[1::2]):
        [best], place = hypotheses[index], [0, 2][index]
        known = forced_outputs(run, [shown[place]], [best], {"second": [second[place]]})
        [forced] = attention_matrices(run, known)
        assert [*one.source] == [*second[place].split(), "</s>"]
        expected = forced.heads["attention/second"].mean(0)
        np.testing.assert_allclose(one.weights, expected, atol=1e-5)
    drawn.clear()
    evaluation = dataclasses.replace(run.config.evaluation, num_heat_maps=2)
    config = dataclasses.replace(run.config, evaluation=evaluation)
    drawing = dataclasses.replace(run, config=config)
    pictures.draw_attention(drawing, split.select([1, 0]), hypotheses)
    assert [one.title for one in drawn] == [shown[0], "second", shown[2], "second"]


@pytest.fixture(scope="module")
def aligned(tmp_path_factory):
    """A recurrent run of two sources, an alignment module of which says the links, and its data."""
    folder = tmp_path_factory.mktemp("aligned")
    return two_sources_run(folder / "run", transformer=False, aligner="module")


def test_attention_is_seen_beside_an_aligner(aligned):
    """The decoder's own, which has one head, and that to a further source."""
    run, task = aligned
    split = task.split("test").select([0])
    [found] = attention_matrices(run, split)
    batch = next(iter(make_eval_batches(split, run.config.data)))
    output, row = jax.jit(run.model.apply)(run.params, batch), batch["index"].tolist().index(0)
    assert [*found.heads] == ["attention", "attention/second"]
    expected = {
        "weights": output.outputs["alignment"], "attention": output.attention.weights,
        "attention/second": output.outputs["attention/second"],
    }  # fmt: skip
    for name, weights in {"weights": found.weights[None], **found.heads}.items():
        _, length, size = weights.shape
        tokens = found.further_tokens["second"] if "/" in name else found.source_tokens
        assert (length, size) == (len(found.tokens), len(tokens))
        np.testing.assert_allclose(weights[0], expected[name][row, :length, :size], atol=1e-6)
    assert np.abs(found.weights - found.heads["attention"][0]).max() > 0.01
    views = output_tokens(_decoded(run, task), [0])
    assert [*views] == ["run", "run, head 0"]


def _decoded(run, task):
    split = task.split("test")
    found = [[Hypothesis(ids, 0.0, 0.0, np.full((len(ids), len(read)), 1 / len(read)))]
             for ids, read in zip(split.target_ids, split.source_ids, strict=True)]  # fmt: skip
    return DecodedRun("run", run, split, found, split.targets)
