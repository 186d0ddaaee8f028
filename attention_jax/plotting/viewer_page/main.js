// Drawing what has changed, and the beginning of it all.

const drawn = {};

/** Tells whether something that a part is drawn from differs from what it was drawn from. */
function changed(part, ...inputs) {
  const now = JSON.stringify(inputs);
  if (drawn[part] === now) return false;
  drawn[part] = now;
  return true;
}

function render() {
  const { sentence, view, matrix, links, gold, sort, descending, query, first, second } = state;
  if (changed("sentence", sentence, view, matrix, links, gold, sort, first, second)) drawSentence(sentence);
  drawControls();
  sizeList();
  if (changed("view", view)) revealView();
  if (changed("place", sentence, sort, descending, query, first, second)) revealRow();
  drawRows();
}

/** Draws the sentence anew, keeping the focus and the place pointed at if it is still the same. */
function drawSentence(sentence) {
  const focused = document.activeElement?.classList.contains("cells");
  const again = pointed;
  const same = !changed("pointed", sentence);
  showSentence();
  if (focused) byId("matrix").querySelector(".cells")?.focus();
  if (again === null) pointAway(); // focus() shows its cell, even one that was dismissed
  pointed = again;
  if (same) pointAgain();
  else pointAway();
}

function start() {
  byId("title").textContent = data.title;
  setUpList();
  setUpControls();
  setUpKeyboard();
  Object.assign(state, fromHash(location.hash));
  render();
  addEventListener("hashchange", () => update(fromHash(location.hash)));
  addEventListener("scroll", pointAfterScrolling, { passive: true, capture: true });
  new ResizeObserver(() => {
    const stage = byId("links").querySelector(".stage");
    if (stage) drawLines(stage);
  }).observe(byId("links"));
}

start();
