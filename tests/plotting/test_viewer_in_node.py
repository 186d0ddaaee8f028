"""The attention viewer without a browser, but with its scripts: the keys' cell and its tip."""

import importlib.resources
import shutil
import subprocess

import pytest

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
const highlightMatrix = () => {}, highlightLinks = () => {}, revealCell = () => {};
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
