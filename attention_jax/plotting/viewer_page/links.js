// The weights as links between two rows of tokens: the more opaque a line, the larger its weight.

const LINES = 190; // pixels between the rows
const FAINTEST = 0.02; // a line any fainter is not seen

function drawLinks(panel) {
  const { source, target } = shown.attention;
  const stage = element(
    "div",
    { class: "stage" },
    tokenRow("source", source),
    drawing("svg", { class: "lines", height: LINES, role: "img", "aria-label": linksInWords() }),
    tokenRow("target", target),
  );
  const head = element("header", { class: "panel-head" }, element("h2", { text: "Links" }));
  panel.replaceChildren(head, element("div", { class: "scroll" }, stage));
  drawLines(stage);
  followTokens(stage);
}

/** For who does not see the lines: where each target token looks most. */
function linksInWords() {
  const { attention } = shown;
  const one = (token, target) => {
    const source = strongest(attention, target);
    return source === null ? "" : `${printable(token)}: ${printable(attention.source[source])}`;
  };
  return attention.target.map(one).filter(Boolean).join("; ");
}

/** A row of tokens, in the direction in which they are read. */
function tokenRow(side, tokens) {
  const most = Math.max(1.5, ...shown.coverage);
  const chips = tokens.map((token, place) =>
    element(
      "span",
      { class: "token", [`data-${side}`]: place },
      side === "source" ? coverageBar(shown.coverage[place] / most) : null,
      isolated(printable(token)),
      element("small", { "aria-hidden": "true" }),
    ),
  );
  return element("div", { class: `tokens ${side}`, dir: directionOf(tokens) }, ...chips);
}

function coverageBar(share) {
  return element("i", { class: "token-bar", style: { "--share": share.toFixed(3) } });
}

/** Draws the lines between the tokens where the browser has put them. */
function drawLines(stage) {
  const [from, to] = [centres(stage, "source"), centres(stage, "target")];
  const lines = stage.querySelector(".lines");
  lines.setAttribute("width", stage.scrollWidth);
  lines.replaceChildren(...(state.gold ? goldLines(from, to) : []), ...weightLines(from, to));
}

function centres(stage, side) {
  const left = stage.getBoundingClientRect().left;
  return Array.from(stage.querySelectorAll(`.token[data-${side}]`), (token) => {
    const box = token.getBoundingClientRect();
    return box.left + box.width / 2 - left;
  });
}

function curve(from, to) {
  return `M${from.toFixed(1)} 0C${from.toFixed(1)} ${LINES * 0.5} ${to.toFixed(1)} ${LINES * 0.5} ${to.toFixed(1)} ${LINES}`;
}

function goldLines(from, to) {
  const line = (name) => ([source, target]) =>
    drawing("path", {
      class: `gold ${name}`,
      d: curve(from[source], to[target]),
      "data-source": source,
      "data-target": target,
    });
  return [...shown.gold.possible.map(line("possible")), ...shown.gold.sure.map(line("sure"))];
}

/** The lines, strongest last and so on top; each with a wide unseen one that is easy to hit. */
function weightLines(from, to) {
  const { attention } = shown;
  const found = [];
  for (let target = 0; target < to.length; target++) {
    for (let source = 0; source < from.length; source++) {
      const weight = weightOf(attention, target, source);
      if (weight >= FAINTEST) found.push({ source, target, weight });
    }
  }
  found.sort((one, other) => one.weight - other.weight);
  return found.map(({ source, target, weight }) => {
    const d = curve(from[source], to[target]);
    return drawing(
      "g",
      { class: "link", "data-source": source, "data-target": target },
      drawing("path", { class: "line", d, "stroke-opacity": weight.toFixed(3) }),
      drawing("path", { class: "hit", d }),
    );
  });
}

/** Makes the lines of a place stand out, and writes the weights at their other ends. */
function highlightLinks(place) {
  const stage = byId("links").querySelector(".stage");
  if (!stage || !state.links) return;
  const { source = null, target = null } = place ?? {};
  stage.classList.toggle("pointing", place !== null);
  const meant = (data) =>
    (source === null || Number(data.source) === source) &&
    (target === null || Number(data.target) === target);
  stage.querySelectorAll(".lines [data-source]").forEach((line) => {
    line.classList.toggle("on", place !== null && meant(line.dataset));
  });
  stage.querySelectorAll(".token").forEach((token) => {
    const isSource = token.dataset.source !== undefined;
    const own = isSource ? source : target;
    const number = Number(isSource ? token.dataset.source : token.dataset.target);
    token.classList.toggle("on", place !== null && own === number);
    token.querySelector("small").textContent = place === null ? "" : endWeight(isSource, number, source, target);
  });
}

/** The weight between a token and the one that is pointed at on the other side, if any is. */
function endWeight(isSource, number, source, target) {
  if (isSource ? target === null || source !== null : source === null || target !== null) return "";
  const weight = isSource ? weightOf(shown.attention, target, number) : weightOf(shown.attention, number, source);
  return weight >= 0.01 ? weight.toFixed(2) : "";
}

function followTokens(stage) {
  stage.addEventListener("pointermove", (event) => {
    const link = event.target.closest(".link");
    const token = event.target.closest(".token");
    if (link) {
      const { source, target } = link.dataset;
      const at = new DOMRect(event.clientX, event.clientY, 0, 0);
      pointAt({ source: Number(source), target: Number(target) }, at);
    } else if (token) {
      const { source, target } = token.dataset;
      const place = source === undefined ? { target: Number(target) } : { source: Number(source) };
      pointAt(place, token.getBoundingClientRect());
    } else pointAway();
  });
  stage.addEventListener("pointerleave", pointAway);
}
