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
    h("h2", {}, "Planned, run, not run"), countTable(view, build),
    ...causeSection(view, build), nightsOfBuild(view, build), ...reasons(view, build),
    h("h2", {}, "The build"), h("table", { class: "facts" }, h("tbody", {}, ...build.facts.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value))))),
    h("h2", {}, "Devices"), deviceTable(build.devices),
    ...featureTable(build.features),
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

/** Return the causes of what is red on a build, the most outcomes first. @param {View} view @param {Build} build */
function causeSection(view, build) {
  const red = build.causes.filter(([cause]) => model.index.causes[cause][3]);
  if (red.length === 0) return [];
  const rows = red.slice(0, MOST_ENTRIES).map((own) => {
    const [, , targets, smallest, target] = own;
    const link = inward(view, { page: "case", id: smallest }, {}, smallest);
    return h("tr", {}, h("th", { scope: "row", class: "message" }, titleOf(own)), h("td", { class: "status" }, ...linkToCause(view, build, own)),
      h("td", {}, ...targets.map((name) => h("div", { class: "target-names" }, name))), h("td", {}, link, targets.length > 1 && ` on ${target}`));
  });
  return [h("h2", { id: "causes" }, "Causes of what is red"), scrollingTable("Causes", ["Cause", "Outcomes", "Targets", "Smallest case"], [...rows, moreOf(red, "tr")], "causes")];
}

/** @param {CauseOfBuild} own */
function titleOf(own) {
  return model.index.causes[own[0]][1];
}

/**
 * Return the counts of a cause by status, and a link to its cases in the matrix.
 * @param {View} view
 * @param {Build} build
 * @param {CauseOfBuild} own
 */
function linkToCause(view, build, [cause, counts]) {
  const count = Object.values(counts).reduce((sum, each) => sum + each, 0);
  const [id] = model.index.causes[cause];
  const link = inward(view, { page: "", id: "", build: [build.id], status: [], cause: [id] }, { class: "show" }, `show ${count}`);
  return [...Object.entries(counts).map(([status, each]) => h("span", { class: "tally" }, sign(status), String(each))), " ", link];
}

/** Return why cases were not run, and what is unsupported by cause. @param {View} view @param {Build} build */
function reasons(view, build) {
  const lacking = build.causes.filter(([cause]) => !model.index.causes[cause][3]);
  if (build.why.length + lacking.length === 0) return [];
  const rows = build.why.map(([target, status, reason, count]) => h("tr", {}, h("th", { scope: "row" }, target), h("td", {}, signBeside(status), ` ${status}`), h("td", {}, String(count)), h("td", {}, reason)));
  const more = lacking.slice(0, MOST_ENTRIES).map((own) => h("tr", {}, h("th", { scope: "row" }, own[2].join(", ")), h("td", {}, Object.keys(own[1]).join(", ")), h("td", { class: "status" }, ...linkToCause(view, build, own)), h("td", {}, titleOf(own))));
  return [h("h3", {}, "Why cases were not run"), scrollingTable("Reasons", ["Targets", "Status", "Cases", "Reason"], [...rows, ...more, moreOf(lacking, "tr")])];
}

/** @param {string[][]} features why each is missing on each device, or "", below the devices */
function featureTable([names, ...features]) {
  if (features.length === 0) return [];
  const rows = features.map(([name, ...whys]) => h("tr", {}, h("th", { scope: "row" }, name), ...whys.map((why) => h("td", {}, why ? `no: ${why}` : "yes"))));
  return [h("h2", {}, "What the devices can do"), scrollingTable("Features", names, rows)];
}

/** @param {string[][]} devices facts of each, below their names */
function deviceTable([names, ...devices]) {
  const rows = devices.map(([type, ...facts]) => h("tr", {}, h("th", { scope: "row" }, type), ...facts.map((fact) => h("td", {}, fact))));
  return scrollingTable("Devices", names, rows);
}
