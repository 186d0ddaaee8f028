// Where a word has looked: the source's picture, with the weights of one target token laid over it.

const LOOKED_HEIGHT = 160; // pixels on the page
const LOOKED_WIDTH = 900;

let boxes = null; // the rectangles of the picture that is drawn, one for each source position

function drawLooked() {
  const panel = byId("looked");
  const { picture, sound } = data.sentences[state.sentence];
  panel.hidden = isHeard() ? !sound : !picture;
  boxes = null;
  if (panel.hidden) return panel.replaceChildren();
  if (isHeard()) return panel.replaceChildren(player(sound));
  const { width, height } = picture;
  const scale = Math.min(LOOKED_HEIGHT / height, LOOKED_WIDTH / width);
  boxes = picture.boxes.map(([left, top, right, bottom], source) =>
    drawing("rect", {
      class: "looked-at",
      "data-source": source,
      x: left,
      y: top,
      width: right - left,
      height: bottom - top,
      "fill-opacity": 0,
    }),
  );
  const shownPicture = drawing(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width: width * scale, height: height * scale, role: "img", "aria-label": "The source's picture" },
    drawing("image", { href: `data:image/png;base64,${picture.png}`, width, height }),
    ...boxes,
  );
  panel.replaceChildren(shownPicture);
  shownPicture.addEventListener("pointermove", (event) => {
    const { source } = event.target.dataset;
    if (source !== undefined) pointAt({ source: Number(source) }, event.target.getBoundingClientRect());
  });
  shownPicture.addEventListener("pointerleave", pointAway);
}

/** Lays the weights of a target token over the picture, as shares of its largest; or marks a place. */
function highlightLooked(place) {
  if (!boxes) return;
  const [source, target] = [place?.source ?? null, place?.target ?? null];
  const weights = boxes.map((_, at) => (target === null ? 0 : weightOf(shown.attention, target, at)));
  const most = Math.max(...weights) || 1;
  boxes.forEach((box, at) => {
    box.setAttribute("fill-opacity", (0.75 * weights[at]) / most);
    box.classList.toggle("on", at === source);
  });
}
