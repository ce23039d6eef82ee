// The page of one case: its rules, its outcome on each build, its steps, its graph, and how to run it.

// What the link of a rule is called, by where it leads; all others are documentation.
const SORTS = { source: /\/blob\//, issue: /\/issues\//, "pull request": /\/pull\// };
const FEW_BUILDS = 3; // of which all outcomes are shown at once
const MOST_ENTRIES = 1000; // of one list; a browser takes seconds to draw more

/** @typedef {{columns: Set<number>, dtypes: Set<string>, outcome: Outcome | null, status: string, edited: boolean}} Group */

/**
 * Return the page of a case.
 * @param {View} view
 * @param {Case} item
 * @param {Details} details
 * @param {Background} behind
 */
function caseSheet(view, item, details, behind) {
  const groups = groupsOf(item, details);
  const red = groups.filter((group) => group.outcome && statusNamed(group.status).is_wrong);
  const heading = [
    h("h1", { tabindex: "-1" }, item.title),
    h("p", { class: "meta" }, h("code", {}, item.id), ` ${item.level} · ${model.index.topics[item.topic]} · ${item.file}:${item.line}`),
  ];
  if (details.damage) {
    return [...heading, notice("Damaged", details.damage), h("h2", {}, "Rules"), rulesOf(view, item, behind),
      h("h2", {}, "Outcomes"), ...rangesOf(item), outcomeTable(view, item, details), nightsOfCase(item)];
  }
  return [
    ...heading,
    h("p", { class: "why" }, details.why),
    ...red.toSorted((one, other) => Number(statusNamed(other.status).is_red) - Number(statusNamed(one.status).is_red)).map((group) => failureOf(view, item, group, groups, details, behind)),
    h("h2", {}, "Rules"), rulesOf(view, item, behind),
    h("h2", {}, "Outcomes"), ...rangesOf(item), h("details", { open: model.columns.length <= FEW_BUILDS }, h("summary", {}, "On each build"), outcomeTable(view, item, details)), nightsOfCase(item),
    ...unobservedIn(groups),
    h("h2", {}, "Steps"), stepTable(item, details, groups),
    h("h2", {}, "The graph that it builds"), ...graphSection(details),
    relatedSection(view, item),
    h("h2", {}, "Run it"), ...runSection(item, details, behind),
    h("h2", {}, "The text of the case"), h("pre", { class: "code", tabindex: "0" }, dedented(details.yaml.split("\n"))),
    details.source.length > 0 && h("p", { class: "hint" }, `From ${details.source.join(", ")}.`),
  ];
}

/** @param {View} view @param {Case} item @param {Background} behind */
function rulesOf(view, item, behind) {
  const entries = item.rules.slice(0, MOST_ENTRIES).map((rule) => {
    const [id, text] = model.index.rules[rule];
    const named = inward(view, { page: "", id: "", q: id }, {}, h("code", {}, id));
    if (behind.damage) return h("li", {}, text, " ", h("span", { class: "hint" }, named));
    const [level, link, since, upgrade] = behind.rules[rule];
    return h("li", {}, text, " ", h("span", { class: "hint" }, named, ` ${level}, since ${since} · `, outward(link, sortOf(link))),
      upgrade !== "" && h("p", { class: "hint" }, `Upgrading: ${upgrade}`));
  });
  return h("ul", { class: "rules", "aria-label": "Rules" }, ...entries, moreOf(item.rules, "li"));
}

/** Return what the link of a rule is called. @param {string} link */
function sortOf(link) {
  return (link.startsWith("https://github.com/") && Object.entries(SORTS).find(([, pattern]) => pattern.test(link))?.[0]) || "documentation";
}

/** Return a section of the cases that are most like one, with their outcomes on the build of the verdict; it is filled later. @param {View} view @param {Case} item */
function relatedSection(view, item) {
  const section = h("section", { hidden: true }, h("h2", {}, "Related cases"));
  const columns = model.columns.filter((column) => column.build === ownBuild());
  relatedTo(item).then((related) => {
    const entries = related.map(({ other, why }) => {
      const [status] = countsOf(columns[0], [other.number], model.index.dtypes.map((_, dtype) => dtype)).keys();
      return h("li", {}, Boolean(status) && sign(status), " ", inward(view, { page: "case", id: other.id }, {}, other.title), h("span", { class: "hint told" }, ...why));
    });
    section.append(h("ul", {}, ...entries));
    section.hidden = related.length === 0;
  });
  return section;
}

/**
 * Return an entry that counts those of a list that are left out.
 * @param {unknown[]} list
 * @param {string} tag
 */
function moreOf(list, tag) {
  const count = list.length - MOST_ENTRIES;
  return count > 0 && h(tag, {}, tag === "tr" ? h("td", { colspan: 3 }, `and ${count} more`) : `and ${count} more`);
}

/**
 * Return the outcomes of a case, equal ones as one group.
 * @param {Case} item
 * @param {Details} details
 * @returns {Group[]}
 */
function groupsOf(item, details) {
  const places = new Map(details.places.map(([column, dtype, place]) => [`${column}/${dtype}`, place]));
  /** @type {Map<string, Group>} */
  const groups = new Map();
  for (const column of model.columns) {
    model.index.dtypes.forEach((name, dtype) => {
      const status = statusOf(column.tracks[dtype], item.number);
      if (!status) return;
      const place = places.get(`${column.number}/${name}`);
      const without = details.left_out.filter(([, builds]) => builds.includes(model.index.builds.indexOf(column.build)));
      const revision = revisionOf(item.number, column);
      const key = [status, place, revision, without.map(([line]) => line)].join("/");
      const outcome = place === undefined ? null : details.outcomes[place];
      const group = groups.get(key) || { columns: new Set(), dtypes: new Set(), outcome, status, edited: isEdited(item.number, column) };
      group.columns.add(column.number);
      group.dtypes.add(name);
      groups.set(key, group);
    });
  }
  return [...groups.values()];
}

/**
 * Return which releases a case holds on, as ranges over the builds of this report.
 * @param {Case} item
 */
function rangesOf(item) {
  /** @type {Child[]} */
  const lines = [];
  for (const device of new Set(model.columns.map((column) => column.device))) {
    model.index.dtypes.forEach((dtype, number) => {
      /** @type {[string, string, string][]} */
      const ranges = [];
      for (const column of model.columns.filter((other) => other.device === device)) {
        const status = statusOf(column.tracks[number], item.number);
        const last = ranges[ranges.length - 1];
        if (!status || !statusNamed(status).tells_of_torch) continue;
        if (last && last[0] === status) last[2] = column.build.release;
        else ranges.push([status, column.build.release, column.build.release]);
      }
      const worded = ranges.map(([status, first, last]) => `${status} on ${first === last ? first : `${first} to ${last}`}`);
      if (worded.length) lines.push(h("p", { class: "ranges" }, h("strong", {}, `${[device, dtype].filter(Boolean).join(", ")}: `), worded.join("; ")));
    });
  }
  return lines;
}

/** @param {View} view @param {Case} item @param {Details} details */
function outcomeTable(view, item, details) {
  const places = new Map(details.places.map(([column, dtype, place]) => [`${column}/${dtype}`, place]));
  const rows = model.columns.flatMap((column) => model.index.dtypes.flatMap((dtype, number) => {
    const status = statusOf(column.tracks[number], item.number);
    if (!status) return [];
    const outcome = details.outcomes[places.get(`${column.number}/${dtype}`) ?? -1];
    const message = column.tracks[number]?.message[item.number] ?? -1;
    const notes = [message >= 0 && model.index.messages[message], conditionOf(item.number, column) && `expected for torch ${conditionOf(item.number, column)}`,
      isEdited(item.number, column) && RAN_OTHER_REVISION, outcome?.line && `line ${outcome.line}`];
    return [h("tr", {}, h("th", { scope: "row" }, inward(view, { page: "build", id: column.build.id }, {}, `torch ${column.build.torch}`), ` ${column.build.label.join(" ")}`),
      h("td", {}, column.device), h("td", {}, dtype), h("td", { class: "status" }, signBeside(status), ` ${status}`), h("td", { class: "message" }, notes.filter(Boolean).join("; ")))];
  }));
  return scrollingTable("Outcomes", ["Build", "Device", "Dtype", "Outcome", "Message"], rows);
}

/**
 * Name the columns of a group, and its dtypes where another group has others.
 * @param {Group} group
 * @param {Group[]} groups
 */
function namesOf(group, groups) {
  const columns = [...group.columns].map((number) => model.columns[number]);
  const isAll = columns.length === model.columns.length && columns.length > 1;
  const names = isAll ? "all builds" : rangesIn(columns).join(", ");
  const dtypes = new Set(groups.flatMap((other) => [...other.dtypes]));
  return group.dtypes.size === dtypes.size ? names : `${names}, ${[...group.dtypes].join(" and ")}`;
}

/** Name columns: three or more that follow each other, of one device, as a range of releases. @param {Column[]} columns */
function rangesIn(columns) {
  /** @type {Column[][]} */
  const runs = [];
  for (const device of new Set(columns.map((column) => column.device))) {
    const all = model.columns.filter((column) => column.device === device);
    for (const column of columns.filter((each) => each.device === device).toSorted((one, other) => one.number - other.number)) {
      const run = runs.at(-1);
      if (run?.[0].device === device && all.indexOf(run[run.length - 1]) + 1 === all.indexOf(column)) run.push(column);
      else runs.push([column]);
    }
  }
  return runs.flatMap((run) => run.length < 3
    ? run.map((column) => `${column.build.torch} ${shortName(column)}`)
    : [`${run[0].build.release} to ${run[run.length - 1].build.release} on ${run[0].device} (${run.length} builds)`]);
}

/** @param {View} view @param {Case} item @param {Group} group @param {Group[]} groups @param {Details} details @param {Background} behind */
function failureOf(view, item, group, groups, details, behind) {
  const outcome = /** @type {Outcome} */ (group.outcome);
  const failures = outcome.failures || [];
  const rows = failures.slice(0, MOST_ENTRIES).map((failure) => h("tr", {}, h("th", { scope: "row" }, failure.path || "the step"),
    h("td", {}, String(failure.line)), h("td", { class: "value" }, failure.expected), h("td", { class: "value" }, failure.observed)));
  return h("section", { class: "failure" },
    h("h2", {}, signBeside(group.status), ` ${group.status}: ${statusNamed(group.status).explanation}`), h("p", {}, namesOf(group, groups)), ...issueOf(outcome),
    rows.length > 0 && scrollingTable(`Expected and observed on ${namesOf(group, groups)}`, ["What", "Line", "Expected", "Observed"], [...rows, moreOf(failures, "tr")]),
    Boolean(outcome.reason) && h("p", {}, outcome.reason), ...retryOf(outcome), ...causeOf(view, item, group),
    ...reproductionOf(item, group, details.reproductions[details.outcomes.indexOf(outcome)], scriptOf(details, behind).join("")),
    ...(outcome.traceback || []).slice(1).map(([line, name]) => h("p", { class: "hint" }, `called from ${item.file}:${line}, ${name}`)),
    Boolean(outcome.stderr) && h("details", {}, h("summary", {}, "The end of the worker's output"), h("pre", { tabindex: "0" }, outcome.stderr)));
}

/** Return the lines that reproduce a failure, and buttons that copy them, alone or as the text of a report; without lines, the report has the script. @param {Case} item @param {Group} group @param {string | undefined} text @param {string} script */
function reproductionOf(item, group, text, script) {
  if (!text && !script) return [];
  const [column] = [...group.columns].map((number) => model.columns[number]);
  const failures = (group.outcome?.failures || []).slice(0, MOST_ENTRIES).map((failure) => `- ${failure.path || "the step"}: expected ${failure.expected}, observed ${failure.observed}`);
  const report = [item.title, "", ...(group.outcome?.issue ? [group.outcome.issue.reason, ""] : []), `On ${longName(column)}:`, "", ...failures, "", "```python", (text || script).trimEnd(), "```", ""].join("\n");
  if (!text) return [copyButton("this as a bug report, with the script below", report)];
  return [h("h3", {}, "In plain torch"), h("pre", { class: "code script", tabindex: "0" }, text.trimEnd()), copyButton("these lines", text), copyButton("them as a bug report", report)];
}

/** Return a link to all that has the cause of a group, where that is more than this. @param {View} view @param {Case} item @param {Group} group */
function causeOf(view, item, group) {
  const tracks = [...group.columns].flatMap((number) => [...group.dtypes].map((dtype) => model.columns[number].tracks[model.index.dtypes.indexOf(dtype)]));
  const own = new Set(tracks.map((track) => track?.cause[item.number] ?? -1));
  return [...own].flatMap((cause) => {
    if (cause < 0 || model.index.causes[cause][2] < 2) return [];
    const [id, title, count] = model.index.causes[cause];
    return [h("p", {}, "Cause: ", inward(view, { page: "", id: "", status: [], cause: [id] }, {}, title), ` (${count} outcomes)`)];
  });
}

/** Return what came of a flaky case in either run. @param {Outcome} outcome */
function retryOf({ retry }) {
  if (!retry) return [];
  const [failure] = retry.alone.failures || [];
  const why = failure ? `: ${failure.path ? `${failure.path}: ` : ""}expected ${failure.expected}, observed ${failure.observed}` : retry.alone.reason ? `: ${retry.alone.reason}` : "";
  return [h("p", {}, "Among other cases: ", signBeside(retry.status), ` ${retry.status}. Once more, alone in a fresh worker: `, signBeside(retry.alone.status), ` ${retry.alone.status}${why}`)];
}

/** Return the known issue that an outcome matches, with where it is reported. @param {Outcome} outcome */
function issueOf({ issue }) {
  if (!issue) return [];
  return [h("p", { class: "issue" }, `${issue.reason} `, issue.link ? outward(issue.link, "upstream") : h("span", { class: "hint" }, "Not known to be reported; it can be copied as a bug report."))];
}

/** Return the expectations that devices could not show, which were left out. @param {Group[]} groups */
function unobservedIn(groups) {
  const rows = groups.flatMap((group) => {
    const hidden = group.outcome?.unobserved || [];
    return [...hidden.slice(0, MOST_ENTRIES).map(({ line, path, reason }) => h("tr", {}, h("th", { scope: "row" }, path), h("td", {}, String(line)),
      h("td", {}, namesOf(group, groups)), h("td", { class: "message" }, reason))), moreOf(hidden, "tr")].filter(Boolean);
  });
  return rows.length > 0 ? [h("h2", {}, "Not observed"), scrollingTable("Expectations that were left out", ["What", "Line", "On", "Why"], rows)] : [];
}

/**
 * Return the steps with what was observed in each group of builds; a case ends at the first step that diverged.
 * @param {Case} item
 * @param {Details} details
 * @param {Group[]} groups
 */
function stepTable(item, details, groups) {
  const lines = details.yaml.replace(/\n$/, "").split("\n");
  const starts = details.steps;
  if (starts.length === 0) return h("p", { class: "hint" }, "The steps can't be shown one by one; see the text of the case below.");
  const stepAt = (/** @type {number} */ line) => (line < lines.length ? starts.filter((start) => start <= line).length - 1 : -1);
  const ran = groups.filter((group) => statusNamed(group.status).is_run || group.outcome?.line);
  const failedAt = ran.map(({ outcome }) => {
    if (outcome?.line === undefined) return outcome && outcome.status !== "pass" ? -1 : starts.length;
    return stepAt(outcome.line - item.line);
  });
  const leftOut = new Map(details.left_out.map(([line, builds]) => [stepAt(line), builds]));
  const rows = starts.slice(0, MOST_ENTRIES).map((start, number) => {
    const text = lines.slice(start, starts[number + 1] ?? lines.length);
    const cells = ran.map((group, at) => {
      if (group.edited) return h("td", { class: "skipped" }, "ran another revision");
      const build = model.index.builds.indexOf(model.columns[[...group.columns][0]].build);
      if (leftOut.get(number)?.includes(build)) return h("td", { class: "skipped" }, "not for this torch");
      return stepCell(group, failedAt[at], number);
    });
    return h("tr", {}, h("th", { scope: "row" }, String(item.line + start)), h("td", { class: "code" }, h("pre", {}, dedented(text))), ...cells);
  });
  return scrollingTable("Steps", ["Line", "Step", ...ran.map((group) => namesOf(group, groups))], [...rows, moreOf(starts, "tr")], "steps");
}

/** @param {Group} group @param {number} failedAt @param {number} number */
function stepCell(group, failedAt, number) {
  if (failedAt < 0) return h("td", { class: "skipped" }, `unknown: ${group.status}`);
  if (number > failedAt) return h("td", { class: "skipped" }, "not reached");
  if (number < failedAt) return h("td", { class: "held" }, signBeside("pass"), " as expected");
  const failures = (group.outcome?.failures || []).map((failure) => h("li", {}, `${failure.path || "step"}: `,
    h("span", { class: "hint" }, "expected "), h("code", {}, failure.expected), h("span", { class: "hint" }, ", observed "), h("code", {}, failure.observed)));
  return h("td", { class: "diverged" }, signBeside(group.status), ` ${group.status} here`, h("ul", {}, ...failures), group.outcome?.reason || "");
}

/** Return lines of YAML without the indentation that they share. @param {string[]} lines */
function dedented(lines) {
  const depth = lines.filter((line) => line.trim()).reduce((least, line) => Math.min(least, line.length - line.trimStart().length), Infinity);
  return lines.map((line) => line.slice(depth)).join("\n").trimEnd();
}

/** @param {Details} details */
function graphSection(details) {
  const drawing = details.graph;
  if (!drawing) return [h("p", { class: "hint" }, "There is no drawing: the case builds no graph, no run recorded it, or it is too large.")];
  const build = model.index.builds[drawing.build];
  return [
    graphOf(drawing),
    h("p", { class: "hint" }, `As torch ${build.torch} built it on ${drawing.target}. Boxes are tensors, rounded ones are nodes of the graph; values flow down, gradients up. A dotted line joins tensors that share memory; a version counts the writes that autograd sees.`,
      drawing.cut ? " The graph is larger than the drawing." : ""),
  ];
}

/** @param {Case} item @param {Details} details @param {Background} behind */
function runSection(item, details, behind) {
  const [column, dtype] = shownTarget(item);
  const target = column ? `[${[column.device, dtype].filter(Boolean).join("-")}]` : "";
  const asked = `${visible(column?.build.command || "pytest")} ${shellQuoted(`${item.file}::${item.id}${target}`)}`;
  const command = [h("p", {}, "Within the suite:"), h("pre", { class: "code", tabindex: "0" }, asked), copyButton("the command", asked)];
  if (!details.script) return [...command, h("p", { class: "hint" }, "There is no stand-alone script: the suite that made this page does not have the case as it was run.")];
  if (behind.damage) return [...command, h("p", {}, behind.damage)];
  const [functions, body] = scriptOf(details, behind);
  return [...command, h("p", {}, "Without the suite, in plain torch (", h("code", {}, "python script.py [DEVICE [DTYPE]]"), "):"),
    h("details", {}, h("summary", {}, "The beginning of the script: imports and the functions that it calls"), h("pre", { class: "code script", tabindex: "0" }, functions)),
    h("pre", { class: "code script", tabindex: "0" }, body), copyButton("the script", functions + body)];
}

/** Return the script of a case: the functions that it brings along, and the rest; nothing where there is none. @param {Details} details @param {Background} behind @returns {string[]} */
function scriptOf(details, behind) {
  if (!details.script || behind.damage) return [];
  const [parts, body] = details.script;
  return [parts.map((name) => behind.snippets[name]).join(""), body];
}

/**
 * Return where a case is to be run again: where it is red, on this run's build if it is red there, else where it is planned.
 * @param {Case} item
 * @returns {[Column | undefined, string]}
 */
function shownTarget(item) {
  const planned = model.columns.flatMap((column) => column.tracks.map((track, at) => ({ column, dtype: model.index.dtypes[at], status: statusOf(track, item.number) })));
  const rank = (/** @type {typeof planned[0]} */ { column, status }) => (statusNamed(status).is_red ? 2 : 0) + (column.build.is_own ? 1 : 0);
  const [first] = planned.filter(({ status }) => status).toSorted((one, other) => rank(other) - rank(one));
  return [first?.column, first?.dtype ?? ""];
}

/** Return text quoted for a shell. @param {string} text */
function shellQuoted(text) {
  return `'${visible(text).replaceAll("'", "'\\''")}'`;
}
