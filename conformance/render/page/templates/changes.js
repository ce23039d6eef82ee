// What changed between two columns, told apart as `diff` tells it on the command line.

const ROWS_AT_ONCE = 200;
const HELD_TO_ELSE = ["expectation-changed", "holds in both, but the releases are held to different things"];

/** @typedef {{kind: string, item: number, dtype: number, before: string, after: string, message: string}} Change */

/**
 * Return every change from one column to another.
 * @param {Model} model
 * @param {Column} from
 * @param {Column} to
 * @returns {Change[]}
 */
function changesBetween(model, from, to) {
  /** @type {Change[]} */
  const changes = [];
  model.index.dtypes.forEach((_, dtype) => {
    const [first, second] = [from.tracks[dtype], to.tracks[dtype]];
    for (const item of model.cases) {
      const before = statusOf(model, first, item.number);
      const after = statusOf(model, second, item.number);
      const kind = kindOf(model, from, to, dtype, item.number, before, after);
      const now = second?.message[item.number] ?? -1;
      const noted = now >= 0 ? now : first?.message[item.number] ?? -1; // of what is over, what was said before
      if (kind) changes.push({ kind, item: item.number, dtype, before, after, message: noted < 0 ? "" : model.index.messages[noted] });
    }
  });
  return changes;
}

/**
 * @param {Model} model
 * @param {Track | null} track
 * @param {number} item
 */
function statusOf(model, track, item) {
  const mark = track ? track.marks[item] : " ";
  return mark === " " ? "" : model.index.statuses[model.index.marks.indexOf(mark)];
}

/**
 * Return the kind of a change, or "" where nothing changed.
 * @param {Model} model
 * @param {Column} from
 * @param {Column} to
 * @param {number} dtype
 * @param {number} item
 * @param {string} before
 * @param {string} after
 */
function kindOf(model, from, to, dtype, item, before, after) {
  const notRun = (/** @type {string} */ status) => status === "not-run" || status === "unsupported";
  if (!before) return after && "added";
  if (!after) return isPlanned(model, to.build, item) && !notRun(before) ? "newly-not-run" : "removed";
  if (after === "not-run" && !notRun(before)) return "newly-not-run";
  if (editionOf(model, item, from.number) !== editionOf(model, item, to.number)) return "edited";
  const [was, now] = [from.tracks[dtype], to.tracks[dtype]];
  const broken = (/** @type {string} */ status) => RED.has(status) && status !== "fixed";
  if (broken(after)) {
    if (!broken(before)) return "regressed";
    if (was?.fingerprint[item] !== now?.fingerprint[item]) return "changed-failure";
  } else if (notRun(after)) {
    if (!notRun(before)) return "newly-not-run";
  } else if (after === "known") {
    if (before !== "known") return "newly-known";
  } else {
    if (notRun(before)) return "newly-run";
    if (before !== after) return "fixed";
    return variantOf(model, item, from.number) === variantOf(model, item, to.number) ? "" : HELD_TO_ELSE[0];
  }
  return was?.words[item] === now?.words[item] ? "" : "wording-changed";
}

/**
 * Whether a build planned a case on any device.
 * @param {Model} model
 * @param {Build} build
 * @param {number} item
 */
function isPlanned(model, build, item) {
  return model.columns.some((column) => column.build === build && column.tracks.some((track) => (track?.marks[item] || " ") !== " "));
}

/**
 * Return the page of what changed between two columns.
 * @param {Model} model
 * @param {View} view
 */
function changesSheet(model, view) {
  const from = model.columns.find((column) => column.id === view.from);
  const to = model.columns.find((column) => column.id === view.to);
  if (!from || !to) return missing("columns", `${view.from} → ${view.to}`, view);
  const changes = changesBetween(model, from, to);
  const sections = [...model.index.kinds, HELD_TO_ELSE].flatMap(([kind, meaning]) => {
    const own = changes.filter((entry) => entry.kind === kind);
    return own.length === 0 ? [] : [h("section", {}, h("h2", {}, `${kind.replaceAll("-", " ")} `, h("span", { class: "count" }, String(own.length))), h("p", { class: "hint" }, meaning), listed(model, view, from, to, own))];
  });
  return [
    h("h1", { tabindex: "-1" }, "What changed"),
    h("p", {}, `From ${longName(from)} to ${longName(to)}.`),
    ...sections,
    sections.length === 0 && h("p", {}, "Nothing changed."),
  ];
}

/**
 * @param {Model} model
 * @param {View} view
 * @param {Column} from
 * @param {Column} to
 * @param {Change[]} changes
 */
function listed(model, view, from, to, changes) {
  const body = h("tbody", {});
  let drawn = 0;
  function draw() {
    for (const entry of changes.slice(drawn, drawn + ROWS_AT_ONCE)) {
      const item = model.cases[entry.item];
      const held = (/** @type {Column} */ column) => heldBy(model, entry.item, column);
      const said = entry.kind === HELD_TO_ELSE[0] ? `${held(from) || "—"} → ${held(to) || "—"}` : entry.message;
      body.append(h("tr", {},
        h("th", { scope: "row" }, inward(view, { page: "case", id: item.id }, {}, item.title), h("code", {}, item.id)),
        h("td", {}, model.index.dtypes[entry.dtype]), h("td", { class: "status" }, entry.before ? sign(entry.before) : "—", " ", entry.before),
        h("td", { class: "status" }, entry.after ? sign(entry.after) : "—", " ", entry.after), h("td", { class: "said" }, said)));
    }
    drawn += ROWS_AT_ONCE;
  }
  draw();
  const more = h("button", { type: "button", click, hidden: drawn >= changes.length }, "Show more");
  function click() {
    draw();
    more.hidden = drawn >= changes.length;
  }
  const head = ["Case", "Dtype", "Before", "After", "What is said"].map((name) => h("th", { scope: "col" }, name));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": changes[0].kind },
    h("table", { class: "changes" }, h("thead", {}, h("tr", {}, ...head)), body), more);
}

/**
 * Return the conditions of a case that hold for a column, in words.
 * @param {Model} model
 * @param {number} item
 * @param {Column} column
 */
function heldBy(model, item, column) {
  const variant = variantOf(model, item, column.number);
  return (model.index.variants[item]?.[0] || []).filter((_, at) => variant[at] === "1").join(" and ");
}
