// The verdict above the matrix: how the build that one came for stands, in a sentence with links to what it counts.

/** Return the build that the verdict is on: that of this run, or else of the last release. */
function ownBuild() {
  return model.index.builds.find((build) => build.is_own) ?? model.index.builds.at(-1);
}

/** Return the build to compare another with: torch alone, or another of its release, or none. @param {Build} own */
function buildBeside(own) {
  const others = model.index.builds.filter((build) => build !== own);
  return others.find((build) => build.id === own.beside) ?? others.findLast((build) => build.release === own.release && build.beside === "");
}

/** Return the statuses of which something is true. @param {(status: Status) => boolean} isSo */
function statusNames(isSo) {
  return model.index.statuses.filter(isSo).map((status) => status.name);
}

/** @param {Build} build @param {string[]} statuses */
function outcomesOf(build, statuses) {
  return Object.values(build.counts).flatMap((counts) => statuses.map((status) => counts[status] ?? 0)).reduce((sum, each) => sum + each, 0);
}

/**
 * Return how many outcomes are red on one build and hold on another, on the same device and dtype.
 * @param {Build} own
 * @param {Build} other
 */
function redOnlyOn(own, other) {
  const red = new Set(statusNames((status) => status.is_red));
  const columns = model.columns.filter((column) => column.build === own);
  return columns.map((column) => {
    const fellow = model.columns.find((each) => each.build === other && each.device === column.device) ?? model.columns.find((each) => each.build === other);
    return column.tracks.map((track, dtype) => model.cases.filter((item) => red.has(statusOf(track, item.number)) && statusOf(fellow?.tracks[dtype] ?? null, item.number) === "pass").length);
  }).flat().reduce((sum, each) => sum + each, 0);
}

/** @param {Build} build */
function nameOfBuild(build) {
  return [`torch ${build.torch}`, ...build.label].join(" ");
}

/** @param {number} count @param {string} one */
function counted(count, one) {
  return `${count} ${one}${count === 1 ? "" : "s"}`;
}

/** Return links to what changes from earlier releases to the build that one came for. @returns {(Node | string)[]} */
function upgrades() {
  const own = model.columns.find((column) => column.build === ownBuild());
  const earlier = model.columns.filter((column) => own && column.device === own.device && model.index.builds.indexOf(column.build) < model.index.builds.indexOf(own.build));
  if (!own || earlier.length === 0) return [];
  const links = earlier.toReversed().map((column) => inward(viewOf(""), { page: "changes", from: column.id, to: own.id }, { title: longName(column) }, column.build.release));
  return [`What changes for torch ${own.build.release} from `, ...links.flatMap((link, number) => (number ? [", ", link] : [link])), "."];
}

/** Return the verdict as the children of a paragraph. @returns {Child[]} */
function verdict() {
  const own = ownBuild();
  if (!own) return [];
  const start = viewOf("");
  const red = statusNames((status) => status.is_red);
  const count = outcomesOf(own, red);
  const causes = own.causes.filter(([cause]) => model.index.causes[cause][3]).length;
  const told = [h("strong", {}, nameOfBuild(own)), ": "];
  if (count === 0) told.push(outcomesOf(own, statusNames((status) => status.is_wrong && !status.is_red)) ? "each failure is a known issue" : "no failures");
  else told.push(inward(start, { build: [own.id], status: red }, {}, counted(count, "red outcome")), " from ", inward(start, { page: "build", id: own.id }, {}, counted(causes, "cause")));
  const other = buildBeside(own);
  if (other && count > 0) {
    const only = redOnlyOn(own, other);
    told.push(", ", inward(start, { build: [other.id, own.id], status: red }, {}, only === 0 ? "none of which" : `${only} of which`), ` ${only === 1 ? "holds" : "hold"} on ${nameOfBuild(other)}`);
  }
  const rest = statusNames((status) => !status.is_red && status.name !== "pass").filter((status) => outcomesOf(own, [status]) > 0);
  const parts = rest.flatMap((status) => [", ", inward(start, { build: [own.id], status: [status] }, {}, `${outcomesOf(own, [status])} ${status}`)]);
  const pass = outcomesOf(own, ["pass"]);
  return [...told, "; ", pass === 0 ? "none pass" : inward(start, { build: [own.id], status: ["pass"] }, {}, `${pass} pass`), ...parts, "."];
}
