// The list of sentences. Only the rows in sight exist, so its length costs nothing.

const ROW = 54; // pixels, as in the style sheet
const BEYOND = 6; // rows that are drawn above and below what is in sight

const space = element("div", { class: "list-space", role: "presentation" });

function setUpList() {
  const longest = Math.max(...data.sentences.map((sentence) => sentence.key.length));
  setStyle(byId("list"), { "--key-width": `${0.85 * Math.min(Math.max(longest, 3) + 1, 12)}ch` });
  byId("list").append(space);
  byId("list").addEventListener("scroll", drawRows, { passive: true });
  byId("list").addEventListener("click", (event) => {
    const row = event.target.closest("[data-index]");
    if (row) update({ sentence: Number(row.dataset.index) });
  });
  new ResizeObserver(drawRows).observe(byId("list"));
}

function drawRows() {
  const list = byId("list");
  const listed = order();
  const from = Math.max(0, Math.floor(list.scrollTop / ROW) - BEYOND);
  const to = Math.min(listed.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + BEYOND);
  const rows = [];
  for (let place = from; place < to; place++) rows.push(row(listed[place], place, listed.length));
  if (!listed.length) rows.push(element("p", { class: "empty", text: "No sentence has these words." }));
  space.replaceChildren(...rows);
  const here = byId(`row-${state.sentence}`);
  if (here) list.setAttribute("aria-activedescendant", here.id);
  else list.removeAttribute("aria-activedescendant");
}

function row(index, place, all) {
  const sentence = data.sentences[index];
  return element(
    "div",
    {
      id: `row-${index}`,
      class: "row",
      role: "option",
      "aria-selected": String(index === state.sentence),
      "aria-setsize": all,
      "aria-posinset": place + 1,
      "data-index": index,
      style: { top: `${place * ROW}px` },
    },
    element("span", { class: "row-key", text: sentence.key, dir: "auto", title: sentence.key }),
    element("span", { class: "row-source", text: sourceText(sentence), dir: "auto" }),
    element("span", { class: "row-value", text: sortValue(index) }),
    element("span", { class: "row-target", text: targetText(sentence, state.view), dir: "auto" }),
  );
}

/** Makes room for all rows that are listed, so that any of them can be scrolled to. */
function sizeList() {
  space.style.height = `${Math.max(order().length, 1) * ROW}px`;
}

/** Brings the sentence into sight, with one more beyond it. */
function revealRow() {
  const list = byId("list");
  const place = order().indexOf(state.sentence);
  if (place < 0) return;
  const top = place * ROW;
  if (top - ROW < list.scrollTop) list.scrollTop = top - ROW;
  else if (top + 2 * ROW > list.scrollTop + list.clientHeight) {
    list.scrollTop = top + 2 * ROW - list.clientHeight;
  }
}
