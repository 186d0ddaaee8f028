"""A small Chinese text from its word links to the viewer: its characters are its words."""

import dataclasses

import numpy as np
import pytest

from attention_jax.analysis.gold_links import GoldLinks, compare_with_gold
from attention_jax.analysis.viewing import DecodedRun, write_run_viewer
from attention_jax.analysis.views import ForcedView
from attention_jax.data.config import AlignmentConfig
from attention_jax.data.decoded import DecodedSplit
from attention_jax.data.tasks import translate
from attention_jax.data.text.spans import overlaps
from attention_jax.decoding import word_units
from attention_jax.decoding.alignments import pharaoh_line
from attention_jax.decoding.forced_decoding import ForcedAttention
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.evaluation.alignment import to_pharaoh
from attention_jax.evaluation.pharaoh import marked_links
from attention_jax.objectives import build_objective
from attention_jax.training.needed_fields import training_links
from experiments.kit.attention_record import gold_counts
from tests.plotting.viewer_data import page_data, view_weights
from tests.training.untrained import untrained_run

WORDS = {"I": "我", "you": "你", "like": "喜欢", "see": "看", "books": "书", "libraries": "图书馆"}
PATTERN = (("I", "you"), ("like", "see"), ("books", "libraries", "you"))


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Paths of an English text and its translation."""
    folder = tmp_path_factory.mktemp("chinese")
    sources = [f"{a} {b} {c}" for a in PATTERN[0] for b in PATTERN[1] for c in PATTERN[2]] * 2
    targets = ["".join(WORDS[word] for word in text.split()) + "。" for text in sources]
    for name, lines in (("text.en", [f"{text} ." for text in sources]), ("text.zh", targets)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder, str(folder / "text.en"), str(folder / "text.zh")


@pytest.fixture(scope="module")
def world(texts):
    """A run on subwords and one on characters, each with its task."""
    folder, *text = texts
    return [untrained_run(folder / kind, *text, kind=kind) for kind in ("bpe", "characters")]


def written(name, run, task):
    """A run that has written the references, with even attention."""
    split, found = task.split("test").select([0, 1, 2]), []
    for source, target in zip(split.source_ids, split.target_ids, strict=True):
        weights = np.full((len(target), len(source)), 1 / len(source))
        found.append([Hypothesis(target, -1.0, -1.0, weights)])
    return DecodedRun(name, run, split, found, split.targets)


def test_an_aligner_links_characters_and_links_reach_their_subwords(world, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(tmp_path))
    run, task = world[0]
    data = dataclasses.replace(run.config.data, alignment=AlignmentConfig(method="hmm"))
    guided = build_objective({"nll": {}, "supervised_alignment": {}})
    links, split = training_links(task, data, guided, run.directory), task.split("train")
    kept = run.directory.links.read_text().splitlines()
    right = wrong = missing = several = 0
    for text, target, found, line in zip(split.sources, split.targets, links, kept, strict=True):
        linked = {tuple(map(int, link.split("-"))) for link in line.split()}
        # Each character belongs to the word that it was written for.
        words = [*(WORDS[word] for word in text.split()[:-1]), "。"]
        true = {
            (source, place)
            for place, sources in enumerate(overlaps([*target], words))
            for source in sources
        }
        right += len(linked & true)
        wrong += len(linked - true)
        missing += len(true - linked)
        source_pieces, target_pieces = (
            vocabulary.surfaces(one)
            for vocabulary, one in (
                (split.source_vocabulary, text), (split.target_vocabulary, target)
            )
        )  # fmt: skip
        several += len(target_pieces) < len(target)
        from_source = overlaps(text.split(), source_pieces)
        from_target = overlaps([*target], target_pieces)
        expected = {(len(target_pieces), len(source_pieces))} | {
            (piece, other)
            for source, place in linked
            for piece in from_target[place]
            for other in from_source[source]
        }
        assert {tuple(map(int, link)) for link in found} == expected
    assert wrong < 0.1 * right and missing < 0.25 * right
    assert several  # of the texts have subwords of several characters


def test_characters_of_one_subword_are_linked_alike_by_all_that_links(texts, monkeypatch):
    """By what is compared with gold links, by the viewer and by `launch.translate --alignments`."""
    folder, english, chinese = texts
    run, task = untrained_run(folder / "back", chinese, english, kind="bpe")
    split = task.split("test")
    pieces = [split.source_vocabulary.surfaces(text) for text in split.sources]
    number = next(n for n, surfaces in enumerate(pieces) if len(surfaces[-2].strip()) > 1)
    sizes = [(len(split.target_ids[n]), len(split.source_ids[n])) for n in range(len(split))]
    matrices = [np.full(size, 1 / size[1]) for size in sizes]
    # More for the piece of several characters than for the other one, but not for each of them.
    matrices[number][:] = 0
    matrices[number][:, len(pieces[number]) - 2] = 0.5
    matrices[number][:, len(pieces[number]) - 1] = 0.4
    matrices[number][:, -1] = 0.1
    monkeypatch.setattr(
        word_units, "forced_attention", lambda *_: [ForcedAttention(w, None) for w in matrices]
    )
    text, target = split.sources[number], split.targets[number].split()
    alike = [n for n, its in enumerate(overlaps([*text], pieces[number]))
             if its == [len(pieces[number]) - 2]]  # fmt: skip
    links = [(source, place) for source in alike for place in range(len(target))]
    assert len(alike) > 1
    gold = GoldLinks({number: marked_links(links)}, [[*text] for text in split.sources])
    compared = compare_with_gold(run, split, gold)
    assert compared.forward[number].words.links() == links
    scores = compared.scores(0.5)
    for name in ("aer", "aer_threshold"):
        assert scores[name] == pytest.approx(0, abs=1e-9)
    (view,) = ForcedView.forward("any", compared.forward, run.params)
    assert view.aer(number, gold.links) == {"reference AER": pytest.approx(0, abs=1e-9)}
    turned = ForcedView.reverse("any", compared.forward).links[number]
    assert turned == sorted((place, source) for source, place in links)
    (found, sure, *hits), = gold_counts(run, split, gold)["aer"]
    assert found == sure == hits[0] == hits[1] == len(links)
    best = Hypothesis(split.target_ids[number], -1.0, -1.0, matrices[number])
    vocabularies = run.source_vocabulary, run.target_vocabulary
    assert pharaoh_line(best, split.source_ids[number], text, *vocabularies) == to_pharaoh(links)


@pytest.mark.parametrize("joined", ["喜欢 图书馆", "ชอบ หนังสือ", "読み ます"])
def test_links_of_a_text_that_is_given_in_words_are_of_these_words(tmp_path, joined):
    """The largest numbers are those of the last words of source and output."""
    lines = [f"{joined} {'我 ' * (number % 4)}{joined}" for number in range(24)]
    for name in ("text.a", "text.b"):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    text = str(tmp_path / "text.a"), str(tmp_path / "text.b")
    run, task = untrained_run(tmp_path / "run", *text, kind="bpe")
    split, vocabularies = task.split("test"), (run.source_vocabulary, run.target_vocabulary)
    for source, ids, target, output in zip(
        split.sources, split.source_ids, split.targets, split.target_ids, strict=True
    ):
        for weights in (np.eye(len(ids)), np.eye(len(ids))[::-1]):
            best = Hypothesis(output, -1.0, -1.0, weights[: len(output)])
            line = pharaoh_line(best, ids, source, *vocabularies)
            links = [tuple(map(int, link.split("-"))) for link in line.split()]
            assert {place for _, place in links} <= set(range(len(target.split())))
            assert {place for place, _ in links} <= set(range(len(source.split())))
        best = Hypothesis(output, -1.0, -1.0, np.eye(len(ids)))
        diagonal = [(place, place) for place in range(len(source.split()))]
        assert pharaoh_line(best, ids, source, *vocabularies) == to_pharaoh(diagonal)


def test_the_viewer_shows_characters(world):
    shown, other = (written(one[0].directory.path.name, *one) for one in world)
    write_run_viewer(shown, against=[other])
    data = page_data(shown.run.directory.viewer("test"))
    assert {"bpe", "characters", "bpe, references", "characters, references"} == set(data["views"])
    for index, sentence in enumerate(data["sentences"]):
        assert sentence["source"] == shown.split.sources[index].split()
        assert sentence["target"] == [*shown.split.targets[index]]
        for number, (name, view) in enumerate(zip(data["views"], sentence["views"], strict=True)):
            weights = view_weights(sentence, number)
            assert weights.shape == (len(sentence["target"]), len(sentence["source"])), name
            np.testing.assert_allclose(weights.sum(axis=1), 1, atol=0.02)
            assert view["target"] in (None, sentence["target"])


def test_attention_covers_source_words_by_the_characters_that_are_written(world):
    shown = written("any", *world[0])
    decoded = DecodedSplit(shown.split, shown.run.config.data, (), (), shown.found, attends=True)
    scores = {**translate.attention_scores(decoded), **translate.covering_scores(decoded)}
    expected = []
    for index, text in enumerate(shown.split.sources):
        pieces = shown.split.source_vocabulary.surfaces(text)
        # Even attention of each character, to each piece of the source and to its EOS.
        share = len(shown.split.targets[index]) / len(shown.split.source_ids[index])
        expected += [abs(1 - share * len(each)) for each in overlaps(text.split(), pieces)]
    assert scores["coverage_deviation"] == pytest.approx(np.mean(expected))
