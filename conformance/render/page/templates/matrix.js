// Draws the matrix: a table of topics, rules and cases by builds and devices.

const CELLS_AT_ONCE = 640; // more are drawn on scrolling to the end of the table

/** @type {Map<string, HTMLElement>} */
const signs = new Map(); // copied, because a matrix has thousands and cloning is faster than making

/**
 * Return the sign of a status, with its name for screen readers.
 * @param {string} status
 * @param {string} [more]
 */
function sign(status, more = "") {
  let made = signs.get(status);
  if (!made) {
    made = h("span", { class: `sign ${statusNamed(status).role}`, role: "img", "aria-label": status, title: status }, statusNamed(status).sign);
    signs.set(status, made);
  }
  const copy = /** @type {HTMLElement} */ (made.cloneNode(true));
  if (more) {
    copy.title = visible(`${status}: ${more}`);
    copy.ariaLabel = copy.title;
  }
  return copy;
}

/** Return the sign of a status beside its name, which is all that screen readers need. @param {string} status */
function signBeside(status) {
  const made = sign(status);
  made.removeAttribute("role");
  made.removeAttribute("aria-label");
  made.setAttribute("aria-hidden", "true");
  return made;
}

/**
 * Return the heading of a column below its release: what distinguishes the builds of the release, and the device.
 * @param {Column} column
 */
function shortName(column) {
  return [...column.build.label, column.device].join(" ");
}

/** Return the whole name of a column. @param {Column} column */
function longName(column) {
  return `torch ${column.build.torch} ${column.build.label.join(" ")} on ${column.device}`;
}

/**
 * Return the table of the cases that a view asks for.
 * @param {View} view
 * @param {Found} found
 * @param {Row[]} rows
 */
function tableOf(view, found, rows) {
  const body = h("tbody", {});
  const table = h("table", { class: found.columns.length > MOST_COLUMNS + 1 ? "matrix wide" : "matrix" }, headOf(view, found), body);
  const atOnce = Math.max(20, Math.round(CELLS_AT_ONCE / found.columns.length));
  let drawn = 0;
  function draw() {
    const more = rows.slice(drawn, drawn + atOnce);
    body.append(...more.map((row) => rowOf(view, found, row)));
    drawn += more.length;
    if (drawn === rows.length) return;
    const button = h("button", { type: "button", click }, `Show more of the ${rows.length - drawn} rows below`);
    const last = h("tr", {}, h("td", { colspan: found.columns.length + 1, class: "more" }, button));
    const seen = new IntersectionObserver(([entry]) => entry.isIntersecting && next());
    function next() {
      seen.disconnect();
      last.remove();
      draw();
    }
    function click() {
      const count = body.children.length;
      next();
      /** @type {HTMLElement | null} */ (body.children[count - 1]?.querySelector("a, button"))?.focus();
    }
    body.append(last);
    seen.observe(last);
  }
  draw();
  return table;
}

/** @param {View} view @param {Found} found */
function headOf(view, found) {
  const releases = h("tr", {}, h("th", { scope: "col", rowspan: 2, class: "corner" }, "Behaviour"));
  const names = h("tr", {});
  for (let at = 0; at < found.columns.length;) {
    const { release } = found.columns[at].build;
    const group = found.columns.slice(at).findIndex((column) => column.build.release !== release);
    const width = group < 0 ? found.columns.length - at : group;
    releases.append(h("th", { scope: "colgroup", colspan: width }, release));
    at += width;
  }
  for (const column of found.columns) {
    const link = inward(view, { page: "build", id: column.build.id }, { title: longName(column) },
      h("span", { class: "unseen" }, `torch ${column.build.torch} `), h("span", {}, column.build.label.join(" ")), h("span", {}, column.device));
    names.append(h("th", { scope: "col", class: column.build.is_finished ? null : "incomplete" }, link,
      !column.build.is_finished && h("span", { class: "flag" }, "incomplete")));
  }
  return h("thead", {}, releases, names);
}

/** @param {View} view @param {Found} found @param {Row} row */
function rowOf(view, found, row) {
  const cells = found.columns.map((column) => cellOf(view, column, row));
  const isFlat = row.kind === "case" && found.scores !== null;
  return h("tr", { class: isFlat ? "case flat" : row.kind }, h("th", { scope: "row" }, labelOf(view, found, row)), ...cells);
}

/** @param {View} view @param {Found} found @param {Row} row */
function labelOf(view, found, row) {
  const item = model.cases[row.cases[0]];
  const rule = model.index.rules[row.rule];
  if (row.kind === "total") return h("span", { class: "label", tabindex: "-1", "data-key": row.key }, "All of these ", h("span", { class: "count" }, String(row.cases.length)));
  if (row.kind === "target") return h("span", { class: "label", tabindex: "-1", "data-key": row.key }, model.index.dtypes[row.dtypes[0]]);
  if (row.kind === "case") {
    const link = inward(view, { page: "case", id: item.id }, row.open === null ? { class: "label", "data-key": row.key } : {}, item.title);
    return h("span", {}, row.open !== null && toggle(view, row, "dtypes"), " ", link, " ", h("code", {}, item.id), ...(row.rule < 0 && view.q ? told(found.columns, item, row) : []));
  }
  const text = row.kind === "topic" ? model.index.topics[row.topic] : rule ? rule[1] : "Without a rule";
  return toggle(view, row, `${text} `, row.kind === "rule" && rule && h("code", {}, rule[0]), " ", h("span", { class: "count" }, String(row.cases.length)));
}

/** Return what there is to say of a case that was searched for: its topic, and the first message. @param {Column[]} columns @param {Case} item @param {Row} row */
function told(columns, item, row) {
  const numbers = columns.flatMap((column) => row.dtypes.map((dtype) => column.tracks[dtype]?.message[item.number] ?? -1));
  const message = numbers.find((number) => number >= 0 && model.index.messages[number]);
  return [h("span", { class: "hint told" }, model.index.topics[item.topic], message !== undefined && `: ${model.index.messages[message]}`)];
}

/** @param {View} view @param {Row} row @param {...Child} children */
function toggle(view, row, ...children) {
  return h("button", { type: "button", class: "toggle label", "aria-expanded": String(row.open), "data-key": row.key, click }, ...children);
  function click() {
    const flip = view.flip.includes(row.key) ? view.flip.filter((key) => key !== row.key) : [...view.flip, row.key];
    change({ flip }, row.key);
  }
}

/**
 * Return a cell: one sign for one outcome, signs with counts for several.
 * @param {View} view
 * @param {Column} column
 * @param {Row} row
 */
function cellOf(view, column, row) {
  const counts = countsOf(column, row.cases, row.dtypes);
  const worst = counts.keys().next().value;
  if (worst === undefined) return h("td", { class: "blank" }, h("span", { class: "unseen" }, "not planned"));
  if ((row.kind === "case" || row.kind === "target") && counts.size === 1) {
    const item = row.cases[0];
    const message = row.dtypes.map((dtype) => column.tracks[dtype]?.message[item] ?? -1).find((number) => number >= 0);
    const condition = conditionOf(item, column);
    const isOneOfSeveral = condition && model.index.variants[item][0].length > 1;
    const letter = isOneOfSeveral ? String.fromCharCode(97 + (variantOf(item, column) % 26)) : ""; // a for the oldest release
    const explained = message === undefined ? condition && `as expected for torch ${condition}` : model.index.messages[message];
    const edited = isEdited(item, column);
    const shown = inward(view, { page: "case", id: model.cases[item].id }, { tabindex: -1 }, sign(worst, explained));
    return h("td", {}, shown, Boolean(letter) && h("sub", { title: condition, class: letter === "a" ? null : "other" }, letter),
      edited && h("sup", { title: RAN_OTHER_REVISION }, "e"));
  }
  return h("td", {}, ...Array.from(counts, ([status, count]) =>
    inward(view, { ...whereOf(row), build: [column.build.id], status: [status], flip: [] }, { class: "tally", tabindex: -1 }, sign(status), String(count))));
}

/** Return the part of a view that asks for the cases of a row. @param {Row} row @returns {Partial<View>} */
function whereOf(row) {
  if (row.kind === "total") return {};
  const topic = { topic: [model.index.topics[row.topic]] };
  if (row.kind === "topic") return topic;
  return { ...topic, q: row.kind === "rule" ? model.index.rules[row.rule]?.[0] ?? "" : model.cases[row.cases[0]].id };
}
