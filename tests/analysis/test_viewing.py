"""What the viewer is fed: outputs, heads, references, the opposite direction, another run."""

import contextlib
import csv
import dataclasses

import numpy as np
import pytest
from matplotlib.figure import Figure

from attention_jax.analysis import pictures, viewing
from attention_jax.analysis.evaluate import Evaluation, Outputs
from attention_jax.analysis.evaluation_request import EvaluationRequest, evaluate_as_asked
from attention_jax.analysis.gold_links import GoldLinks, compare_with_gold
from attention_jax.analysis.heads import HeadReport
from attention_jax.analysis.other_runs import OtherRun
from attention_jax.analysis.viewing import DecodedRun, distinct_names, write_run_viewer
from attention_jax.analysis.views import output_tokens, output_words
from attention_jax.data.examples import Split
from attention_jax.data.loading import build_task
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.decoding.searcher import Hypothesis, Searcher
from attention_jax.decoding.translate import Translation
from attention_jax.decoding.word_units import forced_words, split_words
from attention_jax.errors import RunDirectoryError
from attention_jax.evaluation.aer import count_links
from attention_jax.evaluation.alignment import links_from_weights
from attention_jax.evaluation.pharaoh import marked_links
from attention_jax.runs.config import from_config_dict
from configs.chan2016 import get_config
from tests.plotting.viewer_data import page_data, view_weights
from tests.training.untrained import taught, untrained, untrained_run, write_text


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A run with two heads, another on subwords, and one of the opposite direction."""
    folder = tmp_path_factory.mktemp("runs")
    source, target = write_text(folder, number=9)
    shown, task = untrained_run(folder / "heads", source, target, num_heads=2)
    other, its_task = untrained_run(folder / "pieces", source, target, kind="bpe")
    back = OtherRun("--reverse", "back", *untrained_run(folder / "back", target, source))
    return _decoded("heads", shown, task), _decoded("pieces", other, its_task), back


def _decoded(name, run, task):
    split = task.split("test")
    found = Searcher(run.model, run.config.search)(run.params, split, run.config.data)
    texts = [run.target_vocabulary.decode(best[0].tokens) if best else "" for best in found]
    return DecodedRun(name, run, split, found, texts)


def page(one):
    return page_data(one.run.directory.viewer("test"))


def weights(data, index, view):
    return view_weights(data["sentences"][index], data["views"].index(view))


def test_a_run_by_itself_has_a_view_of_each_head(world):
    shown, _, _ = world
    write_run_viewer(shown)
    data = page(shown)
    assert data["views"] == ["heads", "heads, head 0", "heads, head 1"]
    for index, (best,) in enumerate(shown.found):
        mean, *heads = (weights(data, index, view) for view in data["views"])
        np.testing.assert_allclose(mean, best.weights, atol=0.01)
        np.testing.assert_allclose(np.mean(heads, axis=0), mean, atol=0.01)
        assert data["sentences"][index]["source"][-1] == "</s>"
        assert data["sentences"][index]["text"] == shown.split.sources[index]


def test_gold_links_bring_references_and_the_opposite_direction(world):
    shown, _, back = world
    gold = GoldLinks({4: marked_links([(0, 0)], [(1, 1)])})
    compared = compare_with_gold(shown.run, shown.split, gold, back)
    write_run_viewer(shown, gold=compared, reverse_name="back")
    data = page(shown)
    assert data["views"] == [
        "heads",
        "heads, references",
        "heads, references, head 0",
        "heads, references, head 1",
        "back, reversed",
    ]
    fifth = data["sentences"][4]
    assert (fifth["sure"], fifth["possible"]) == ([[0, 0]], [[1, 1]])
    assert fifth["source"] == shown.split.sources[4].split()
    assert [view["target"] is None for view in fifth["views"]][1:] == [True] * 4
    assert all("reference AER" in view["scores"] for view in fifth["views"])
    np.testing.assert_allclose(
        weights(data, 4, "back, reversed"), compared.reverse[4].weights.T, atol=0.01
    )
    head = compared.forward[4].heads[1].weights
    np.testing.assert_allclose(weights(data, 4, "heads, references, head 1"), head, atol=0.01)


def test_references_are_shown_at_the_step_that_links(world):
    shown, other, _ = world
    gold = GoldLinks({4: marked_links([(0, 0)], [(1, 1)])})
    compared = compare_with_gold(shown.run, shown.split, gold, shift=1)
    other = dataclasses.replace(other, run=taught(other.run, "reads"))
    write_run_viewer(shown, against=[other], gold=compared)
    data = page(shown)
    linking = compared.forward[4].linking
    expected = {
        "heads, references": linking.weights,
        "heads, references, head 1": linking.heads[1].weights,
        "pieces, references": forced_words(other.run, other.split, compared.words, 1)[4]
        .linking.weights,
    }
    for view, matrix in expected.items():
        np.testing.assert_allclose(weights(data, 4, view), matrix, atol=0.01)
    scored = data["sentences"][4]["views"][data["views"].index("heads, references")]["scores"]
    links = links_from_weights(linking.weights)
    assert scored["reference AER"] == pytest.approx(
        count_links([links], [gold.links[4]]).aer, abs=0.1
    )


def test_another_run_is_shown_between_the_same_words(world):
    shown, other, _ = world
    write_run_viewer(shown, against=[other])
    data = page(shown)
    assert not any(data["about"])
    assert data["views"][:2] == ["heads", "pieces"] and "pieces, references" in data["views"]
    for index, sentence in enumerate(data["sentences"]):
        assert "</s>" not in sentence["source"] + sentence["target"]
        assert "".join(sentence["source"]) == "".join(shown.split.sources[index].split())
        for view in data["views"]:
            sums = weights(data, index, view).sum(axis=1)
            np.testing.assert_allclose(sums[sums > 0], 1, atol=0.05)


def test_what_was_measured_of_heads_is_shown_beside_their_views(world):
    shown, _, back = world
    heads = [
        HeadReport("decoder/attention", 0, {"aer": 0.25, "entropy": 0.5}),
        HeadReport("decoder/attention", 1, {"entropy": 0.125, "nll_without": 2.0}),
        HeadReport("encoder/layer_0/self_attention", 1, {"entropy": 0.75}),
    ]
    write_run_viewer(shown, heads=heads)
    assert page(shown)["about"] == [{}, heads[0].values, heads[1].values]
    gold = GoldLinks({4: marked_links([(0, 0)])})
    compared = compare_with_gold(shown.run, shown.split, gold, back)
    write_run_viewer(shown, gold=compared, reverse_name="back", heads=heads)
    assert page(shown)["about"] == [{}, {}, heads[0].values, heads[1].values, {}]


def test_an_evaluation_shows_the_heads_that_it_was_asked_to_measure(world, monkeypatch):
    shown, _, _ = world
    outputs = Outputs(shown.split, shown.found, shown.texts)
    monkeypatch.setattr(Evaluation, "decode", lambda evaluation, name: outputs)
    task = build_task(shown.run.config.data, shown.run.directory.vocabularies)
    evaluate_as_asked(shown.run, task, EvaluationRequest(split=["test"], heads=True))
    mean, *heads = page(shown)["about"]
    lines = (shown.run.directory.path / "heads.test.tsv").read_text().splitlines()
    rows = list(csv.DictReader(lines, delimiter="\t"))
    assert mean == {} and [row["head"] for row in rows] == ["0", "1"]
    for row, head in zip(rows, heads, strict=True):
        assert row.pop("layer").endswith("attention") and row.pop("head")
        assert {name: float(value) for name, value in row.items()} == pytest.approx(head, abs=1e-4)


def test_the_sign_of_a_space_is_a_word_where_a_text_has_it(world):
    text = "a ▁ b"
    vocabulary = SymbolVocabulary.train("words", [text])
    split = Split(
        [text],
        [text],
        references=[[text]],
        numbers=[0],
        name="test",
        source_vocabulary=vocabulary,
        target_vocabulary=vocabulary,
    )
    best = Hypothesis(split.target_ids[0], -1.0, -1.0, np.full((4, 4), 0.25))
    words = split_words(split)
    assert words.sources == words.targets == [text.split()]
    one = DecodedRun("any", world[0].run, split, [[best]], [text])
    assert output_words(one, words, 0, {}).target == text.split()


def test_outputs_are_shown_at_the_step_that_links(world):
    shown, _, _ = world
    words, index = split_words(shown.split), 4
    ids, size = shown.split.target_ids[index], len(shown.split.source_ids[index])
    weights = np.random.default_rng(0).dirichlet(np.ones(size), len(ids))

    def seen(run, weights):
        found = [[Hypothesis(ids, 0.0, 0.0, weights)]] * len(shown.found)
        one = dataclasses.replace(shown, run=run, found=found)
        return output_words(one, words, index, {}).weights

    found = seen(taught(shown.run, "reads"), weights)
    np.testing.assert_allclose(found, seen(shown.run, np.roll(weights, -1, axis=0)), atol=1e-6)
    assert np.abs(found - seen(shown.run, weights)).max() > 0.01


def test_what_covers_words_is_the_attention_that_links_them(world):
    """Between tokens and between words: weights, entropy and coverage, of heads, too."""
    shown, _, _ = world
    words, index = split_words(shown.split), 4
    ids, size = shown.split.target_ids[index], len(shown.split.source_ids[index])
    weights = np.random.default_rng(0).dirichlet(np.full(size, 0.2), len(ids))
    weights[0] = 0.0  # the step that reads BOS links nothing

    def seen(run, weights):
        found = [[Hypothesis(ids, 0.0, 0.0, weights)]] * len(shown.found)
        one = dataclasses.replace(shown, run=run, found=found)
        views = output_tokens(one, [index])
        return views["heads"][0], views["heads, head 1"][0], output_words(one, words, index, {})

    reading = seen(taught(shown.run, "reads"), weights)
    writing = seen(shown.run, np.roll(weights, -1, axis=0))
    for place in (0, 2):
        np.testing.assert_allclose(reading[place].weights, writing[place].weights, atol=1e-6)
        assert reading[place].scores == pytest.approx(writing[place].scores)
    np.testing.assert_allclose(reading[1].weights[:-1], writing[1].weights[1:], atol=1e-6)


def test_pictures_show_the_attention_that_links(world, hearing, monkeypatch):
    shown, _, _ = world
    ids, size, drawn = shown.split.target_ids[4], len(shown.split.source_ids[4]), []
    best = Hypothesis(ids, 0.0, 0.0, np.random.default_rng(0).dirichlet(np.ones(size), len(ids)))

    def grid(maps, columns):
        drawn.extend(maps)
        return Figure()

    monkeypatch.setattr(pictures, "heat_map_grid", grid)
    monkeypatch.setattr(pictures, "save_figure", lambda figure, path: None)
    translation = Translation(shown.split.sources[4], shown.split.source_ids[4], [best])
    run = taught(shown.run, "reads")
    with monkeypatch.context() as patched:
        patched.setattr(pictures, "replacing", contextlib.nullcontext)
        pictures.draw_translations(run, [translation], "map.png")
    linking = np.roll(best.weights, -1, axis=0)
    linking[-1] = 0.0
    np.testing.assert_allclose(drawn[0].weights, linking, atol=1e-6)

    split, found = hearing.split, hearing.found
    one = pictures.attended(
        taught(hearing.run, "reads"), hearing.run.task.canvas(split, 0, hearing.run.config.data),
        found[0][0], "",
    )  # fmt: skip
    linking = np.roll(found[0][0].weights, -1, axis=0)
    np.testing.assert_allclose(one.weights[:-1], linking[:-1], atol=1e-6)
    write_run_viewer(dataclasses.replace(hearing, run=taught(hearing.run, "reads")))
    shown = page(hearing)
    np.testing.assert_allclose(weights(shown, 0, "run")[:-1], linking[:-1], atol=0.01)
    np.testing.assert_allclose(shown["sentences"][0]["views"][0]["starts"], one.starts, rtol=1e-4)


def test_a_page_that_cannot_be_written_is_named(world):
    shown, _, _ = world
    path = shown.run.directory.viewer("test")
    path.unlink(missing_ok=True)
    path.mkdir()
    try:
        with pytest.raises(RunDirectoryError, match="viewer.test.html cannot be written: "):
            write_run_viewer(shown)
    finally:
        path.rmdir()


def test_pairs_with_gold_links_come_before_others(world, monkeypatch):
    shown, _, _ = world
    monkeypatch.setattr(viewing, "MOST_SHOWN", 3)
    gold = GoldLinks({number: marked_links([(0, 0)]) for number in (5, 7)})
    write_run_viewer(shown, gold=compare_with_gold(shown.run, shown.split, gold))
    assert [sentence["key"] for sentence in page(shown)["sentences"]] == ["0", "5", "7"]


def test_runs_are_called_by_what_tells_them_apart(world, tmp_path):
    shown, other, back = world
    assert distinct_names(shown.run) == ["heads"]
    assert distinct_names(shown.run, other.run, back.run) == ["heads", "pieces", "back"]
    assert distinct_names(shown.run, shown.run) == ["heads, step 0 (1)", "heads, step 0 (2)"]
    source, target = write_text(tmp_path, number=9)
    namesake, _ = untrained_run(tmp_path / "heads", source, target)
    folders = [run.directory.path.parent.name for run in (shown.run, namesake)]
    assert distinct_names(shown.run, namesake) == [f"{folder}/heads" for folder in folders]


@pytest.fixture(scope="module")
def hearing(tmp_path_factory):
    """An untrained run that transcribes dialled numbers, and made-up outputs for four of them."""
    config = get_config("smoke")
    config.search.method = "greedy"
    run, task = untrained(from_config_dict(config), tmp_path_factory.mktemp("heard") / "run")
    split, draw = task.split("test").select(range(4)), np.random.default_rng(0)
    found = [
        [Hypothesis(ids, 0.0, 0.0, np.float32(draw.dirichlet(np.ones(len(sound)), len(ids))))]
        for ids, sound in zip(split.target_ids, split.columns["source"], strict=True)
    ]
    return DecodedRun("run", run, split, found, split.targets)


def test_sound_is_shown_as_spectrograms_with_the_beginnings_of_words(hearing):
    write_run_viewer(hearing)
    data = page(hearing)
    assert data["views"] == ["run"] and len(data["sentences"]) == 4
    for index, sentence in enumerate(data["sentences"]):
        best, picture = hearing.found[index][0], sentence["picture"]
        assert picture["width"] == len(sentence["source"]) == best.weights.shape[1]
        assert picture["starts"] == pytest.approx(hearing.split.extras["word_starts"][index])
        assert len(sentence["views"][0]["starts"]) == len(picture["starts"])
        assert sentence["sound"] and sentence["reference"] == hearing.split.targets[index]
        np.testing.assert_allclose(weights(data, index, "run"), best.weights, atol=0.01)


def test_long_recordings_are_left_out_and_many_too(hearing, monkeypatch):
    lengths = [best.weights.shape[1] for (best,) in hearing.found]
    monkeypatch.setattr(viewing, "MOST_FRAMES", max(lengths) - 1)
    monkeypatch.setattr(viewing, "MOST_SOUNDS", 2)
    write_run_viewer(hearing)
    short = [f"{index}" for index, length in enumerate(lengths) if length < max(lengths)]
    assert [sentence["key"] for sentence in page(hearing)["sentences"]] == short[:2]


def test_attention_to_sound_is_drawn_in_the_run_and_for_translations(hearing, tmp_path):
    pictures.draw_attention(hearing.run, hearing.split, hearing.found)
    assert (hearing.run.directory.path / "plots" / "attention.test.svg").exists()
    canvas = hearing.run.task.canvas(hearing.split, 0, hearing.run.config.data)
    one = Translation("a.wav", hearing.split.source_ids[0], hearing.found[0], lambda: canvas)
    pictures.draw_translations(hearing.run, [one], tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    drawn = pictures.attended(hearing.run, canvas, hearing.found[0][0], one.source)
    assert len(drawn.starts) == len(canvas.starts) and drawn.title == "a.wav"
    assert pictures.canvas_title(hearing.split, 0, canvas) == hearing.split.targets[0]


def test_long_sound_is_not_drawn_for_translations(hearing, tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "MOST_FRAMES", 1)
    one = Translation("a.wav", hearing.split.source_ids[0], hearing.found[0])
    told = pictures.draw_translations(hearing.run, [one], tmp_path / "map.png")
    assert told.endswith("not drawn, for sound is longer than 1 frames")
    assert not (tmp_path / "map.png").exists()
