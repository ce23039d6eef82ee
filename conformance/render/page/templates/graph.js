// Draws the graph of a case from boxes and paths, whose places are computed in Python.

const EDGE = 6; // around the drawing, in CSS pixels

/**
 * Return the drawing of a graph, described in words for screen readers; where backward changes it, with buttons that show it
 * before and after.
 * @param {Drawing} drawing
 */
function graphOf(drawing) {
  const region = h("div", { class: "scroll drawing", tabindex: "0", role: "region", "aria-label": "Graph" }, pictureOf(drawing, false));
  if (drawing.boxes.every((box) => box[6] === null)) return region;
  const buttons = ["before backward", "at the end"].map((name, place) =>
    h("button", { type: "button", "aria-pressed": String(place === 1), click: () => show(place) }, name));
  /** @param {number} chosen */
  function show(chosen) {
    buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(place === chosen)));
    region.replaceChildren(pictureOf(drawing, chosen === 0));
  }
  return h("div", {}, h("p", { class: "line when" }, "The graph ", ...buttons), region);
}

/** @param {Drawing} drawing @param {boolean} isBefore */
function pictureOf(drawing, isBefore) {
  const [width, height] = drawing.size;
  const boxes = drawing.boxes.map((box) => /** @type {DrawnBox} */ (isBefore && box[6] ? [box[0], box[6], ...box.slice(2)] : box));
  const words = boxes.filter(([, lines]) => lines.length > 0).map(([, lines]) => lines.join(", "));
  return svg("svg", {
    class: "graph", role: "img", "aria-label": `The graph: ${words.join("; ")}`, width: width + 2 * EDGE, height: height + 2 * EDGE,
    viewBox: `${-EDGE} ${-EDGE} ${width + 2 * EDGE} ${height + 2 * EDGE}`,
  }, arrowhead(), ...drawing.paths.map(([kind, points]) => pathOf(kind, points)), ...boxes.map(boxOf));
}

function arrowhead() {
  const tip = svg("path", { d: "M0 0 L8 4 L0 8 z", class: "tip" });
  return svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" }, tip));
}

/** @param {string} kind @param {[number, number][]} points */
function pathOf(kind, points) {
  if (points.length < 2) return null;
  let d = `M${points[0].join(" ")}`;
  for (let at = 1; at < points.length; at += 1) {
    const [[x0, y0], [x1, y1]] = [points[at - 1], points[at]];
    const middle = (y0 + y1) / 2;
    d += ` C${x0} ${middle} ${x1} ${middle} ${x1} ${y1}`;
  }
  return svg("path", { d, class: `edge ${kind}`, ...(kind === "flow" ? { "marker-end": "url(#arrow)" } : {}) });
}

/** Return a box; one that is not there yet has no text. @param {DrawnBox} box */
function boxOf([kind, lines, x, y, width, height]) {
  const top = y - (lines.length - 1) * 8 + 4;
  const texts = lines.map((line, number) => svg("text", { x, y: top + 16 * number, class: classOf(line, number) }, line));
  const round = kind === "node" ? 16 : 4;
  return svg("g", { class: lines.length ? `box ${kind}` : "box later" }, svg("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: round }), ...texts);
}

/** @param {string} line @param {number} number */
function classOf(line, number) {
  if (number === 0) return "name";
  return line.endsWith("written to since") ? "more written" : "more";
}
