"""The attention viewer without a browser, but with its scripts: the keys' cell and its tip."""

import importlib.resources
import json
import shutil
import subprocess

import numpy as np
import pytest

from attention_jax.plotting.figure import printable
from attention_jax.plotting.viewer import ViewedAttention, ViewerSentence, viewer_data
from tests.plotting.heard_data import heard

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")

# Pictures that do nothing, and a matrix that has the focus of the keyboard.
STAGE = """
const tip = { hidden: true }, listeners = {};
const cells = {
  classList: { contains: () => true },
  matches: () => true,
  addEventListener: (name, act) => { listeners[name] = act; },
  focus: () => listeners.focus(),
};
const document = { activeElement: cells };
const byId = (name) => ({ tip, announcement: {}, matrix: { querySelector: () => cells } })[name];
const shown = { attention: { source: ["a", "b"], target: ["x"] } };
let cursor = { source: 0, target: 0 };
const showSentence = () => followArrows(cells);
const highlightMatrix = () => {}, highlightLinks = () => {}, highlightLooked = () => {};
const revealCell = () => {};
const cellOnScreen = () => ({}), printable = String;
describe = () => ({ number: "1", tokens: [], note: "" });
showTip = () => { tip.hidden = false; };
"""


def tip_is_hidden_after(*steps):
    """Returns whether the tip is hidden after each of these steps."""
    folder = importlib.resources.files("attention_jax.plotting") / "viewer_page"
    scripts = [(folder / name).read_text() for name in ("hover.js", "keyboard.js", "main.js")]
    code = "\n".join(scripts).replace("\nstart();", "")
    looks = "\n".join(f"{step}; seen.push(tip.hidden);" for step in steps)
    script = f"{code}\n{STAGE}\nconst seen = [];\n{looks}\nconsole.log(seen.join());"
    done = subprocess.run(
        ["node", "--eval", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return [text == "true" for text in done.stdout.strip().split(",")]


def test_a_tip_that_was_dismissed_stays_away_when_the_sentence_is_drawn_anew():
    steps = ("drawSentence(0)", "cells.focus()", "pointAway()", "drawSentence(0)")
    assert tip_is_hidden_after(*steps, "drawSentence(1)") == [True, False, True, True, True]


def test_a_tip_stays_when_the_same_sentence_is_drawn_anew_and_can_be_dismissed():
    steps = ("drawSentence(0)", "cells.focus()", "drawSentence(0)", "pointAway()")
    assert tip_is_hidden_after(*steps) == [True, False, False, True]


def printed_in_node(expression):
    """Returns the value of an expression of the page's model."""
    folder = importlib.resources.files("attention_jax.plotting") / "viewer_page"
    code = (folder / "model.js").read_text(encoding="utf-8")
    stage = 'const document = { getElementById: () => ({ textContent: "{}" }) };'
    script = f"{stage}\n{code}\nconsole.log(JSON.stringify({expression}));"
    done = subprocess.run(
        ["node", "--eval", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_tokens_that_cannot_be_seen_have_labels():
    tokens = ["\u200b", "\u200d", "\u2060", "\u00ad", "\u200e", "\ufe0f", "\u2800", "\u115f",
              "\ufeff", " \u200b", "\u200b\u200c", "a\u200b", "\u2764\ufe0f", "\u00a0\u3000",
              "\n", "", "\u0301", "\U000e0100"]  # fmt: skip
    labels = printed_in_node(f"{json.dumps(tokens)}.map(printable)")
    assert labels[:9] == [printable(token) for token in tokens[:9]]
    assert labels[0] == "U+200B" and labels[9:11] == ["U+200B", "U+200B U+200C"]
    assert labels[11:] == ["a\u200b", "\u2764\ufe0f", "␣", "␣", "␣", "\u0301", "U+E0100"]


def test_figures_and_the_page_agree_on_what_cannot_be_seen():
    points = "[...Array(0x110000).keys()].filter((p) => p < 0xd800 || p > 0xdfff)"
    found = printed_in_node(f"{points}.filter((p) => UNSEEN.test(String.fromCodePoint(p)))")
    everything = (chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000)
    assert found == [ord(char) for char in everything if printable(char).startswith("U+")]


def test_running_text_keeps_what_joins_its_characters():
    assert printed_in_node(r'textOf(["a", "\u200d", "b", " "])') == "a\u200db␣"


# Elements that only remember what they were made of, and what `query` finds among those made.
ELEMENTS = """
const made = [];
class Element {
  constructor(name) {
    Object.assign(this, { name, attributes: {}, children: [], style: { setProperty() {} } });
    Object.assign(this, { classList: { toggle() {}, remove() {}, add() {} }, hidden: false });
    made.push(this);
  }
  setAttribute(name, value) { this.attributes[name] = value; }
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  addEventListener() {}
  querySelector() { return null; }
  querySelectorAll() { return []; }
}
const panels = {};
const document = {
  createElement: (name) => new Element(name),
  createElementNS: (_, name) => new Element(name),
  getElementById: (id) =>
    id === "data" ? { textContent: GIVEN } : (panels[id] ??= new Element(id)),
};
const location = { hash: "" }, followArrows = () => {};
"""
# Of all elements that were made: name, attributes and whether they are in the panel of that name.
TOLD = """
const within = (one) => [one, ...one.children.filter((each) => each?.children).flatMap(within)];
const tell = (id) => within(panels[id]).slice(1).map(({ name, attributes }) => [name, attributes]);
console.log(JSON.stringify({
  matrix: tell("matrix"), looked: tell("looked"), links: panels.links.hidden,
  silent: panels.looked.hidden, ink: inkOf(darkest() / darkest()),
}));
"""
_DRAWN = ("model", "statistics", "elements", "state", "hover", "matrix", "links", "looked",
          "heard", "sentence")  # fmt: skip


def drawn_in_node(data, setting=""):
    """Returns what the page's own scripts draw of the first sentence."""
    folder = importlib.resources.files("attention_jax.plotting") / "viewer_page"
    scripts = "\n".join((folder / f"{name}.js").read_text("utf-8") for name in _DRAWN)
    given = f"const GIVEN = {json.dumps(json.dumps(data))};"
    code = f"{given}\n{ELEMENTS}\n{scripts}\n{setting}\nshowSentence();\n{TOLD}"
    done = subprocess.run(
        ["node", "--eval", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def heard_data(numpy_rng, sound=lambda: b"RIFF"):
    canvas = heard(numpy_rng, frames=100, starts=[0.25], sound=sound)
    weights = numpy_rng.dirichlet(np.ones(100), 2)
    view = ViewedAttention(weights, ["one", "</s>"], "one", starts=[0.5])
    return viewer_data("T", [ViewerSentence(canvas.places, canvas=canvas)], {"v": [view]})


def of_class(drawn, name):
    return [found for _, found in drawn if name in (found.get("class") or "").split()]


def test_sound_and_its_attention_are_on_one_axis_of_time(numpy_rng):
    told = drawn_in_node(heard_data(numpy_rng))
    [spectrogram], [cells] = (of_class(told["matrix"], name) for name in ("spectrogram", "cells"))
    assert spectrogram["width"] == cells["width"] == 900  # nine pixels a frame
    [image] = [found for name, found in told["matrix"] if name == "image"]
    assert image["href"].startswith("data:image/png;base64,") and image["width"] == 900
    assert not of_class(told["matrix"], "column-label") and told["links"]
    # Of both drawings the same lines: by the attention at a half, in truth at a quarter.
    marks = [(one["class"], one["d"][:6]) for one in of_class(told["matrix"], "start")]
    assert marks == [("start in-truth", "M225.0"), ("start found", "M450.0")] * 2
    assert max(one["fill-opacity"] for one in of_class(told["matrix"], "ink")) == told["ink"]
    assert all(one["width"] > 0 for one in of_class(told["matrix"], "bar-of"))
    [[name, player]] = told["looked"]
    assert name == "audio" and player["src"] == "data:audio/wav;base64,UklGRg=="


def test_sound_is_shown_whatever_is_hidden_and_gold_starts_can_be(numpy_rng):
    hidden = "Object.assign(state, { matrix: false, gold: false });"
    told = drawn_in_node(heard_data(numpy_rng, sound=None), hidden)
    assert of_class(told["matrix"], "spectrogram") and told["links"] and told["silent"]
    assert of_class(told["matrix"], "found") and not of_class(told["matrix"], "in-truth")


def test_texts_have_tokens_above():
    view = ViewedAttention(np.eye(2), ["x", "y"], "x y")
    data = viewer_data("T", [ViewerSentence(["a", "b"])], {"v": [view]})
    told = drawn_in_node(data, "state.links = false;")
    [cells] = of_class(told["matrix"], "cells")
    assert len(of_class(told["matrix"], "column-label")) == 2 and cells["width"] == 52
    assert not of_class(told["matrix"], "spectrogram") and told["looked"] == []
