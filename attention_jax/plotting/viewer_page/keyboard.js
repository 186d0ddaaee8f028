// The keys that work everywhere, and those of the search field, the list and the matrix.

const ANYWHERE = {
  j: () => moveBy(1),
  ArrowDown: () => moveBy(1),
  k: () => moveBy(-1),
  ArrowUp: () => moveBy(-1),
  v: () => nextView(1),
  ArrowRight: () => nextView(1),
  V: () => nextView(-1),
  ArrowLeft: () => nextView(-1),
  "/": toSearch,
  m: () => toggle("matrix"),
  l: () => toggle("links"),
  g: () => toggle("gold"),
  "?": () => byId("help").showModal(),
  Escape: pointAway,
};

const IN_LIST = {
  Home: () => moveBy(-Infinity),
  End: () => moveBy(Infinity),
  PageDown: () => moveBy(10),
  PageUp: () => moveBy(-10),
};

const IN_MATRIX = {
  ArrowDown: [0, 1],
  ArrowUp: [0, -1],
  ArrowRight: [1, 0],
  ArrowLeft: [-1, 0],
};

function setUpKeyboard() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    if (event.target.matches("input, select, textarea")) return;
    const inList = event.target === byId("list") ? IN_LIST[event.key] : undefined;
    const act = inList ?? ANYWHERE[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  byId("search").addEventListener("keydown", leaveSearch);
}

function toSearch() {
  byId("search").focus();
  byId("search").select();
}

function leaveSearch(event) {
  if (event.isComposing) return; // these keys choose characters then
  if (event.key === "Escape" && state.query) update({ query: "" });
  else if (!["Escape", "Enter", "ArrowDown"].includes(event.key)) return;
  else byId("list").focus();
  event.preventDefault();
  if (event.key !== "Escape" && !order().includes(state.sentence)) moveBy(0);
}

/** In the matrix the arrows move from cell to cell; its other keys are those of everywhere. */
function followArrows(picture) {
  const { source, target } = shown.attention;
  cursor = {
    source: Math.min(cursor.source, source.length - 1),
    target: Math.min(cursor.target, target.length - 1),
  };
  const point = () => {
    revealCell(cursor);
    pointAt(cursor, cellOnScreen(cursor));
    announce(inWords(describe(cursor)));
  };
  picture.addEventListener("focus", () => picture.matches(":focus-visible") && point());
  picture.addEventListener("blur", pointAway);
  picture.addEventListener("keydown", (event) => {
    const step = IN_MATRIX[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    cursor = {
      source: Math.min(Math.max(cursor.source + step[0], 0), source.length - 1),
      target: Math.min(Math.max(cursor.target + step[1], 0), target.length - 1),
    };
    point();
  });
}
