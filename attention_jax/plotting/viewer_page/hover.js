// What is pointed at: a cell (source and target), or one token. Both pictures show it at once.

let pointed = null;

/** Shows a place, in both pictures and as a number beside `anchor`, a rectangle on the screen. */
function pointAt(place, anchor) {
  pointed = { place, anchor };
  highlightMatrix(place);
  highlightLinks(place);
  highlightLooked(place);
  showTip(describe(place), anchor);
}

function pointAway() {
  if (pointed === null) return;
  pointed = null;
  highlightMatrix(null);
  highlightLinks(null);
  highlightLooked(null);
  byId("tip").hidden = true;
}

/** Where things move under the pointer it points at something else; the keys' cell moves along. */
function pointAfterScrolling() {
  const byKeys = document.activeElement?.classList.contains("cells") && pointed?.place === cursor;
  if (byKeys) pointAt(cursor, cellOnScreen(cursor));
  else pointAway();
}

/** Keeps pointing at the same place when the view changes under the pointer. */
function pointAgain() {
  if (pointed === null) return;
  const { place, anchor } = pointed;
  const { source, target } = shown.attention;
  const fits = (place.source ?? 0) < source.length && (place.target ?? 0) < target.length;
  if (fits) pointAt(place, anchor);
  else pointAway();
}

/** Returns the number that a place stands for, and what it is. */
function describe({ source = null, target = null }) {
  const { attention, coverage } = shown;
  if (target === null) {
    return { number: coverage[source].toFixed(2), tokens: [attention.source[source]], note: "coverage" };
  }
  if (source === null) {
    const best = strongest(attention, target);
    if (best === null) return { number: "0", tokens: [attention.target[target]], note: "no weight" };
    return { ...describe({ source: best, target }), note: "its strongest" };
  }
  return {
    number: asWeight(weightOf(attention, target, source)),
    tokens: [attention.source[source], attention.target[target]],
    note: goldNote(source, target),
  };
}

function goldNote(source, target) {
  const has = (links) => links.some((link) => link[0] === source && link[1] === target);
  if (!state.gold) return "";
  if (has(shown.gold.sure)) return "sure link";
  return has(shown.gold.possible) ? "possible link" : "";
}

function inWords({ number, tokens, note }) {
  return [number, tokens.map(printable).join(" – "), note].filter(Boolean).join(", ");
}

function showTip(described, anchor) {
  const { number, tokens, note } = described;
  const words = tokens.map((token) => isolated(printable(token)));
  if (words.length > 1) words.splice(1, 0, element("i", { text: "–" }));
  const tip = byId("tip");
  tip.replaceChildren(
    element("strong", { text: number }),
    element("span", { class: "tip-tokens" }, ...words),
    note ? element("small", { text: note }) : "",
  );
  tip.hidden = false;
  placeTip(tip, anchor);
}

/** Puts the tip above its anchor, or below where there is no room, and never off the screen. */
function placeTip(tip, anchor) {
  const { width, height } = tip.getBoundingClientRect();
  const room = document.documentElement.clientWidth;
  const middle = anchor.left + anchor.width / 2 - width / 2;
  const above = anchor.top - height - 8;
  tip.style.left = `${Math.max(6, Math.min(middle, room - width - 6))}px`;
  tip.style.top = `${above < 6 ? anchor.bottom + 8 : above}px`;
}

function announce(text) {
  byId("announcement").textContent = text;
}
