// The page of one build: its facts, and how much of its plan was run.

/**
 * Return the page of a build.
 * @param {View} view
 * @param {Build} build
 */
function buildSheet(view, build) {
  return [
    h("h1", { tabindex: "-1" }, `torch ${build.torch}`),
    h("p", { class: "meta" }, h("code", {}, build.id)),
    !build.is_finished && h("p", { class: "notice" }, h("strong", {}, "Incomplete: "), "the run did not finish."),
    ...build.runs.map((line) => h("p", { class: "notice" }, line)),
    build.beside !== "" && h("p", {}, inward(view, { page: "", id: "", build: [build.beside, build.id] }, {}, "Beside torch alone")),
    h("h2", {}, "Planned, run, not run"), countTable(view, build), ...reasons(build),
    h("h2", {}, "The build"), h("table", { class: "facts" }, h("tbody", {}, ...build.facts.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value))))),
    h("h2", {}, "Devices"), deviceTable(build.devices),
    h("h2", {}, "Compile flags"), h("pre", { tabindex: "0" }, build.config),
  ];
}

/** @param {View} view @param {Build} build */
function countTable(view, build) {
  const used = model.index.statuses.map((status) => status.name).filter((status) => Object.values(build.counts).some((counts) => counts[status]));
  const rows = Object.entries(build.counts).map(([target, counts]) => {
    const planned = Object.values(counts).reduce((sum, count) => sum + count, 0);
    const cells = used.map((status) => h("td", {}, counts[status] ? inward(view, { page: "", id: "", build: [build.id], status: [status] }, {}, String(counts[status])) : "0"));
    return h("tr", {}, h("th", { scope: "row" }, target), h("td", {}, String(planned)), ...cells);
  });
  return scrollingTable("Counts", ["Target", "planned", ...used], rows);
}

/** @param {Build} build */
function reasons(build) {
  if (build.why.length === 0) return [];
  const rows = build.why.map(([target, status, reason, count]) => h("tr", {}, h("th", { scope: "row" }, target), h("td", {}, sign(status), ` ${status}`), h("td", {}, String(count)), h("td", {}, reason)));
  return [h("h3", {}, "Why cases were not run"), scrollingTable("Reasons", ["Target", "Status", "Cases", "Reason"], rows)];
}

/** @param {string[][]} devices facts of each, below their names */
function deviceTable([names, ...devices]) {
  const rows = devices.map(([type, ...facts]) => h("tr", {}, h("th", { scope: "row" }, type), ...facts.map((fact) => h("td", {}, fact))));
  return scrollingTable("Devices", names, rows);
}
