"""The attention viewer in a real browser: what is seen, and what mouse and keys do."""

import contextlib
import io

import numpy as np
import pytest
from matplotlib.image import imread

from attention_jax.data.sound.spectrogram import wav
from attention_jax.plotting.figure import ATTENTION_MAP
from attention_jax.plotting.viewer import ViewedAttention, ViewerSentence, write_viewer
from tests.plotting.chromium import CHROMIUM, WANTED, Browser
from tests.plotting.heard_data import heard

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=WANTED)

SOURCE, TARGET = ["das", "kleine", "Haus", "."], ["the", "house", "."]
WEIGHTS = np.array([[0.8, 0.15, 0.05, 0], [0.1, 0.3, 0.6, 0], [0, 0, 0.25, 0.75]])
ARABIC, HEBREW = ["ذهب", "الطالب", "."], ["הילד", "אכל", "."]
CHINESE = ["我", "图书馆", "书"]
MARKUP = ["</script><script>alert(1)</script>", "<b>bold</b>", "&amp;"]
SMALL = [
    ViewerSentence(SOURCE, TARGET, "first", "the house .", sure=[(0, 0)], possible=[(1, 1)],
                   scores={"AER": 0.5}),
    ViewerSentence(["a", "b"], ["x"], "second", scores={"AER": 0.125}),
    ViewerSentence(ARABIC, HEBREW, "third"),
    ViewerSentence(CHINESE, MARKUP, "fourth", scores={"AER": 0.25}),
    ViewerSentence([], [], "empty"),
]  # fmt: skip
REST = [ViewedAttention(weights) for weights in (np.eye(3), np.eye(3), np.zeros((0, 0)))]
VIEWS = {
    "forced": [ViewedAttention(WEIGHTS), ViewedAttention(np.array([[1.0, 0]])), *REST],
    "other": [ViewedAttention(WEIGHTS[:, ::-1]), ViewedAttention(np.array([[0, 1.0]])), *REST],
    "free": [ViewedAttention(WEIGHTS[:2], ["a", "home"]),
             ViewedAttention(np.array([[0.5, 0.5]]), ["y"]), *REST],
}  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with contextlib.closing(Browser(tmp_path_factory.mktemp("profile"))) as one:
        yield one


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("viewer") / "viewer.html"
    write_viewer(path, "A <title> of & more", SMALL, VIEWS, {"other": {"nll_without": 0.5}})
    return path.as_uri()


@pytest.fixture
def page(browser, address):
    """The small page, opened; at the end it must not have complained."""
    browser.open(address)
    yield browser
    assert browser.problems() == []


def rows(page):
    return page.texts(".row .row-key")


def here(page):
    return page.text(".heading .key"), page.text('.views [aria-pressed="true"]')


def test_what_is_known_of_a_view_is_beside_its_button(page):
    hidden = 'document.getElementById("about").hidden'
    assert page.run(hidden) is True
    page.press("v")
    assert page.run(hidden) is False and page.text("#about") == "nll without0.500"


def test_page_shows_the_first_sentence(page):
    assert page.run("document.title") == page.text("h1") == "A <title> of & more"
    assert page.text("#count") == "5 sentences" and here(page) == ("first", "forced")
    assert page.text(".source-text") == "das kleine Haus ."
    assert page.texts(".column-label") == page.texts(".source .token bdi") == SOURCE
    assert page.texts(".row-label") == page.texts(".target .token bdi") == TARGET
    assert rows(page) == ["first", "second", "third", "fourth", "empty"]


def test_texts_that_are_given_stand_for_tokens(browser, tmp_path):
    one = ViewerSentence(["▁Ha", "us", "</s>"], ["a", "house"], "k", "A house", text="Haus")
    views = {
        "out": [ViewedAttention(np.eye(3), ["▁hou", "se", "</s>"], "house")],
        "forced": [ViewedAttention(np.eye(2, 3))],
    }
    write_viewer(tmp_path / "viewer.html", "texts", [one], views)
    browser.open((tmp_path / "viewer.html").as_uri())
    assert browser.text(".source-text") == browser.text(".row-source") == "Haus"
    assert browser.text(".row-target") == "house"
    assert browser.texts(".column-label") == ["▁Ha", "us", "</s>"]
    browser.press("v")
    assert browser.text(".row-target") == "A house"
    assert browser.texts(".texts dd") == ["A house"]
    assert browser.problems() == []


def test_hovering_shows_the_number(page):
    page.point(".cells", across=2.5 / 4, down=1.5 / 3)
    assert page.text("#tip strong") == "0.60" and page.text(".tip-tokens") == "Haus–house"
    assert page.texts("#matrix .on") == ["Haus", "house"]
    page.point(".cells", across=0.5 / 4, down=0.5 / 3)
    assert page.text("#tip strong") == "0.80" and page.text("#tip small") == "sure link"
    page.point('.token[data-source="2"]')
    assert page.text("#tip") == "0.90Hauscoverage"
    assert page.texts(".target .token small") == ["0.05", "0.60", "0.25"]
    page.point('.coverage .bar-of[data-source="1"]')
    assert page.text("#tip strong") == "0.45"
    page.point('.link[data-source="3"] .hit', across=0.995, down=0.02)  # a line's upper end
    assert page.text("#tip") == "0.75.–."
    assert page.every(".link.on", "one.dataset.target") == ["2"]
    page.point("h1")
    assert page.run("document.querySelector('#tip').hidden")


def test_cells_have_the_colours_of_the_heat_maps(page):
    page.press("g")
    box = page.box(".cells")
    image = imread(io.BytesIO(page.screenshot()))
    for row, column in np.ndindex(WEIGHTS.shape):
        x = int(box["x"] + (column + 0.5) / 4 * box["width"])
        y = int(box["y"] + (row + 0.5) / 3 * box["height"])
        expected = ATTENTION_MAP(WEIGHTS[row, column])
        np.testing.assert_allclose(image[y, x, :3], expected[:3], atol=0.015)


def test_lines_and_bars_are_the_weights_and_their_sums(page):
    places = page.every(".link", "[Number(one.dataset.target), Number(one.dataset.source)]")
    opacities = page.every(".link .line", "Number(one.getAttribute('stroke-opacity'))")
    assert sorted(map(tuple, places)) == sorted(map(tuple, np.argwhere(WEIGHTS > 0)))
    expected = [WEIGHTS[tuple(place)] for place in places]
    np.testing.assert_allclose(opacities, expected, atol=0.003)
    assert expected == sorted(expected)  # the strongest are on top
    heights = page.every(".bar-of", "Number(one.getAttribute('height'))")
    coverage = WEIGHTS.sum(axis=0)
    np.testing.assert_allclose(np.array(heights) / heights[0], coverage / coverage[0], atol=0.01)


@pytest.mark.parametrize("forwards", ["ArrowRight", "v"])
def test_views_switch_by_mouse_and_keyboard(page, forwards):
    page.point(".cells", across=0.5 / 4, down=0.5 / 3)
    page.press(forwards)
    assert here(page) == ("first", "other")
    assert page.text("#tip strong") == "0"  # the pointer has not moved, the weight has
    page.press(forwards)
    assert page.texts(".row-label") == ["a", "home"]
    assert page.texts(".texts dd") == ["the house .", "a home"]
    page.press(forwards, "ArrowLeft", "ArrowLeft")
    assert here(page) == ("first", "other")
    page.click('.views [data-view="0"]')
    assert here(page) == ("first", "forced")


def test_sentences_switch_by_mouse_and_keyboard(page):
    page.press("j", "ArrowDown")
    assert here(page)[0] == "third"
    assert page.text('.row[aria-selected="true"] .row-key') == "third"
    page.press("k", "ArrowUp", "k")
    assert here(page)[0] == "first"
    page.click("#row-3")
    assert here(page)[0] == "fourth"
    page.press("j", "j")
    assert here(page)[0] == "empty" and page.text("#matrix") == "No tokens to show."


def test_searching_lists_what_matches(page):
    page.press("/", *"HAUS")
    assert rows(page) == ["first"] and page.text("#count") == "1 of 5 sentences"
    page.press("Escape")
    assert len(rows(page)) == 5
    page.press(*"home")
    assert rows(page) == ["first"]  # by the output of a view
    page.press("Escape", *"vmj?")  # no commands while text is entered
    assert rows(page) == [] and here(page) == ("first", "forced")
    page.press("Escape", *"fourth", "Enter", "j")
    assert here(page)[0] == "fourth"


def test_sorting_by_length_and_by_scores(page):
    page.choose("sort", "length")
    assert rows(page) == ["empty", "second", "third", "fourth", "first"]
    page.choose("sort", "score AER")
    assert rows(page) == ["second", "fourth", "first", "third", "empty"]
    assert page.texts(".row-value") == ["0.125", "0.250", "0.500", "–", "–"]
    page.click("#direction")  # those without a score stay last
    assert rows(page) == ["first", "fourth", "second", "third", "empty"]


def test_sorting_by_disagreement_of_two_views(page):
    page.choose("sort", "disagreement")
    by_rows = np.abs(WEIGHTS - WEIGHTS[:, ::-1]).sum(axis=1).mean() / 2
    assert rows(page)[:2] == ["second", "first"]
    assert page.texts(".row-value")[:3] == ["1.00", f"{by_rows:.2f}", "0.00"]
    page.choose("second", 2)  # other tokens: only coverage can be compared
    shares = [weights.sum(axis=0) / weights.sum() for weights in (WEIGHTS, WEIGHTS[:2])]
    by_coverage = np.abs(shares[0] - shares[1]).sum() / 2
    assert page.texts(".row-value")[:2] == ["0.50", f"{by_coverage:.2f}"]
    assert rows(page)[:2] == ["second", "first"]


def test_gold_links_are_boxes_where_their_tokens_are(page):
    cells = page.box(".cells")
    size = cells["width"] / 4
    for kind, place in {"sure": 0, "possible": 1}.items():
        box = page.box(f".cells .gold.{kind}")
        assert (box["x"] - cells["x"]) // size == (box["y"] - cells["y"]) // size == place
        dashes = page.every(f".cells .gold.{kind}", "getComputedStyle(one).strokeDasharray")
        assert (dashes == ["none"]) == (kind == "sure")
    assert len(page.texts(".lines .gold")) == 2
    page.press("g")
    assert page.texts(".gold") == []
    page.press("g", "ArrowLeft")
    assert here(page)[1] == "free" and page.texts(".gold") == []


def test_pictures_are_toggled_and_one_always_stays(page):
    hidden = "['matrix', 'links'].map((id) => document.getElementById(id).hidden)"
    for key, expected in {"m": [True, False], "l": [False, True]}.items():
        page.press(key)
        assert page.run(hidden) == expected
    page.click("#toggle-links")
    assert page.run(hidden) == [False, False]


def test_address_opens_the_same_again(page, address):
    page.press("j", "v", "l", "/", *"x b")
    page.choose("sort", "disagreement")
    page.wait("location.hash.includes('disagreement')")
    page.open(address + page.run("location.hash"))
    assert here(page) == ("second", "other") and page.every("#links", "one.hidden") == [True]
    assert page.every("#search", "one.value") == ["x b"]
    assert page.text("#direction") == "↓" and rows(page) == ["second"]
    page.run("location.hash = '#sentence=77&view=nothing&sort=nothing'")
    page.wait("document.querySelector('.heading .key').textContent === 'first'")


def test_right_to_left_rows_run_from_the_right(page):
    page.press("j", "j")
    for side in ("source", "target"):
        lefts = page.every(f".token[data-{side}]", "one.getBoundingClientRect().x")
        assert lefts == sorted(lefts, reverse=True)
    assert page.every(".source-text", "one.dir") == ["rtl"]
    labels = page.every(".column-label", "one.getBoundingClientRect().x")
    assert labels == sorted(labels)  # the matrix falls from left to right, as heat maps do


def test_chinese_stands_upright_and_markup_is_text(page):
    page.click("#row-3")
    assert page.text(".source-text") == "我 图书馆 书"
    label = page.box('.upright[data-source="1"] bdi')
    assert label["height"] > 2 * label["width"]
    assert page.texts(".row-label") == MARKUP and page.run("document.scripts.length") == 2


def test_a_tip_that_was_dismissed_stays_away(page):
    hidden = "document.querySelector('#tip').hidden"
    page.run("document.querySelector('.cells').focus({ focusVisible: true })")
    page.press("ArrowRight")
    assert not page.run(hidden)
    page.press("Escape")
    assert page.run(hidden)
    for key in "vj":
        page.press(key)
        assert page.run(hidden) and page.texts("#matrix .on") == []
    page.press("ArrowLeft")
    assert not page.run(hidden)


def test_everything_is_reached_with_the_tab_key(page):
    reached = []
    for _ in range(16):
        page.press("Tab")
        reached += page.every(":focus", "one.id || one.className.baseVal || one.textContent")
        outlines = page.every(":focus, :focus-within.search", "getComputedStyle(one).outlineStyle")
        assert set(outlines) - {"none"}
        if reached[-1] == "cells":
            break
    views = ["forced", "other", "free"]
    toggles = ["toggle-matrix", "toggle-links", "toggle-gold", "help-button"]
    assert reached == ["skip", "search", "sort", "direction", "list", *views, *toggles, "cells"]
    page.press("ArrowRight", "ArrowDown")
    assert here(page)[0] == "first"  # in the matrix, arrows move from cell to cell
    assert page.text("#announcement") == "0.30, kleine – house, possible link"
    page.press("j", "k")  # the other keys work on, and the focus stays
    assert page.run("document.activeElement.classList.contains('cells')")


def test_help_opens_and_closes(page):
    for keys, expected in ((["?", "j"], [True]), (["Escape"], [False])):
        page.press(*keys)
        assert page.every("#help", "one.open") == expected
    assert here(page)[0] == "first"


def test_dark_scheme_turns_paper_and_ink_around(page, address):
    def brightness():
        image = imread(io.BytesIO(page.screenshot()))[..., :3]
        box = page.box(".cells")
        cell = image[int(box["y"] + box["height"] / 6), int(box["x"] + box["width"] / 8)]
        return image.mean(), cell.mean()

    paper, ink = brightness()
    assert paper > 0.85 and ink < 0.6
    page.open(address, scheme="dark")
    paper, ink = brightness()
    assert paper < 0.2 and ink > 0.45


@pytest.mark.parametrize("width", [360, 760, 1900])
def test_nothing_sticks_out_of_the_window(page, address, width):
    page.open(address + "#sort=disagreement", width=width)
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.every(".main, .side", "one.scrollWidth <= one.clientWidth") == [True, True]


def test_a_thousand_sentences(browser, tmp_path, numpy_rng):
    words = [f"w{index}" for index in range(30)]
    sentences = [ViewerSentence([*words, f"only{index}"], words) for index in range(1000)]
    weights = numpy_rng.dirichlet(np.ones(31), (2, 1000, 30))
    views = {name: [ViewedAttention(one) for one in weights[i]] for i, name in enumerate("ab")}
    write_viewer(tmp_path / "viewer.html", "many", sentences, views)
    browser.open((tmp_path / "viewer.html").as_uri())
    assert browser.text("#count") == "1,000 sentences"
    assert 10 < len(rows(browser)) < 60  # only those in sight exist
    browser.run("document.getElementById('list').focus()")
    browser.press("End")
    assert here(browser)[0] == rows(browser)[-1] == "999" and len(rows(browser)) < 60
    browser.choose("sort", "disagreement")
    disagreement = np.abs(weights[0] - weights[1]).sum(axis=(1, 2))
    assert int(rows(browser)[0]) in np.argsort(disagreement)[-3:]  # but for rounding the last
    browser.press("/", *"only512", "Enter")
    assert rows(browser) == [here(browser)[0]] == ["512"]
    browser.press("/", "Escape")  # the whole list again, and 512 is in sight
    assert len(rows(browser)) > 10 and browser.texts('[aria-selected="true"] .row-key') == ["512"]
    assert browser.problems() == []


def test_sound_is_played_and_seen_above_its_attention(browser, tmp_path, numpy_rng):
    canvas = heard(numpy_rng, frames=100, starts=[0.25], sound=lambda: wav(np.zeros(800), 8000))
    one = ViewerSentence(canvas.places, canvas=canvas)
    view = ViewedAttention(np.full((2, 100), 0.01), ["one", "</s>"], "one", starts=[0.5])
    write_viewer(tmp_path / "viewer.html", "heard", [one], {"v": [view]})
    browser.open((tmp_path / "viewer.html").as_uri())
    above, below = browser.box(".spectrogram"), browser.box(".cells")
    assert (above["x"], above["width"]) == (below["x"], below["width"])
    assert above["y"] + above["height"] <= below["y"]
    marks = [len(browser.every(f".start.{name}", "1")) for name in ("found", "in-truth")]
    assert marks == [2, 2]
    browser.press("g", "m")
    assert browser.every(".start.in-truth", "1") == [] and browser.texts(".row-label")[0] == "one"
    browser.point(".cells", across=0.505, down=0.25)
    assert browser.text("#tip") == "0.010.50 s–one"
    browser.wait("document.querySelector('audio').readyState >= 0")
    assert browser.problems() == []
