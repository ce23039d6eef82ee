// Unpacks the data of the page into the model that the other scripts read.

/** @typedef {{marks: string, notes: number[]}} Cells */
/** @typedef {{build: number, device: string, cells: Record<string, Cells>}} PackedColumn */
/** @typedef {{id: string, torch: string, name: string, command: string, release: string, beside: string, label: string[], facts: [string, string][], devices: string[][], features: string[][], config: string, runs: string[], is_finished: boolean, is_own: boolean, counts: Record<string, Record<string, number>>, why: [string, string, string, number][], causes: CauseOfBuild[]}} Build */
/** @typedef {[id: string, title: string, count: number, isRed: boolean]} Cause of what is red or unsupported */
/** @typedef {[cause: number, counts: Record<string, number>, targets: string[], smallest: string, target: string]} CauseOfBuild with its smallest case */
/** @typedef {[id: string, text: string]} Rule */
/** @typedef {[level: string, link: string, since: string, upgrade: string]} RuleBackground */
/** @typedef {{rules: RuleBackground[], snippets: Record<string, string>, damage?: string}} Background of the pages of cases */
/** @typedef {[id: string, title: string, topic: number, observed: number, rules: number[], file: number, line: number]} PackedCase */
/** @typedef {{name: string, mark: string, sign: string, role: string, severity: number, explanation: string, verdict: string, is_red: boolean, is_wrong: boolean, is_run: boolean, tells_of_torch: boolean}} Status */
/** @typedef {{statuses: Status[], builds: Build[], causes: Cause[], columns: PackedColumn[], dtypes: string[], messages: string[], topics: string[], files: string[], rules: Rule[], cases: PackedCase[], revisions: Record<string, Record<string, number | null>>, variants: Record<string, [string[], number[]]>, kinds: [string, string][], first: string[], nights: number, expectation: string, degrees: string[], decisions: Record<string, Record<string, Record<string, string | null>>>, chunk: number, last: number, background: number}} Index */

/** @typedef {{marks: string, message: Int32Array, fingerprint: Int32Array, wording: Int32Array, cause: Int32Array}} Track one dtype of a column, by case */
/** @typedef {{number: number, id: string, build: Build, device: string, tracks: (Track | null)[]}} Column */
/** @typedef {{number: number, id: string, title: string, topic: number, level: string, rules: number[], file: string, line: number}} Case */
/** @typedef {{rule: number, cases: number[]}} Branch of the cases that cite a rule, or with -1 of those that cite none */
/** @typedef {{index: Index, columns: Column[], cases: Case[], byId: Map<string, Case>, tree: Branch[][], topicCases: number[][], nameOf: Map<string, string>}} Model */

/** @typedef {{line: number, path: string, expected: string, observed: string}} Failure */
/** @typedef {{status: string, step?: number, line?: number, failures?: Failure[], unobserved?: {line: number, path: string, reason: string}[], traceback?: [number, string][], reason?: string, stderr?: string, issue?: {status: string, reason: string, link?: string}, retry?: {status: string, alone: {status: string, reason?: string, failures?: Failure[]}}}} Outcome with what came of it when it was run once more, if it is flaky */
/** @typedef {[kind: string, lines: string[], x: number, y: number, width: number, height: number, before: string[] | null]} DrawnBox with its lines before backward, where they are others */
/** @typedef {{size: [number, number], boxes: DrawnBox[], paths: [string, [number, number][]][], cut: boolean, build: number, target: string}} Drawing */
/** @typedef {{why: string, source: string[], yaml: string, steps: number[], left_out: [number, number[]][], script: [string[], string] | null, graph: Drawing | null, outcomes: Outcome[], places: [number, string, number][], reproductions: Record<string, string>, damage?: string}} Details */

/** @typedef {[status: string, count: number][]} Stretches the statuses that a case had, and for how many nights */
/** @typedef {{nights: [started: string, torch: string][], cases: Record<string, Record<string, Stretches>>}} Past of a column: by dtype and case, but for those that passed in all nights */

/** @typedef {[place: string, before: string, after: string]} Words */
/** @typedef {Record<string, Record<string, [kind: string, words: Words[]] | null>>} Expected by case and two of its alternatives, as in 0/1 */

/** @type {Model} */
let model; // of this page, set once it is unpacked

/** Wait for the whole file: most of its parts come after the scripts. @returns {Promise<void>} */
function wholeFile() {
  return new Promise((done) => {
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => done());
    else done();
  });
}

/**
 * Unpack a part: base64 of deflated JSON.
 * @param {number} number
 * @returns {Promise<any>}
 */
async function unpack(number) {
  if (number > 0) await wholeFile();
  const packed = find(`part-${number}`).textContent || "";
  const bytes = Uint8Array.from(atob(packed.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/** @type {Map<string, Status>} */
const STATUSES = new Map(); // by name, the most severe first

/** Return the row of the status table for a status. @param {string} name */
function statusNamed(name) {
  return /** @type {Status} */ (STATUSES.get(name));
}

/** @param {Index} index @returns {Model} */
function modelOf(index) {
  for (const status of index.statuses.toSorted((one, other) => other.severity - one.severity)) STATUSES.set(status.name, status);
  // Ids stand in addresses, where invisible characters are spelled out; so they are spelled out here too.
  for (const build of index.builds) [build.id, build.beside] = [visible(build.id), visible(build.beside)];
  index.topics = index.topics.map(visible);
  const cases = index.cases.map(([id, title, topic, observed, rules, file, line], number) => ({
    number, id: visible(id), title: title.trim() ? title : "Untitled", topic, level: observed ? "observed" : "documented", rules, file: index.files[file], line,
  }));
  const columns = index.columns.map((packed, number) => {
    const build = index.builds[packed.build];
    const tracks = index.dtypes.map((_, dtype) => (packed.cells[dtype] ? trackOf(packed.cells[dtype]) : null));
    const device = visible(packed.device);
    return { number, id: `${build.id}/${device}`, build, device, tracks };
  });
  /** @type {Map<number, number[]>[]} */
  const byRule = index.topics.map(() => new Map());
  /** @type {number[][]} */
  const topicCases = index.topics.map(() => []);
  for (const item of cases) {
    topicCases[item.topic].push(item.number);
    for (const rule of item.rules.length ? item.rules : [-1]) {
      const citing = byRule[item.topic].get(rule);
      if (citing) citing.push(item.number);
      else byRule[item.topic].set(rule, [item.number]);
    }
  }
  const tree = byRule.map((rules) => Array.from(rules, ([rule, citing]) => ({ rule, cases: citing })));
  return { index, columns, cases, byId: new Map(cases.map((item) => [item.id, item])), tree, topicCases, nameOf: new Map(index.statuses.map((status) => [status.mark, status.name])) };
}

/** @param {Cells} cells @returns {Track} */
function trackOf(cells) {
  const [message, fingerprint, wording, cause] = [1, 2, 3, 4].map((part) => {
    const numbers = new Int32Array(cells.marks.length).fill(-1);
    for (let at = 0; at < cells.notes.length; at += 5) numbers[cells.notes[at]] = cells.notes[at + part];
    return numbers;
  });
  return { marks: cells.marks, message, fingerprint, wording, cause };
}

/** @type {Map<number, Promise<Details[]>>} */
const unpackedParts = new Map();

/**
 * Return the details of a case, unpacking the part that holds them when it is first needed.
 * @param {Case} item
 * @returns {Promise<Details>}
 */
async function detailsOf(item) {
  const place = item.number;
  const part = 1 + Math.floor(place / model.index.chunk);
  let details = unpackedParts.get(part);
  if (!details) {
    details = unpack(part);
    unpackedParts.set(part, details);
  }
  return (await details)[place % model.index.chunk];
}

/** What is known of a case whose part can't be unpacked. @param {unknown} error @returns {Details} */
function lostDetails(error) {
  return { why: "", source: [], yaml: "", steps: [], left_out: [], script: null, graph: null, outcomes: [], places: [], reproductions: {}, damage: damage(error) };
}

/** @type {Promise<Background> | undefined} */
let background;

/** Return where rules come from and what scripts bring along, or what is wrong with it. @returns {Promise<Background>} */
function backgroundOfCases() {
  background ??= unpack(model.index.background).catch((error) => ({ rules: [], snippets: {}, damage: damage(error) }));
  return background;
}

/**
 * Return the status of a case in a track, or "" where it isn't planned.
 * @param {Track | null} track
 * @param {number} item
 */
function statusOf(track, item) {
  return model.nameOf.get(track ? track.marks[item] : " ") ?? "";
}

/**
 * Return the revision of a case that a build has; 0 is the displayed one, null means that it has none.
 * @param {number} item
 * @param {Column} column
 */
function revisionOf(item, column) {
  const revision = model.index.revisions[item]?.[model.index.columns[column.number].build];
  return revision === undefined ? 0 : revision;
}

const RAN_OTHER_REVISION = "this build ran another revision of the case";

/**
 * Whether a build ran another revision of a case than the displayed one.
 * @param {number} item
 * @param {Column} column
 */
function isEdited(item, column) {
  return revisionOf(item, column) !== 0;
}

/**
 * Return which alternative of a case's expectations applies to a column, counted from the oldest release.
 * @param {number} item
 * @param {Column} column
 */
function variantOf(item, column) {
  return model.index.variants[item]?.[1][model.index.columns[column.number].build] ?? 0;
}

/**
 * Return the conditions of a case that hold for a column, in words.
 * @param {number} item
 * @param {Column} column
 */
function conditionOf(item, column) {
  return model.index.variants[item]?.[0][variantOf(item, column)] ?? "";
}
