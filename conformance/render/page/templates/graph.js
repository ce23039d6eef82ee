// Draws the graph of a case from boxes and paths, whose places are computed in Python.

const EDGE = 6; // around the drawing, in CSS pixels

/**
 * Return the drawing of a graph, described in words for screen readers.
 * @param {Drawing} drawing
 */
function graphOf(drawing) {
  const [width, height] = drawing.size;
  const words = drawing.boxes.map(([, lines]) => lines.join(", "));
  const picture = svg("svg", {
    class: "graph", role: "img", "aria-label": `The graph: ${words.join("; ")}`, width: width + 2 * EDGE, height: height + 2 * EDGE,
    viewBox: `${-EDGE} ${-EDGE} ${width + 2 * EDGE} ${height + 2 * EDGE}`,
  }, arrowhead(), ...drawing.paths.map(([kind, points]) => pathOf(kind, points)), ...drawing.boxes.map(boxOf));
  return h("div", { class: "scroll drawing", tabindex: "0", role: "region", "aria-label": "Graph" }, picture);
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

/** @param {[string, string[], number, number, number, number]} box */
function boxOf([kind, lines, x, y, width, height]) {
  const top = y - (lines.length - 1) * 8 + 4;
  const texts = lines.map((line, number) => svg("text", { x, y: top + 16 * number, class: number ? "more" : "name" }, line));
  const round = kind === "node" ? height / 2 : 4;
  return svg("g", { class: `box ${kind}` }, svg("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: round }), ...texts);
}
