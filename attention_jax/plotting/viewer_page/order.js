// Which sentences are listed, and in which order.

/** The ways to sort: each with the number that it sorts by, undefined where there is none. */
function sorts() {
  const ways = [
    { id: "index", label: "Index", of: (index) => index },
    { id: "length", label: "Length", of: (index) => data.sentences[index].source.length },
  ];
  for (const name of scoreNames()) {
    ways.push({ id: `score ${name}`, label: name, of: (index) => scoresOf(index, state.view)[name] });
  }
  if (data.views.length > 1) {
    ways.push({ id: "disagreement", label: "Disagreement of views", of: stateDisagreement });
  }
  return ways;
}

function sortNow() {
  return sorts().find((way) => way.id === state.sort);
}

/** The number that a sentence is sorted by, as text; nothing where that is its place. */
function sortValue(index) {
  const value = sortNow().of(index);
  if (state.sort === "index") return "";
  if (value === undefined) return "–";
  return state.sort === "disagreement" ? value.toFixed(2) : asScore(value);
}

let names = null;

function scoreNames() {
  if (names === null) {
    const found = new Set();
    data.sentences.forEach((sentence) => {
      Object.keys(sentence.scores).forEach((name) => found.add(name));
      for (const view of sentence.views) {
        Object.keys(view.scores).forEach((name) => found.add(name));
      }
    });
    names = [...found].sort();
  }
  return names;
}

const disagreements = new Map();

function stateDisagreement(index) {
  const pair = `${Math.min(state.first, state.second)} ${Math.max(state.first, state.second)}`;
  if (!disagreements.has(pair)) {
    disagreements.set(
      pair,
      data.sentences.map((_, each) => disagreementOf(each, state.first, state.second)),
    );
  }
  return disagreements.get(pair)[index];
}

let ordered = [];
let orderedBy = "";

/** The indices of the sentences that are listed, in order; found anew only where it changes. */
function order() {
  const { query, sort, descending, first, second, view } = state;
  const by = JSON.stringify([query, sort, descending, first, second, view]);
  if (by !== orderedBy) {
    ordered = sorted(matching(query), sortNow().of, descending ? -1 : 1);
    orderedBy = by;
  }
  return ordered;
}

function sorted(indices, of, sign) {
  const keys = new Map(indices.map((index) => [index, of(index)]));
  return indices.sort((one, other) => {
    const [a, b] = [keys.get(one), keys.get(other)];
    if (a === undefined || b === undefined) return (a === undefined) - (b === undefined) || one - other;
    return sign * (a - b) || one - other;
  });
}

function matching(query) {
  const words = folded(query).split(/\s+/u).filter(Boolean);
  const indices = data.sentences.map((_, index) => index);
  return indices.filter((index) => words.every((word) => searchable(index).includes(word)));
}

const texts = [];

/** All that a sentence can be found by. */
function searchable(index) {
  if (texts[index] === undefined) {
    const { key, source, target, reference, text, views } = data.sentences[index];
    const rows = [source, target, ...views.map((view) => view.target ?? [])];
    const parts = [key, text, reference, ...views.map((view) => view.output)];
    for (const row of rows) parts.push(row.join(" "), textOf(row));
    texts[index] = folded(parts.join("\n"));
  }
  return texts[index];
}

function folded(text) {
  return text.normalize("NFKC").toLocaleLowerCase();
}

/** Moves by so many places in the list; from outside of it, to its first. */
function moveBy(places) {
  const listed = order();
  if (!listed.length) return;
  const from = listed.indexOf(state.sentence);
  const to = from < 0 ? 0 : Math.min(Math.max(from + places, 0), listed.length - 1);
  update({ sentence: listed[to] });
  announce(`Sentence ${to + 1} of ${listed.length}: ${sourceText(data.sentences[listed[to]])}`);
}
