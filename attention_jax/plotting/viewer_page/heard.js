// What was heard: the spectrogram above the matrix, column by column, and when words begin.

const HEARD_WIDTH = 900; // pixels on the page, where frames are not too many for it
const SPECTROGRAM_HEIGHT = 96;
const FRAME_WIDTHS = [2, 12]; // pixels of a frame, the least and the most

function isSound(sentence) {
  return Boolean(sentence.picture?.seconds);
}

/** Whether the sentence that is looked at is one that was heard. */
function isHeard() {
  return isSound(data.sentences[state.sentence]);
}

function frameWidth(frames) {
  const [least, most] = FRAME_WIDTHS;
  return Math.min(Math.max(Math.floor(HEARD_WIDTH / frames), least), most);
}

function spectrogramDrawing(width) {
  const { png, seconds } = data.sentences[state.sentence].picture;
  const height = SPECTROGRAM_HEIGHT;
  return drawing(
    "svg",
    { class: "spectrogram", width, height, role: "img", "aria-label": `Spectrogram of ${seconds.toFixed(2)} seconds` },
    drawing("image", { href: `data:image/png;base64,${png}`, width, height, preserveAspectRatio: "none" }),
    ...startMarks(width, height),
  );
}

/** Lines where words begin: by the attention, and in truth where that is known and asked for. */
function startMarks(width, height) {
  const { picture, views } = data.sentences[state.sentence];
  const line = (name) => (time) => {
    const x = ((time / picture.seconds) * width).toFixed(1);
    return drawing("path", { class: `start ${name}`, d: `M${x} 0V${height}` });
  };
  const gold = state.gold ? picture.starts.map(line("in-truth")) : [];
  return [...gold, ...views[state.view].starts.map(line("found"))];
}

function startLegend() {
  const { picture, views } = data.sentences[state.sentence];
  const sign = (name, text) => [element("i", { class: `start-mark ${name}` }), text];
  const found = views[state.view].starts.length ? sign("found", "words begin, by attention") : [];
  const gold = state.gold && picture.starts.length ? sign("in-truth", "in truth") : [];
  return found.length || gold.length ? element("span", { class: "legend" }, ...found, ...gold) : null;
}

function player(sound) {
  return element("audio", { controls: true, preload: "none", src: `data:audio/wav;base64,${sound}` });
}
