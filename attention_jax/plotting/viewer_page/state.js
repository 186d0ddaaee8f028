// What is being looked at, and its copy in the address, so that a link opens the same.

const state = {
  sentence: 0,
  view: 0,
  matrix: true,
  links: true,
  gold: true,
  sort: "index",
  descending: false,
  first: 0,
  second: Math.min(1, data.views.length - 1),
  query: "",
};
const FRESH = { ...state };

/** Changes what is looked at, and draws it. */
function update(changes) {
  Object.assign(state, changes);
  if (!state.matrix && !state.links) {
    // One picture is always there: hiding the last brings the other back.
    state["links" in changes ? "matrix" : "links"] = true;
  }
  render();
  rememberSoon();
}

let remembering = 0;

// Browsers refuse more than a few changes of the address a second, as while a key is held down.
function rememberSoon() {
  clearTimeout(remembering);
  remembering = setTimeout(() => history.replaceState(null, "", "#" + toHash(state)), 200);
}

function toHash(from) {
  const hash = new URLSearchParams({ sentence: from.sentence, view: data.views[from.view] });
  if (!from.matrix || !from.links) hash.set("show", from.matrix ? "matrix" : "links");
  if (!from.gold) hash.set("gold", "no");
  if (from.sort !== FRESH.sort) hash.set("sort", from.sort);
  if (from.sort === "disagreement") {
    hash.set("of", data.views[from.first]);
    hash.set("and", data.views[from.second]);
  }
  if (from.descending) hash.set("order", "descending");
  if (from.query) hash.set("search", from.query);
  return hash.toString();
}

/** Reads an address; what it does not say, or says of something else, is as at first. */
function fromHash(text) {
  const hash = new URLSearchParams(text.replace(/^#/, ""));
  const viewNamed = (name, otherwise) => {
    const view = data.views.indexOf(hash.get(name));
    return view < 0 ? otherwise : view;
  };
  const sentence = Number(hash.get("sentence") ?? 0);
  const sort = hash.get("sort");
  return {
    sentence: data.sentences[sentence] ? sentence : 0,
    view: viewNamed("view", FRESH.view),
    matrix: hash.get("show") !== "links",
    links: hash.get("show") !== "matrix",
    gold: hash.get("gold") !== "no",
    sort: sorts().some((one) => one.id === sort) ? sort : FRESH.sort,
    descending: hash.get("order") === "descending",
    first: viewNamed("of", FRESH.first),
    second: viewNamed("and", FRESH.second),
    query: hash.get("search") ?? "",
  };
}
