// The weights as a matrix: source across, target down, as in the heat maps; time where it was heard.

const BARS = 46; // pixels: the height of the coverage bars

let cells = null; // what highlighting needs of the matrix that is drawn
let cursor = { source: 0, target: 0 }; // where the arrow keys stand

function drawMatrix(panel) {
  const { source, target } = shown.attention;
  const size = cellSize(source.length);
  const grid = element(
    "div",
    { class: "matrix", style: { "--cell": `${size.tall}px` } },
    isHeard() ? spectrogramDrawing(source.length * size.wide) : columnLabels(source, size.wide),
    rowLabels(target),
    cellsDrawing(size),
    element("span", { class: "coverage-name", text: "coverage" }),
    coverageDrawing(size),
  );
  panel.replaceChildren(matrixHead(), element("div", { class: "scroll" }, grid));
  followPointer(grid, size);
  followArrows(grid.querySelector(".cells"));
}

function cellSize(columns) {
  if (isHeard()) return { wide: frameWidth(columns), tall: 20 };
  const side = columns <= 28 ? 26 : columns <= 45 ? 20 : 15;
  return { wide: side, tall: side };
}

/** The weight that is drawn in full ink: 1, but the largest of sound, which is spread over frames. */
function darkest() {
  return isHeard() ? shown.attention.step * LEVELS || 1 : 1;
}

function matrixHead() {
  return element(
    "header",
    { class: "panel-head" },
    element("h2", { text: "Matrix" }),
    isHeard() ? startLegend() : null,
    shown.gold.sure.length + shown.gold.possible.length && state.gold ? goldLegend() : null,
    inkLegend(),
  );
}

function goldLegend() {
  return element(
    "span",
    { class: "legend" },
    element("i", { class: "box sure" }),
    "sure",
    element("i", { class: "box possible" }),
    "possible",
  );
}

function inkLegend() {
  const steps = 24;
  const strip = drawing("svg", { width: steps * 4, height: 10, "aria-hidden": "true" });
  for (let step = 0; step < steps; step++) {
    const opacity = inkOf((step + 0.5) / steps);
    strip.append(drawing("rect", { class: "ink", x: step * 4, width: 4, height: 10, "fill-opacity": opacity }));
  }
  return element("span", { class: "legend scale" }, "0", strip, isHeard() ? asWeight(darkest()) : "1");
}

/** Labels wider than a cell stand on end, and all of them if these are many. */
function columnLabels(source, size) {
  const wide = source.map((token) => labelWidth(printable(token)) > size - 4);
  const many = wide.filter(Boolean).length > source.length / 4;
  const labels = source.map((token, place) => {
    const turned = many || wide[place] ? (isUpright(token) ? " upright" : " turned") : "";
    return element(
      "span",
      { class: `column-label${turned}`, "data-source": place, title: printable(token) },
      isolated(printable(token)),
    );
  });
  return element("div", { class: "column-labels" }, ...labels);
}

/** Chinese, Japanese and Korean are read from top to bottom without being turned. */
function isUpright(token) {
  return /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u.test(token);
}

function labelWidth(label) {
  return [...label].reduce((sum, char) => sum + (isUpright(char) ? 13 : 7.5), 0);
}

function rowLabels(target) {
  const labels = target.map((token, place) =>
    element(
      "span",
      { class: "row-label", "data-target": place, title: printable(token) },
      isolated(printable(token)),
    ),
  );
  return element("div", { class: "row-labels" }, ...labels);
}

function cellsDrawing(size) {
  const { source, target } = shown.attention;
  const [width, height] = [source.length * size.wide, target.length * size.tall];
  const mark = (name) => drawing("rect", { class: name, visibility: "hidden" });
  cells = { size, width, height, row: mark("cross"), column: mark("cross"), cell: mark("cell") };
  const picture = drawing(
    "svg",
    {
      class: "cells",
      width,
      height,
      tabindex: 0,
      role: "application",
      "aria-label": `Weights of ${target.length} target and ${source.length} source tokens. Arrow keys move from cell to cell.`,
    },
    ...inked(size),
    gridLines(width, height, size),
    cells.row,
    cells.column,
    ...(isHeard() ? startMarks(width, height) : []),
    ...(state.gold ? goldBoxes(size) : []),
    cells.cell,
  );
  return picture;
}

function inked(size) {
  const { attention } = shown;
  const most = darkest();
  const rects = [];
  attention.levels.forEach((level, place) => {
    if (!level) return;
    const target = Math.floor(place / attention.source.length);
    const source = place % attention.source.length;
    const opacity = inkOf(weightOf(attention, target, source) / most);
    const [x, y] = [source * size.wide, target * size.tall];
    rects.push(drawing("rect", { class: "ink", x, y, width: size.wide, height: size.tall, "fill-opacity": opacity }));
  });
  return rects;
}

function gridLines(width, height, size) {
  let path = "";
  if (!isHeard()) for (let x = size.wide; x < width; x += size.wide) path += `M${x} 0V${height}`;
  for (let y = size.tall; y < height; y += size.tall) path += `M0 ${y}H${width}`;
  return drawing("path", { class: "grid", d: path });
}

function goldBoxes(size) {
  const box = (name) => ([source, target]) =>
    drawing("rect", {
      class: `gold ${name}`,
      x: source * size.wide + 2,
      y: target * size.tall + 2,
      width: size.wide - 4,
      height: size.tall - 4,
      rx: 2,
    });
  return [...shown.gold.possible.map(box("possible")), ...shown.gold.sure.map(box("sure"))];
}

function coverageDrawing(size) {
  const { coverage } = shown;
  const top = isHeard() ? Math.max(...coverage) || 1 : Math.max(1.5, ...coverage);
  const picture = drawing("svg", {
    class: "coverage",
    width: coverage.length * size.wide,
    height: BARS,
    role: "img",
    "aria-label": `Coverage: ${Array.from(coverage, (value) => value.toFixed(2)).join(", ")}`,
  });
  const width = coverage.length * size.wide;
  const gap = Math.min(3, size.wide / 5);
  const levelOf = (value) => BARS - (value / top) * BARS;
  coverage.forEach((value, source) => {
    const y = levelOf(value);
    const [x, height] = [source * size.wide + gap, BARS - y];
    picture.append(drawing("rect", { class: "bar-of", "data-source": source, x, y, width: size.wide - 2 * gap, height }));
  });
  picture.append(drawing("path", { class: "base", d: `M0 ${BARS}H${width}` }));
  if (isHeard()) return picture; // no frame is there to be covered once
  picture.append(
    drawing("path", { class: "once", d: `M0 ${levelOf(1)}H${width}` }),
    drawing("text", { x: width + 4, y: levelOf(1) + 4, text: "1" }),
  );
  return picture;
}

/** Marks a row, a column, or the cell where they cross; nothing for null. */
function highlightMatrix(place) {
  const panel = byId("matrix");
  panel.querySelectorAll(".on").forEach((label) => label.classList.remove("on"));
  if (!cells || panel.hidden) return;
  const { size, width, height } = cells;
  const [source, target] = [place?.source ?? null, place?.target ?? null];
  const [x, y] = [source * size.wide, target * size.tall];
  frame(cells.row, target !== null, 0, y, width, size.tall);
  frame(cells.column, source !== null, x, 0, size.wide, height);
  frame(cells.cell, source !== null && target !== null, x, y, size.wide, size.tall);
  if (source !== null) panel.querySelector(`.column-label[data-source="${source}"]`)?.classList.add("on");
  if (target !== null) panel.querySelector(`.row-label[data-target="${target}"]`)?.classList.add("on");
}

function frame(rect, visible, x, y, width, height) {
  rect.setAttribute("visibility", visible ? "visible" : "hidden");
  const sizes = { x, y, width, height };
  for (const [name, value] of Object.entries(sizes)) rect.setAttribute(name, value);
}

/** Points at what the pointer is over: a cell, a label or a bar. */
function followPointer(grid, size) {
  const follow = (event) => {
    const label = event.target.closest("[data-source], [data-target]");
    if (event.target.closest(".cells")) {
      const place = cellAt(event, size);
      if (!place) return;
      cursor = place;
      pointAt(place, cellOnScreen(place));
    } else if (label) {
      const { source, target } = label.dataset;
      const place = source === undefined ? { target: Number(target) } : { source: Number(source) };
      pointAt(place, label.getBoundingClientRect());
    } else pointAway();
  };
  grid.addEventListener("pointermove", follow);
  grid.addEventListener("pointerdown", follow);
  grid.addEventListener("pointerleave", pointAway);
}

function cellAt(event, size) {
  const corner = byId("matrix").querySelector(".cells").getBoundingClientRect();
  const source = Math.floor((event.clientX - corner.left) / size.wide);
  const target = Math.floor((event.clientY - corner.top) / size.tall);
  const { attention } = shown;
  const inside = source >= 0 && target >= 0 && source < attention.source.length && target < attention.target.length;
  return inside ? { source, target } : null;
}

function cellOnScreen({ source, target }) {
  const corner = byId("matrix").querySelector(".cells").getBoundingClientRect();
  const { wide, tall } = cells.size;
  return new DOMRect(corner.left + source * wide, corner.top + target * tall, wide, tall);
}

/** Scrolls until a cell is in sight, and not under the labels. */
function revealCell(place) {
  const cell = cellOnScreen(place);
  const panel = byId("matrix").querySelector(".scroll");
  const labels = panel.querySelector(".row-labels").getBoundingClientRect();
  scrollBy(panel, "scrollLeft", cell.left - labels.right, cell.right - panel.getBoundingClientRect().right);
  const bar = document.querySelector(".bar").getBoundingClientRect();
  const main = byId("sentence").getBoundingClientRect();
  scrollBy(byId("sentence"), "scrollTop", cell.top - bar.bottom, cell.bottom - main.bottom);
}

function scrollBy(container, way, before, after) {
  const margin = 2 * cells.size.tall;
  if (before < margin) container[way] += before - margin;
  else if (after > -margin) container[way] += after + margin;
}
