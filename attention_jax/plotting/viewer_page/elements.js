// Making elements. Texts are set as text, never parsed, so that a token cannot become markup.

const SVG = "http://www.w3.org/2000/svg";

/** Makes an HTML element; `text`, `class` and `style` (custom properties) besides attributes. */
function element(name, properties = {}, ...children) {
  return fill(document.createElement(name), properties, children);
}

function drawing(name, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, name), properties, children);
}

function fill(made, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") made.textContent = value;
    else if (name === "style") setStyle(made, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function setStyle(made, properties) {
  for (const [name, value] of Object.entries(properties)) made.style.setProperty(name, value);
}

function byId(id) {
  return document.getElementById(id);
}

/** Text whose direction is its own, and which leaves that of its surroundings alone. */
function isolated(text) {
  return element("bdi", { text });
}
