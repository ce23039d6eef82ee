// Finds the cases that a view asks for, and lays them out in rows: topics, rules, cases, targets.

/** @typedef {{kind: "total" | "topic" | "rule" | "case" | "target", key: string, topic: number, rule: number, cases: number[], dtypes: number[], open: boolean | null}} Row */
/** @typedef {{columns: Column[], dtypes: number[], cases: Uint8Array, count: number, asked: boolean}} Found */

/** @type {{own: string[], rules: string[], messages: string[]} | undefined} */
let searched;

/** Return the texts that are searched, in lower case; they are made once. */
function searchTexts() {
  searched ??= {
    own: model.cases.map((item) => `${item.id}\n${item.title}\n${model.index.topics[item.topic]}\n${item.file}`.toLowerCase()),
    rules: model.index.rules.map(([id, text]) => `${id}\n${text}`.toLowerCase()),
    messages: model.index.messages.map((message) => message.toLowerCase()),
  };
  return searched;
}

/**
 * Return the cases that a view asks for.
 * @param {View} view
 * @returns {Found}
 */
function foundBy(view) {
  const shows = (/** @type {string[]} */ chosen, /** @type {string} */ name) => chosen.length === 0 || chosen.includes(name);
  const columns = model.columns.filter((column) => shows(view.device, column.device) && shows(view.build, column.build.id));
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
  for (const word of view.q.toLowerCase().split(/\s+/).filter(Boolean)) searchFor(tracks, word, cases);
  return { columns, dtypes, cases, count: cases.reduce((sum, flag) => sum + flag, 0), asked };
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
 * Remove the cases that do not contain a word.
 * @param {Track[][]} tracks
 * @param {string} word
 * @param {Uint8Array} cases
 */
function searchFor(tracks, word, cases) {
  const { own, rules, messages } = searchTexts();
  const inRule = rules.map((text) => text.includes(word));
  const inMessage = messages.map((text) => text.includes(word));
  const anyMessage = inMessage.includes(true);
  for (let number = 0; number < cases.length; number += 1) {
    if (!cases[number] || own[number].includes(word)) continue;
    if (model.cases[number].rules.some((rule) => inRule[rule])) continue;
    if (anyMessage && tracks.some((list) => list.some((track) => track.message[number] >= 0 && inMessage[track.message[number]]))) {
      continue;
    }
    cases[number] = 0;
  }
}

/**
 * Return the rows of a view. With a filter all rows are open; else an open topic has those rules open that have red cases.
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
        const caseKey = `${key}/${partOfKey(model.cases[item].id)}`;
        const planned = found.dtypes.filter((dtype) => found.columns.some((column) => (column.tracks[dtype]?.marks[item] || " ") !== " "));
        const row = { topic, rule: branch.rule, cases: [item] };
        const shows = planned.length > 1 ? flipped.has(caseKey) : null; // its targets
        rows.push({ ...row, kind: "case", key: caseKey, dtypes: planned, open: shows });
        if (shows) for (const dtype of planned) rows.push({ ...row, kind: "target", key: `${caseKey}/${dtype}`, dtypes: [dtype], open: null });
      }
    }
  });
  return rows;
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
