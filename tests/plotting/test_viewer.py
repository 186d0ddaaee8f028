"""The attention viewer without a browser: what is in the file, and what is refused."""

import base64
import hashlib
import importlib.resources
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from PIL import Image

from attention_jax.plotting import figure, viewer
from attention_jax.plotting.viewer import (
    ViewedAttention,
    ViewerSentence,
    quantise,
    viewer_data,
    viewer_html,
    write_viewer,
)
from tests.plotting.heard_data import heard

NASTY = [
    "</script>", "</script x", "<script>alert(1)</script>", "<!--", "-->", "<b>", "&lt;", "]]>",
    "{{data}}", '"', "\\", "\u2028", "\x00", "\n", "", "\udc80", "日本", "مرحبا", "😀",
]  # fmt: skip


def attention(rows, columns, **more):
    weights = np.random.default_rng(rows + columns).random((rows, columns)) ** 4
    return ViewedAttention(weights / weights.sum(axis=1, keepdims=True), **more)


class Reader(HTMLParser):
    """Collects what a browser would see: the tags, and the text of each."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts, self._open = [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.texts.append((tag, ""))
        self._open = tag

    def handle_endtag(self, tag):
        self._open = None

    def handle_data(self, text):
        if self._open:
            self.texts[-1] = (self._open, self.texts[-1][1] + text)

    def of(self, tag):
        return [text for name, text in self.texts if name == tag]


def read(page):
    reader = Reader(page.decode("utf-8"))
    return reader, json.loads(reader.of("script")[0])


def decoded(data, sentence, view):
    one = data["sentences"][sentence]
    given = one["views"][view]
    target = one["target"] if given["target"] is None else given["target"]
    levels = np.frombuffer(base64.b64decode(given["weights"]), np.uint8)
    return levels.reshape(len(target), len(one["source"])) * given["scale"] / 255


def test_viewer_html_holds_what_it_was_given():
    one = ViewerSentence(
        ["a", "b", "c"], ["x", "y"], "k7", "x y", sure=[(0, 0)], possible=[(0, 0), (2, 1)],
        scores={"BLEU": 12.3456789},
    )  # fmt: skip
    forced = attention(2, 3, target=["x", "y"], scores={"AER": 0.25})
    free = attention(3, 3, target=["x", "z", "y"], output="x z y")
    _, data = read(viewer_html("T", [one], {"forced": [forced], "free": [free]}))
    assert data["title"] == "T" and data["views"] == ["forced", "free"]
    (sentence,) = data["sentences"]
    assert sentence["source"] == ["a", "b", "c"] and sentence["target"] == ["x", "y"]
    assert sentence["key"] == "k7" and sentence["reference"] == "x y"
    assert sentence["sure"] == [[0, 0]] and sentence["possible"] == [[2, 1]]
    assert sentence["scores"] == {"BLEU": 12.3457}
    assert sentence["views"][0]["target"] is None  # equal tokens are forced decoding
    assert sentence["views"][0]["scores"] == {"AER": 0.25}
    assert sentence["views"][1]["target"] == ["x", "z", "y"]
    assert sentence["views"][1]["output"] == "x z y"
    np.testing.assert_allclose(decoded(data, 0, 0), forced.weights, atol=1 / 509)
    np.testing.assert_allclose(decoded(data, 0, 1), free.weights, atol=1 / 509)


def test_viewer_html_holds_what_is_known_of_a_view():
    views = {"mean": [attention(1, 1)], "head": [attention(1, 1)]}
    one = [ViewerSentence(["a"], ["x"])]
    about = {"head": {"aer": 0.123456789}}
    assert read(viewer_html("T", one, views, about))[1]["about"] == [{}, {"aer": 0.123457}]
    assert viewer_data("T", one, views)["about"] == [{}, {}]
    with pytest.raises(ValueError, match="view 'head': expected a finite aer, found nan"):
        viewer_data("T", one, views, {"head": {"aer": float("nan")}})
    with pytest.raises(ValueError, match="about: expected names of views, found 'other'"):
        viewer_data("T", one, views, {"other": {}})


def test_viewer_html_names_a_sentence_without_a_key_by_its_index():
    sentences = [ViewerSentence(["a"], ["x"])] * 2
    data = viewer_data("T", sentences, {"v": [attention(1, 1)] * 2})
    assert [one["key"] for one in data["sentences"]] == ["0", "1"]


def test_viewer_html_needs_no_other_file_and_no_network():
    page = viewer_html("T", [ViewerSentence(["a"], ["x"])], {"v": [attention(1, 1)]})
    reader, _ = read(page)
    for tag, attributes in reader.tags:
        assert tag not in ("link", "img", "iframe", "base", "object")
        assert attributes.get("href", "#").startswith("#") and "src" not in attributes
    addresses = set(re.findall(rb"\w+://[^\"' ]*", page))
    assert addresses == {b"http://www.w3.org/2000/svg"}  # a name, not a place
    assert b"@import" not in page and b"url(" not in page


def test_viewer_html_allows_only_its_own_script_and_style():
    page = viewer_html("T", [ViewerSentence(["a"], ["x"])], {"v": [attention(1, 1)]})
    reader, _ = read(page)
    policy = next(a["content"] for _, a in reader.tags if "http-equiv" in a)
    for kind, text in (
        ("script-src", reader.of("script")[1]),
        ("style-src", reader.of("style")[0]),
    ):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")


def test_viewer_html_keeps_texts_from_becoming_markup():
    plain = viewer_html("T", [ViewerSentence(["a"], ["x"])], {"v": [attention(1, 1)]})
    many = "".join(NASTY)
    page = viewer_html(
        "</title><b>{{data}} & ",
        [ViewerSentence(NASTY, NASTY, many, many, scores={"<i>": 1})],
        {"</script><b>": [attention(len(NASTY), len(NASTY), output=many)]},
    )
    reader, data = read(page)
    # Tag by tag the same page, whatever its texts.
    assert [tag for tag, _ in reader.tags] == [tag for tag, _ in read(plain)[0].tags]
    assert ("title", "</title><b>{{data}} & ") in reader.texts
    assert not set("<>&") & set(reader.of("script")[0])
    (sentence,) = data["sentences"]
    assert sentence["source"] == NASTY and sentence["key"] == sentence["reference"] == many
    assert sentence["views"][0]["output"] == many and data["views"] == ["</script><b>"]


@pytest.mark.parametrize(
    "weights",
    [
        np.random.default_rng(0).random((30, 40)),
        np.random.default_rng(1).dirichlet(np.full(50, 0.1), 20),
        np.full((3, 2000), 1 / 2000),
        np.eye(5),
        np.zeros((2, 3)),
        np.zeros((0, 3)),
    ],
)
def test_quantise_errs_by_at_most_half_a_level(weights):
    scale, levels = quantise(weights)
    assert levels.dtype == np.uint8 and levels.shape == weights.shape
    assert scale == np.max(weights, initial=0)
    error = np.abs(scale * levels / 255.0 - weights)
    assert np.max(error, initial=0) <= scale / 510 + 1e-12


def test_viewer_data_has_the_colours_of_the_heat_maps():
    ink = viewer_data("T", [ViewerSentence(["a"], ["x"])], {"v": [attention(1, 1)]})["ink"]
    opacity, full = np.array(ink)[:, None], np.array(to_rgb(figure.ATTENTION))
    colours = figure.ATTENTION_MAP(np.arange(256))[:, :3]
    np.testing.assert_allclose(1 - opacity * (1 - full), colours, atol=1e-4)


def test_attention_and_truth_have_their_colours_from_one_place():
    """In the page, in light and dark; no style sheet has a colour of them of its own."""
    page = viewer_html("T", [ViewerSentence(["a"], ["x"])], {"v": [attention(1, 1)]}).decode()
    known = {
        "--accent": [figure.ATTENTION, figure.ATTENTION_ON_DARK],
        "--gold": [figure.TRUTH, figure.TRUTH_ON_DARK],
    }
    for name, colours in known.items():
        assert re.findall(rf"{name}: (.*?);", page) == colours
    folder = Path(viewer.__file__).parent / "viewer_page"
    sheets = "".join(path.read_text() for path in folder.glob("*.css")).lower()
    assert not [each for colours in known.values() for each in colours if each.lower() in sheets]


def test_viewer_html_of_a_thousand_sentences_stays_small():
    words = [f"word{index}" for index in range(30)]
    sentences = [ViewerSentence(words, words, reference=" ".join(words))] * 1000
    views = {name: [attention(30, 30)] * 1000 for name in ("one", "two")}
    assert len(viewer_html("T", sentences, views)) < 4e6


@pytest.mark.parametrize(
    ("sentences", "views", "message"),
    [
        ([], {"v": []}, "found 0 and 1"),
        ([ViewerSentence(["a"])], {}, "found 1 and 0"),
        ([ViewerSentence(["a"])] * 2, {"v w": [attention(0, 1)]}, "'v w'.*2 sentences, found 1"),
        (
            [ViewerSentence(["a"], ["x"]), ViewerSentence(["a"], ["x"], "key")],
            {"v": [attention(1, 1), attention(1, 2)]},
            r"sentence 1 \(key\), view 'v': .*\(1, 1\).*\(1, 2\)",
        ),
        (
            [ViewerSentence(["a"], ["x"])],
            {"v": [attention(1, 1, target=["x", "y"])]},
            r"sentence 0, view 'v': .*\(2, 1\).*\(1, 1\)",
        ),
        (
            [ViewerSentence(["a"], ["x"])],
            {"v": [ViewedAttention(np.array([[float("nan")]]))]},
            "sentence 0, view 'v': expected weights from 0 to 1, found nan",
        ),
        (
            [ViewerSentence(["a"], ["x"])],
            {"v": [ViewedAttention(np.array([[1.5]]))]},
            "sentence 0, view 'v': .*found 1.5",
        ),
        (
            [ViewerSentence(["a"], ["x"])],
            {"v": [ViewedAttention(np.array([[-0.5]]))]},
            "sentence 0, view 'v': .*found -0.5",
        ),
        (
            [ViewerSentence(["a", "b"], ["x"], sure=[(0, 1)])],
            {"v": [attention(1, 2)]},
            "sentence 0: .*2 source and 1 target tokens, found 0-1",
        ),
        (
            [ViewerSentence(["a"], ["x"], possible=[(-1, 0)])],
            {"v": [attention(1, 1)]},
            "sentence 0: .*found -1-0",
        ),
        (
            [ViewerSentence(["a"], ["x"], scores={"BLEU": float("nan")})],
            {"v": [attention(1, 1)]},
            "sentence 0: expected a finite BLEU, found nan",
        ),
        (
            [ViewerSentence(["a"], ["x"])],
            {"v": [attention(1, 1, scores={"AER": float("inf")})]},
            "sentence 0, view 'v': expected a finite AER, found inf",
        ),
    ],
)
def test_viewer_data_refuses_what_does_not_fit(sentences, views, message):
    with pytest.raises(ValueError, match=message):
        viewer_data("T", sentences, views)


def test_viewer_data_accepts_the_rounding_of_half_precision():
    weights = np.array([[1.0005, -0.0005]], np.float16)
    one = ViewerSentence(["a", "b"], ["x"])
    data = viewer_data("T", [one], {"v": [ViewedAttention(weights)]})
    np.testing.assert_array_equal(decoded(data, 0, 0), [[1, 0]])


def test_write_viewer_replaces_a_page_in_one_piece(tmp_path):
    path = tmp_path / "run" / "viewer.html"
    one = [ViewerSentence(["a"], ["x"])]
    write_viewer(path, "first", one, {"v": [attention(1, 1)]})
    before = path.read_bytes()
    with pytest.raises(ValueError):
        write_viewer(path, "second", one, {"v": [attention(2, 2)]})
    assert path.read_bytes() == before
    write_viewer(path, "third", one, {"v": [attention(1, 1)]})
    assert path.read_bytes() == viewer_html("third", one, {"v": [attention(1, 1)]})
    assert list(path.parent.iterdir()) == [path]


def test_viewer_uses_every_file_of_its_folder():
    folder = importlib.resources.files("attention_jax.plotting") / "viewer_page"
    used = [*viewer._SCRIPTS, *viewer._STYLES, "page.html"]
    assert sorted(used) == sorted(file.name for file in folder.iterdir())


def test_sound_is_shown_as_its_spectrogram_and_played_while_there_is_room(numpy_rng, monkeypatch):
    canvas = heard(numpy_rng, frames=50, starts=[0.1, 0.25], sound=lambda: b"RIFF")
    sentences = [ViewerSentence(canvas.places, canvas=canvas)] * 3
    views = {"v": [attention(2, 50, target=["one", "</s>"], starts=[0.12])] * 3}
    monkeypatch.setattr(viewer, "MOST_SOUND", 2 * len(b"RIFF"))
    page = viewer_html("T", sentences, views)
    _, data = read(page)
    one, _, third = data["sentences"]
    picture = one["picture"]
    assert (picture["width"], picture["height"], picture["seconds"]) == (50, 4, 0.5)
    assert picture["starts"] == [0.1, 0.25] and picture["boxes"] == []
    assert one["views"][0]["starts"] == [0.12] and one["source"][10] == "0.10 s"
    with Image.open(io.BytesIO(base64.b64decode(picture["png"]))) as image:
        assert image.mode == "L"
        np.testing.assert_array_equal(np.asarray(image), canvas.pixels[..., 0])
    assert base64.b64decode(one["sound"]) == b"RIFF" and third["sound"] is None
    assert b"img-src data:; media-src data:;" in page


def test_spectrograms_stay_small(numpy_rng):
    canvas = heard(numpy_rng, frames=1000, bands=40)
    sentence = ViewerSentence(canvas.places, canvas=canvas)
    data = viewer_data("T", [sentence], {"v": [attention(3, 1000, target=["a", "b", "c"])]})
    assert len(data["sentences"][0]["picture"]["png"]) < 60_000  # of noise, which is the worst
    assert data["sentences"][0]["sound"] is None
