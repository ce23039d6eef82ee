// Finds the cases that a view asks for, and lays them out in rows: topics, rules, cases, targets.

/** @typedef {{kind: "total" | "topic" | "rule" | "case" | "target", key: string, topic: number, rule: number, cases: number[], dtypes: number[], open: boolean | null}} Row */
const MOST_COLUMNS = 8; // that are shown unless more are asked for

/** @typedef {{columns: Column[], folded: number, dtypes: number[], cases: Uint8Array, scores: Float64Array | null, count: number, asked: boolean}} Found */

/** Return the columns as they are shown: those of the build that one came for, then from the newest build on. */
function inOrder() {
  const rank = (/** @type {Column} */ { build }) => (build === ownBuild() ? model.index.builds.length : model.index.builds.indexOf(build));
  return model.columns.toSorted((one, other) => rank(other) - rank(one) || one.number - other.number);
}

/**
 * Return the cases that a view asks for.
 * @param {View} view
 * @returns {Found}
 */
function foundBy(view) {
  const shows = (/** @type {string[]} */ chosen, /** @type {string} */ name) => chosen.length === 0 || chosen.includes(name);
  const fitting = inOrder().filter((column) => shows(view.device, column.device) && shows(view.build, column.build.id));
  const isFolded = !view.all && view.build.length === 0 && fitting.length > MOST_COLUMNS + 1;
  const columns = isFolded ? fitting.slice(0, MOST_COLUMNS) : fitting;
  const dtypes = model.index.dtypes.map((_, number) => number).filter((number) => shows(view.dtype, model.index.dtypes[number]));
  const tracks = dtypes.map((dtype) => columns.flatMap((column) => column.tracks[dtype] || []));
  const cases = new Uint8Array(model.cases.length).fill(1);
  const asked = Boolean(view.q.trim() || view.status.length || view.topic.length || view.level.length || view.differ || view.dtype.length || view.cause.length);
  const wanted = view.status.map((name) => statusNamed(name)?.mark ?? "").join("");
  const causes = new Set(model.index.causes.flatMap(([id], number) => (view.cause.includes(id) ? [number] : [])));
  for (const item of model.cases) {
    const isWanted = shows(view.topic, model.index.topics[item.topic]) && shows(view.level, item.level)
      && (view.status.length === 0 || hasMark(tracks, item.number, wanted))
      && (view.cause.length === 0 || tracks.some((list) => list.some((track) => causes.has(track.cause[item.number]))))
      && (!view.differ || differs(columns, tracks, item.number))
      && (view.dtype.length === 0 || tracks.some((list) => list.some((track) => track.marks[item.number] !== " ")));
    if (!isWanted) cases[item.number] = 0;
  }
  const scores = view.q.trim() ? scoresOf(view.q, tracks) : null;
  scores?.forEach((score, item) => { if (score === 0) cases[item] = 0; });
  return { columns, folded: fitting.length - columns.length, dtypes, cases, scores, count: cases.reduce((sum, flag) => sum + flag, 0), asked };
}

/**
 * Whether a case has one of some marks in any of the tracks.
 * @param {Track[][]} tracks
 * @param {number} item
 * @param {string} wanted
 */
function hasMark(tracks, item, wanted) {
  return tracks.some((list) => list.some((track) => track.marks[item] !== " " && wanted.includes(track.marks[item])));
}

/**
 * Whether columns differ in a case: in its status, its failure, or the expectation for their release. A build that
 * did not plan the case is left out.
 * @param {Column[]} columns
 * @param {Track[][]} tracks
 * @param {number} item
 */
function differs(columns, tracks, item) {
  for (const list of tracks) {
    let mark = " ";
    let fingerprint = -1;
    for (const track of list) {
      const own = track.marks[item];
      if (own === " ") continue;
      if (mark === " ") [mark, fingerprint] = [own, track.fingerprint[item]];
      else if (own !== mark || track.fingerprint[item] !== fingerprint) return true;
    }
  }
  if (!model.index.variants[item]) return false;
  return new Set(columns.map((column) => variantOf(item, column))).size > 1;
}

/**
 * Return the rows of a view. Cases that were searched for are a list, the best first. With a filter all rows are open; else
 * an open topic has those rules open that have red cases.
 * @param {View} view
 * @param {Found} found
 * @returns {Row[]}
 */
function rowsOf(view, found) {
  /** @type {Row[]} */
  const rows = [];
  const flipped = new Set(view.flip);
  const tracks = found.dtypes.map((dtype) => found.columns.flatMap((column) => column.tracks[dtype] || []));
  const redMarks = model.index.statuses.filter((status) => status.is_red).map((status) => status.mark).join("");
  const isIn = (/** @type {number} */ number) => found.cases[number] === 1;
  const all = model.cases.map((item) => item.number).filter(isIn);
  if (all.length) rows.push({ kind: "total", key: "", topic: -1, rule: -1, cases: all, dtypes: found.dtypes, open: null });
  const { scores } = found;
  if (scores) {
    for (const item of all.toSorted((one, other) => scores[other] - scores[one] || one - other)) rows.push(...caseRows(view, found, item, "", -1));
    return rows;
  }
  model.tree.forEach((branches, topic) => {
    const cases = model.topicCases[topic].filter(isIn);
    if (cases.length === 0) return;
    const name = partOfKey(model.index.topics[topic]);
    const open = found.asked !== flipped.has(name);
    rows.push({ kind: "topic", key: name, topic, rule: -1, cases, dtypes: found.dtypes, open });
    if (!open) return;
    /** @type {Set<number>} */
    const placed = new Set(); // a case that cites several rules is a reason to open the first of them only
    for (const branch of branches) {
      const below = branch.cases.filter(isIn);
      if (below.length === 0) continue;
      const key = `${name}/${partOfKey(model.index.rules[branch.rule]?.[0] ?? "")}`;
      const fresh = below.filter((item) => !placed.has(item));
      const isOpen = fresh.some((item) => found.asked || hasMark(tracks, item, redMarks)) !== flipped.has(key);
      rows.push({ kind: "rule", key, topic, rule: branch.rule, cases: below, dtypes: found.dtypes, open: isOpen });
      if (!isOpen) continue;
      for (const item of below) {
        placed.add(item);
        rows.push(...caseRows(view, found, item, key, branch.rule));
      }
    }
  });
  return rows;
}

/**
 * Return the row of a case, and those of its targets if it is opened.
 * @param {View} view
 * @param {Found} found
 * @param {number} item
 * @param {string} above the key of the row above it
 * @param {number} rule
 * @returns {Row[]}
 */
function caseRows(view, found, item, above, rule) {
  const key = `${above}/${partOfKey(model.cases[item].id)}`;
  const planned = found.dtypes.filter((dtype) => found.columns.some((column) => (column.tracks[dtype]?.marks[item] || " ") !== " "));
  const open = planned.length > 1 ? view.flip.includes(key) : null; // its targets
  const row = { topic: model.cases[item].topic, rule, cases: [item] };
  const targets = open ? planned.map((dtype) => ({ ...row, kind: /** @type {const} */ ("target"), key: `${key}/${dtype}`, dtypes: [dtype], open: null })) : [];
  return [{ ...row, kind: /** @type {const} */ ("case"), key, dtypes: planned, open }, ...targets];
}

/**
 * Return a name as it stands in the key of a row, where a slash separates names.
 * @param {string} name
 */
function partOfKey(name) {
  return visible(name).replace(/[%/]/g, encodeURIComponent);
}

/**
 * Count the outcomes of some cases in a column by status.
 * @param {Column} column
 * @param {number[]} cases
 * @param {number[]} dtypes
 * @returns {Map<string, number>}
 */
function countsOf(column, cases, dtypes) {
  const byMark = new Map();
  for (const dtype of dtypes) {
    const track = column.tracks[dtype];
    if (!track) continue;
    for (const item of cases) {
      const mark = track.marks[item];
      if (mark !== " ") byMark.set(mark, (byMark.get(mark) || 0) + 1);
    }
  }
  const found = [...STATUSES.values()].filter(({ mark }) => byMark.has(mark));
  return new Map(found.map(({ name, mark }) => [name, byMark.get(mark)]));
}
