// The sentence that is looked at: its texts, its scores and its pictures.

const LONG = 160; // characters of a source that is set smaller

let shown = null; // its attention, coverage and gold links

function showSentence() {
  const attention = attentionOf(state.sentence, state.view);
  shown = {
    attention,
    coverage: coverageOf(attention),
    gold: goldOf(state.sentence, state.view),
  };
  drawAbout();
  drawHeading();
  drawLooked();
  // Hundreds of frames are no tokens to draw links between.
  drawPicture("matrix", drawMatrix, state.matrix || isHeard());
  drawPicture("links", drawLinks, state.links && !isHeard());
}

function drawPicture(name, draw, isShown) {
  const panel = byId(name);
  panel.hidden = !isShown;
  if (!isShown) panel.replaceChildren();
  else if (isEmpty()) panel.replaceChildren(element("p", { class: "empty", text: "No tokens to show." }));
  else draw(panel);
}

function isEmpty() {
  return !shown.attention.source.length || !shown.attention.target.length;
}

function drawHeading() {
  const sentence = data.sentences[state.sentence];
  const source = sourceText(sentence);
  byId("heading").replaceChildren(
    element(
      "p",
      { class: "place" },
      element("b", { class: "key", dir: "auto", text: sentence.key }),
      element("span", { text: `${thousands(state.sentence + 1)} of ${thousands(data.sentences.length)}` }),
      ...scoreChips(),
    ),
    element("p", {
      class: source.length > LONG ? "source-text long" : "source-text",
      dir: directionOf(shown.attention.source),
      text: source,
    }),
    element("dl", { class: "texts" }, ...targetTexts(sentence)),
  );
}

/** The reference and the output; a forced target needs no second line where it is the reference. */
function targetTexts(sentence) {
  const { target, output } = sentence.views[state.view];
  const lines = [];
  if (sentence.reference) lines.push(textLine("Reference", sentence.reference));
  const text = output || textOf(shown.attention.target);
  if (output || target) lines.push(textLine("Output", text));
  else if (!sentence.reference) lines.push(textLine("Target", text));
  return lines.flat();
}

function textLine(name, text) {
  return [element("dt", { text: name }), element("dd", { dir: directionOf([text]), text })];
}

function scoreChips() {
  const scores = Object.entries(scoresOf(state.sentence, state.view));
  const chips = scores.map(([name, value]) => [name, asScore(value)]);
  if (state.sort === "disagreement") chips.push(["disagreement", stateDisagreement(state.sentence).toFixed(2)]);
  return chips.map(chip);
}

function chip([name, value]) {
  return element("span", { class: "chip" }, name, element("b", { text: value }));
}

/** What is known of the view over more than a sentence; nothing of most. */
function drawAbout() {
  const known = Object.entries(data.about[state.view]);
  byId("about").hidden = !known.length;
  byId("about").replaceChildren(
    ...known.map(([name, value]) => chip([name.replaceAll("_", " "), asScore(value)])),
  );
}

function thousands(number) {
  return number.toLocaleString("en");
}
