// What the page was given, and how it is read.

const data = JSON.parse(document.getElementById("data").textContent);

const LEVELS = 255;
const decoded = new Map();

/** The attention of one sentence in one view, decoded once. */
function attentionOf(index, view) {
  const place = index * data.views.length + view;
  if (!decoded.has(place)) decoded.set(place, decode(data.sentences[index], view));
  return decoded.get(place);
}

function decode(sentence, view) {
  const given = sentence.views[view];
  return {
    source: sentence.source,
    target: given.target ?? sentence.target,
    step: given.scale / LEVELS,
    levels: Uint8Array.from(atob(given.weights), (char) => char.charCodeAt(0)),
  };
}

function weightOf(attention, target, source) {
  return attention.levels[target * attention.source.length + source] * attention.step;
}

/** How dark a weight is: the opacity at which ink gives the heat maps' colour. */
function inkOf(weight) {
  return data.ink[Math.round(Math.min(weight, 1) * LEVELS)];
}

/** Gold links count the sentence's own target tokens: none where the view has others. */
function goldOf(index, view) {
  const sentence = data.sentences[index];
  const fits = sentence.views[view].target === null;
  return fits
    ? { sure: sentence.sure, possible: sentence.possible }
    : { sure: [], possible: [] };
}

function hasGold(index) {
  const { sure, possible, picture } = data.sentences[index];
  return sure.length + possible.length + (picture?.starts.length ?? 0) > 0;
}

/** The scores of a sentence in a view; the view's own stand before what all views share. */
function scoresOf(index, view) {
  const sentence = data.sentences[index];
  return { ...sentence.views[view].scores, ...sentence.scores };
}

// Zero width, by Unicode's Default_Ignorable_Code_Point, or blank; plotting/figure.py has it too.
const UNSEEN = /^[\p{DI}\u2800\ufff9-\ufffb]+$/u;

/** A token as a label: what cannot be seen is made visible. */
function printable(token) {
  const shown = token.replace(/[\p{Cc}\u2028\u2029]/gu, " ").replace(/^\p{Z}+|\p{Z}+$/gu, "");
  if (UNSEEN.test(shown)) {
    const numbers = [...shown].map((char) => char.codePointAt(0).toString(16).toUpperCase());
    return numbers.map((number) => `U+${number.padStart(4, "0")}`).join(" ");
  }
  return shown || "␣";
}

/** Tokens as running text: pieces and characters are joined, words get their spaces. */
function textOf(tokens) {
  if (tokens.some((token) => token.startsWith("▁"))) {
    return tokens.join("").replaceAll("▁", " ").trim();
  }
  const single = tokens.filter((token) => [...token].length === 1).length;
  // A joiner or a variation selector belongs to the character before it.
  const shown = tokens.map((token) => (UNSEEN.test(token) ? token : printable(token)));
  return shown.join(single > 0.75 * tokens.length ? "" : " ");
}

/** The source as text: as it was given, else its tokens. */
function sourceText(sentence) {
  return sentence.text || textOf(sentence.source);
}

/** What a view writes, as text: its output, the reference that it is forced to, else its tokens. */
function targetText(sentence, view) {
  const { output, target } = sentence.views[view];
  if (output) return output;
  return (target === null && sentence.reference) || textOf(target ?? sentence.target);
}

const RIGHT_TO_LEFT =
  /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/gu;

/** The direction in which tokens are read, by the greater part of their letters. */
function directionOf(tokens) {
  const text = tokens.join("");
  const letters = text.match(/\p{L}/gu)?.length ?? 0;
  const against = text.match(RIGHT_TO_LEFT)?.length ?? 0;
  return against * 2 > letters ? "rtl" : "ltr";
}
