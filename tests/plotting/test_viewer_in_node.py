"""The attention viewer without a browser, but with its scripts: the keys' cell and its tip."""

import importlib.resources
import json
import shutil
import subprocess

import pytest

from attention_jax.plotting.figure import printable

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
