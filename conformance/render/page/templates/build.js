// The page of one build: what it is, and what of its plan was run.

/**
 * Return the page of a build.
 * @param {Model} model
 * @param {View} view
 * @param {Build} build
 */
function buildSheet(model, view, build) {
  const { facts } = build;
  const cuda = facts.cuda && `CUDA ${facts.cuda}`;
  const rows = [
    ["torch", facts.torch], ["commit", facts.git], ["compiled", [facts.debug ? "debug" : "release", cuda, facts.hip && `HIP ${facts.hip}`].filter(Boolean).join(", ")],
    ["Python", `${facts.implementation} ${facts.python}`], ["system", `${facts.system} (${facts.platform})`], ["installed in", facts.path], ["interpreter", facts.executable],
    ["run", `${build.run.started} to ${build.footer ? build.footer.finished : "…"}`], ["called with", build.run.arguments.join(" ") || "nothing"],
    ["suite", `${build.suite.version}, commit ${build.suite.commit || "unknown"}, cases ${build.suite.cases}`],
  ];
  return [
    h("h1", { tabindex: "-1" }, `torch ${facts.torch}`),
    h("p", { class: "meta" }, h("code", {}, build.id)),
    !build.footer && h("p", { class: "notice" }, h("strong", {}, "Incomplete: "), "the run did not finish."),
    ...build.runs.map((line) => h("p", { class: "notice" }, line)),
    h("h2", {}, "Planned, run, not run"), countTable(model, view, build), ...reasons(build),
    h("h2", {}, "The build"), h("table", { class: "facts" }, h("tbody", {}, ...rows.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value))))),
    h("h2", {}, "Devices"), deviceTable(facts.devices),
    h("h2", {}, "Compile flags"), h("pre", { tabindex: "0" }, facts.config),
  ];
}

/**
 * @param {Model} model
 * @param {View} view
 * @param {Build} build
 */
function countTable(model, view, build) {
  const used = model.index.statuses.map((status) => status.name).filter((status) => Object.values(build.counts).some((counts) => counts[status]));
  const rows = Object.entries(build.counts).map(([target, counts]) => {
    const planned = Object.values(counts).reduce((sum, count) => sum + count, 0);
    const cells = used.map((status) => h("td", {}, counts[status] ? inward(view, { page: "", id: "", build: [build.id], status: [status] }, {}, String(counts[status])) : "0"));
    return h("tr", {}, h("th", { scope: "row" }, target), h("td", {}, String(planned)), ...cells);
  });
  const head = ["Target", "planned", ...used].map((name) => h("th", { scope: "col" }, name));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Counts" }, h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)));
}

/**
 * @param {Build} build
 */
function reasons(build) {
  if (build.why.length === 0) return [];
  const rows = build.why.map(([target, status, reason, count]) => h("tr", {}, h("th", { scope: "row" }, target), h("td", {}, sign(status), ` ${status}`), h("td", {}, String(count)), h("td", {}, reason)));
  const head = ["Target", "Status", "Cases", "Why"].map((name) => h("th", { scope: "col" }, name));
  return [h("h3", {}, "Why something was not run"), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Reasons" }, h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)))];
}

/**
 * @param {Device[]} devices
 */
function deviceTable(devices) {
  const rows = devices.map((device) => h("tr", {}, h("th", { scope: "row" }, device.type), h("td", {}, device.absent === null ? device.name : "absent"),
    h("td", {}, String(device.count)), h("td", {}, device.driver || "—"), h("td", {}, device.absent || "")));
  const head = ["Device", "Name", "How many", "Driver", "Why absent"].map((name) => h("th", { scope: "col" }, name));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Devices" }, h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)));
}
