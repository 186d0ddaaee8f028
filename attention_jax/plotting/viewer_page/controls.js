// Buttons and fields: views, sorting, searching, what is shown, and help.

const KEYS = [
  ["↓ j", "next sentence"],
  ["↑ k", "sentence before"],
  ["→ v", "next view"],
  ["← V", "view before"],
  ["/", "search"],
  ["m", "matrix"],
  ["l", "links"],
  ["g", "gold links"],
  ["Tab", "to the matrix; there, arrows move from cell to cell"],
  ["?", "this help"],
];

function setUpControls() {
  byId("views").append(...data.views.map(viewButton));
  const options = (id, pairs) =>
    byId(id).append(...pairs.map(([value, text]) => element("option", { value, text })));
  options("sort", sorts().map(({ id, label }) => [id, label]));
  const views = data.views.map((name, view) => [view, name]);
  options("first", views);
  options("second", views);
  byId("keys").append(...KEYS.flatMap(([keys, does]) => keyLine(keys.split(" "), does)));
  listen();
}

function viewButton(name, view) {
  const button = element("button", { type: "button", "data-view": view, dir: "auto", text: name });
  button.addEventListener("click", () => update({ view }));
  return button;
}

function keyLine(keys, does) {
  const shapes = keys.map((text) => element("kbd", { text }));
  return [element("dt", {}, ...shapes), element("dd", { text: does })];
}

function listen() {
  const on = (id, event, change) => byId(id).addEventListener(event, change);
  on("search", "input", (event) => update({ query: event.target.value }));
  on("sort", "change", (event) => {
    const sort = event.target.value;
    // Of disagreement the most is what one looks for.
    update({ sort, descending: sort === "disagreement" });
    byId("list").scrollTop = 0;
  });
  on("direction", "click", () => update({ descending: !state.descending }));
  on("first", "change", (event) => update({ first: Number(event.target.value) }));
  on("second", "change", (event) => update({ second: Number(event.target.value) }));
  for (const name of ["matrix", "links", "gold"]) on(`toggle-${name}`, "click", () => toggle(name));
  on("help-button", "click", () => byId("help").showModal());
  on("skip", "click", (event) => {
    // The address holds the state, so a jump within the page must not write to it.
    event.preventDefault();
    byId("sentence").focus();
  });
}

function toggle(name) {
  update({ [name]: !state[name] });
}

function nextView(step) {
  const views = data.views.length;
  const view = (state.view + step + views) % views;
  update({ view });
  announce(`View ${data.views[view]}`);
}

function drawControls() {
  for (const button of byId("views").children) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.view) === state.view));
  }
  for (const name of ["matrix", "links", "gold"]) {
    byId(`toggle-${name}`).setAttribute("aria-pressed", String(state[name]));
  }
  for (const name of ["matrix", "links"]) byId(`toggle-${name}`).hidden = data.sentences.every(isSound);
  byId("toggle-gold").hidden = !data.sentences.some((_, index) => hasGold(index));
  byId("sort").value = state.sort;
  byId("first").value = String(state.first);
  byId("second").value = String(state.second);
  byId("pair").hidden = state.sort !== "disagreement";
  if (byId("search").value !== state.query) byId("search").value = state.query;
  const way = state.descending ? "Largest first" : "Smallest first";
  fill(byId("direction"), { text: state.descending ? "↓" : "↑", "aria-label": way, title: way }, []);
  byId("count").textContent = countInWords();
}

function countInWords() {
  const [listed, all] = [order().length, data.sentences.length];
  const found = listed < all ? `${thousands(listed)} of ` : "";
  return `${found}${thousands(all)} sentence${all === 1 ? "" : "s"}`;
}

function revealView() {
  // Not scrollIntoView, which would also make the Tab key go on from here.
  const strip = byId("views").getBoundingClientRect();
  const button = byId("views").querySelector('[aria-pressed="true"]').getBoundingClientRect();
  if (button.left < strip.left) byId("views").scrollLeft += button.left - strip.left;
  if (button.right > strip.right) byId("views").scrollLeft += button.right - strip.right;
}
