// The changes between two columns: the kind of each case is looked up in the table of decisions.

const ROWS_AT_ONCE = 200;

/** @typedef {{kind: string, item: number, dtype: number, before: string, after: string, message: string}} Change */

/**
 * Return every change from one column to another.
 * @param {Column} from
 * @param {Column} to
 * @returns {Change[]}
 */
function changesBetween(from, to) {
  /** @type {Change[]} */
  const changes = [];
  model.index.dtypes.forEach((_, dtype) => {
    const [first, second] = [from.tracks[dtype], to.tracks[dtype]];
    for (const item of model.cases) {
      const kind = kindOf(from, to, dtype, item.number);
      if (!kind) continue;
      const now = second?.message[item.number] ?? -1;
      const noted = now >= 0 ? now : first?.message[item.number] ?? -1; // where there is no message now, the earlier one
      const [before, after] = [statusOf(first, item.number), statusOf(second, item.number)];
      changes.push({ kind, item: item.number, dtype, before, after, message: noted < 0 ? "" : model.index.messages[noted] });
    }
  });
  return changes;
}

/**
 * Return the kind of a change, or null where nothing changed.
 * @param {Column} from
 * @param {Column} to
 * @param {number} dtype
 * @param {number} item
 */
function kindOf(from, to, dtype, item) {
  const [was, now] = [from, to].map((column) => ({
    standing: statusNamed(statusOf(column.tracks[dtype], item))?.verdict ?? (revisionOf(item, column) === null ? "absent" : "off-target"),
    /** @type {Record<string, unknown>} */
    differing: {
      revision: revisionOf(item, column), failure: column.tracks[dtype]?.fingerprint[item],
      wording: column.tracks[dtype]?.wording[item], expectation: variantOf(item, column),
    },
  }));
  const degree = model.index.degrees.find((name) => was.differing[name] !== now.differing[name]) ?? "nothing";
  return model.index.decisions[was.standing][now.standing][degree];
}

/** Return the page of what changed between two columns. @param {View} view */
function changesSheet(view) {
  const from = model.columns.find((column) => column.id === view.from);
  const to = model.columns.find((column) => column.id === view.to);
  if (!from || !to) return missing("columns", `${view.from} → ${view.to}`, view);
  const changes = changesBetween(from, to);
  const sections = model.index.kinds.flatMap(([kind, meaning]) => {
    const own = changes.filter((entry) => entry.kind === kind);
    return own.length === 0 ? [] : [h("section", {}, h("h2", {}, `${kind.replaceAll("-", " ")} `, h("span", { class: "count" }, String(own.length))), h("p", { class: "hint" }, meaning), changeTable(view, from, to, own))];
  });
  return [
    h("h1", { tabindex: "-1" }, "What changed"),
    h("p", {}, `From ${longName(from)} to ${longName(to)}.`),
    ...sections,
    sections.length === 0 && h("p", {}, "Nothing changed."),
  ];
}

/** @param {View} view @param {Column} from @param {Column} to @param {Change[]} changes */
function changeTable(view, from, to, changes) {
  const region = scrollingTable(changes[0].kind, ["Case", "Dtype", "Before", "After", "Message"], [], "changes");
  const more = h("button", { type: "button", click: draw }, "Show more");
  let drawn = 0;
  function draw() {
    for (const entry of changes.slice(drawn, drawn + ROWS_AT_ONCE)) {
      const item = model.cases[entry.item];
      const conditions = [from, to].map((column) => conditionOf(entry.item, column) || "—");
      const message = entry.message || (conditions[0] === conditions[1] ? "" : conditions.join(" → "));
      region.querySelector("tbody")?.append(h("tr", {},
        h("th", { scope: "row" }, inward(view, { page: "case", id: item.id }, {}, item.title), h("code", {}, item.id)),
        h("td", {}, model.index.dtypes[entry.dtype]), h("td", { class: "status" }, entry.before ? sign(entry.before) : "—", " ", entry.before),
        h("td", { class: "status" }, entry.after ? sign(entry.after) : "—", " ", entry.after), h("td", { class: "message" }, message)));
    }
    drawn += ROWS_AT_ONCE;
    more.hidden = drawn >= changes.length;
  }
  draw();
  region.append(more);
  return region;
}
