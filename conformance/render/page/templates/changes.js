// The changes between two columns: the kind of each case is looked up in the table of decisions.

const ROWS_AT_ONCE = 200;
const MOST_OTHERS = 24; // columns that a link leads to; there is a choice of all

/** @typedef {{kind: string, item: number, dtype: number, before: string, after: string, message: string, words: Words[], advice: string[]}} Change with what code may have to change */

/**
 * Return every change from one column to another.
 * @param {Column} from
 * @param {Column} to
 * @param {Expected} [expected]
 * @param {RuleBackground[]} [rules]
 * @returns {Change[]}
 */
function changesBetween(from, to, expected = {}, rules = []) {
  /** @type {Change[]} */
  const changes = [];
  model.index.dtypes.forEach((_, dtype) => {
    const [first, second] = [from.tracks[dtype], to.tracks[dtype]];
    for (const item of model.cases) {
      const decided = kindOf(from, to, dtype, item.number);
      const [kind, words] = decided === model.index.expectation ? expectationOf(from, to, item.number, expected) : [decided, []];
      if (!kind) continue;
      const now = second?.message[item.number] ?? -1;
      const noted = now >= 0 ? now : first?.message[item.number] ?? -1; // where there is no message now, the earlier one
      const [before, after] = [statusOf(first, item.number), statusOf(second, item.number)];
      changes.push({ kind, item: item.number, dtype, before, after, message: noted < 0 ? "" : model.index.messages[noted], words, advice: item.rules.map((rule) => rules[rule]?.[3]).filter(Boolean) });
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

/**
 * Return what a case that holds on two columns expects otherwise on the second: the kind, or null for nothing, and what.
 * @param {Column} from
 * @param {Column} to
 * @param {number} item
 * @param {Expected} expected
 * @returns {[string | null, Words[]]}
 */
function expectationOf(from, to, item, expected) {
  const places = [from, to].map((column) => variantOf(item, column));
  const found = expected[item]?.[places.toSorted((one, other) => one - other).join("/")];
  if (!found) return [found === null ? null : model.index.expectation, []];
  const [kind, words] = found;
  return [kind, places[0] < places[1] ? words : words.map(([place, before, after]) => [place, after, before])];
}

/** Return the page of what changed between two columns. @param {View} view */
async function changesSheet(view) {
  const from = model.columns.find((column) => column.id === view.from);
  const to = model.columns.find((column) => column.id === view.to);
  if (!from || !to) return missing("columns", `${view.from} → ${view.to}`, view);
  const behind = await backgroundOfCases();
  let lost = behind.damage ?? "";
  const expected = await unpack(model.index.last).catch((error) => { lost = damage(error); });
  const changes = changesBetween(from, to, expected, behind.rules);
  const kinds = model.index.kinds.filter(([kind]) => changes.some((entry) => entry.kind === kind));
  const shown = kinds.filter(([kind]) => view.kind.length === 0 || view.kind.includes(kind));
  return [
    h("h1", { tabindex: "-1" }, `What changes from torch ${from.build.torch} to torch ${to.build.torch}`),
    ...(model.columns.length > 2 ? [otherPairs(view, from, to)] : [h("p", {}, `From ${longName(from)} to ${longName(to)}.`)]),
    kinds.length > 1 && h("p", { class: "kinds" }, ...kinds.map(([kind]) => inward(view, { kind: [kind] }, { "aria-current": view.kind.includes(kind) ? "true" : null }, `${changes.filter((entry) => entry.kind === kind).length} ${spelled(kind)}`)),
      view.kind.length > 0 && inward(view, { kind: [] }, {}, "all")),
    ...shown.map(([kind, meaning]) => kindSection(view, from, to, kind, meaning, changes.filter((entry) => entry.kind === kind), shown.length === 1)),
    changes.length === 0 && h("p", {}, "Nothing changed."),
    lost !== "" && notice("Damaged", lost),
  ];
}

/** Return links to what changes from the same column to others of its device, and a choice of any two. @param {View} view @param {Column} from @param {Column} to */
function otherPairs(view, from, to) {
  const others = model.columns.filter((column) => column !== from && column.device === to.device).toReversed().slice(0, MOST_OTHERS);
  const links = others.map((column) => inward(view, { to: column.id }, { title: longName(column), "aria-current": column === to ? "true" : null }, column.build.release));
  return h("div", { class: "line pairs" }, h("span", {}, `From ${from.build.release} on ${from.device} to:`), h("span", { class: "kinds" }, ...links),
    h("details", { class: "choice" }, h("summary", {}, "Other builds"), h("div", { class: "options line" }, ...comparison(view))));
}

/** @param {string} kind */
function spelled(kind) {
  return kind.replaceAll("-", " ");
}

/**
 * Return the section of a kind of changes; those that matter most are unfolded.
 * @param {View} view
 * @param {Column} from
 * @param {Column} to
 * @param {string} kind
 * @param {string} meaning
 * @param {Change[]} own
 * @param {boolean} isAlone
 */
function kindSection(view, from, to, kind, meaning, own, isAlone) {
  const heading = h("h2", {}, `${spelled(kind)} `, h("span", { class: "count" }, String(own.length)));
  const section = h("details", { class: "kind", open: isAlone || model.index.first.includes(kind), toggle: draw }, h("summary", {}, heading, h("span", { class: "hint" }, meaning)));
  function draw() {
    if (section.hasAttribute("open") && section.children.length === 1) section.append(changeTable(view, from, to, own));
  }
  draw();
  return section;
}

/** @param {View} view @param {Column} from @param {Column} to @param {Change[]} changes */
function changeTable(view, from, to, changes) {
  const hasDtypes = new Set(changes.map((entry) => entry.dtype)).size > 1;
  const hasStatuses = changes.some((entry) => entry.before !== entry.after);
  const names = ["Case", hasDtypes && "Dtype", hasStatuses && "Before", hasStatuses && "After", "What"].filter((name) => name !== false);
  const region = scrollingTable(spelled(changes[0].kind), names, [], "changes");
  const more = h("button", { type: "button", click: draw }, "Show more");
  let drawn = 0;
  function draw() {
    for (const entry of changes.slice(drawn, drawn + ROWS_AT_ONCE)) {
      const item = model.cases[entry.item];
      const statuses = [entry.before, entry.after].map((status) => hasStatuses && h("td", { class: "status" }, status ? signBeside(status) : "—", " ", status));
      region.querySelector("tbody")?.append(h("tr", {},
        h("th", { scope: "row" }, inward(view, { page: "case", id: item.id }, { title: item.id }, item.title)),
        hasDtypes && h("td", {}, model.index.dtypes[entry.dtype]), ...statuses, h("td", { class: "message" }, ...whatChanged(entry, from, to))));
    }
    drawn += ROWS_AT_ONCE;
    more.hidden = drawn >= changes.length;
  }
  draw();
  region.append(more);
  return region;
}

/** @param {Change} entry @param {Column} from @param {Column} to @returns {Child[]} */
function whatChanged(entry, from, to) {
  if (entry.words.length === 0) {
    const conditions = [from, to].map((column) => conditionOf(entry.item, column) || "—");
    return [entry.message || (conditions[0] === conditions[1] ? "" : conditions.join(" → "))];
  }
  const parts = entry.words.map((/** @type {Words} */ [place, before, after]) => [place && h("code", {}, place), place && ": ", h("span", { class: "before" }, before), " → ", h("span", { class: "after" }, after)]);
  const more = parts.length > 1 && ` and ${parts.length - 1} more`;
  const copies = parts[0].map((part) => (part instanceof Node ? part.cloneNode(true) : part));
  return [h("details", { class: "words" }, h("summary", {}, h("span", { class: "first" }, ...copies), more), h("ul", {}, ...parts.map((part) => h("li", {}, ...part)), ...entry.advice.map((advice) => h("li", {}, h("strong", {}, advice)))))];
}
