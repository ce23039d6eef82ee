// Finds the cases that a view asks for, and lays them out in rows: topics, rules, cases, targets.

/** @typedef {{kind: "total" | "topic" | "rule" | "case" | "target", key: string, topic: number, rule: number, cases: number[], dtypes: number[], open: boolean | null}} Row */
/** @typedef {{columns: Column[], dtypes: number[], cases: Uint8Array, count: number, asked: boolean}} Found */

/** @type {WeakMap<Model, {own: string[], rules: string[], messages: string[]}>} */
const haystacks = new WeakMap();

/**
 * Return what is searched, in lower case, made when it is first needed.
 * @param {Model} model
 */
function haystackOf(model) {
  let haystack = haystacks.get(model);
  if (!haystack) {
    haystack = {
      own: model.cases.map((item) => `${item.id}\n${item.title}\n${model.index.topics[item.topic]}\n${item.file}`.toLowerCase()),
      rules: model.index.rules.map(([id, text]) => `${id}\n${text}`.toLowerCase()),
      messages: model.index.messages.map((message) => message.toLowerCase()),
    };
    haystacks.set(model, haystack);
  }
  return haystack;
}

/**
 * Return the columns that a view shows.
 * @param {Model} model
 * @param {View} view
 */
function columnsOf(model, view) {
  return model.columns.filter((column) =>
    (view.device.length === 0 || view.device.includes(column.device))
    && (view.build.length === 0 || view.build.includes(column.build.id)));
}

/**
 * Return the cases that a view asks for.
 * @param {Model} model
 * @param {View} view
 * @returns {Found}
 */
function foundBy(model, view) {
  const columns = columnsOf(model, view);
  const dtypes = model.index.dtypes.map((_, number) => number)
    .filter((number) => view.dtype.length === 0 || view.dtype.includes(model.index.dtypes[number]));
  const tracks = dtypes.map((dtype) => columns.flatMap((column) => column.tracks[dtype] || []));
  const cases = new Uint8Array(model.cases.length).fill(1);
  const asked = Boolean(view.q.trim() || view.status.length || view.topic.length || view.level.length || view.differ
    || view.dtype.length);
  const topics = view.topic.length ? model.index.topics.map((name) => view.topic.includes(name)) : null;
  const wanted = view.status.map((name) => statusNamed(name)?.mark ?? "").join("");
  for (const item of model.cases) {
    if ((topics && !topics[item.topic]) || (view.level.length && !view.level.includes(item.level))) cases[item.number] = 0;
    else if (view.status.length && !hasMark(tracks, item.number, wanted)) cases[item.number] = 0;
    else if (view.differ && !differs(model, columns, tracks, item.number)) cases[item.number] = 0;
    else if (view.dtype.length && !tracks.some((list) => list.some((track) => track.marks[item.number] !== " "))) {
      cases[item.number] = 0;
    }
  }
  for (const word of view.q.toLowerCase().split(/\s+/).filter(Boolean)) searchFor(model, tracks, word, cases);
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
 * Whether columns tell different things of a case: another status, another failure, or another expectation for
 * another release. What a build did not plan tells nothing.
 * @param {Model} model
 * @param {Column[]} columns
 * @param {Track[][]} tracks
 * @param {number} item
 */
function differs(model, columns, tracks, item) {
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
  return new Set(columns.map((column) => variantOf(model, item, column))).size > 1;
}

/**
 * Strike out the cases in which a word stands nowhere.
 * @param {Model} model
 * @param {Track[][]} tracks
 * @param {string} word
 * @param {Uint8Array} cases
 */
function searchFor(model, tracks, word, cases) {
  const { own, rules, messages } = haystackOf(model);
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
 * Return the rows of a view. What was asked for stands open; else an opened topic opens to what is wrong.
 * @param {Model} model
 * @param {View} view
 * @param {Found} found
 * @returns {Row[]}
 */
function rowsOf(model, view, found) {
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
    const listed = new Set(); // a case that cites several rules opens below the first of them only
    for (const branch of branches) {
      const below = branch.cases.filter(isIn);
      if (below.length === 0) continue;
      const key = `${name}/${partOfKey(model.index.rules[branch.rule]?.[0] ?? "")}`;
      const fresh = below.filter((item) => !listed.has(item));
      const isOpen = fresh.some((item) => found.asked || hasMark(tracks, item, redMarks)) !== flipped.has(key);
      rows.push({ kind: "rule", key, topic, rule: branch.rule, cases: below, dtypes: found.dtypes, open: isOpen });
      if (!isOpen) continue;
      for (const item of below) {
        listed.add(item);
        caseRows(model, found, flipped, key, topic, branch.rule, item, rows);
      }
    }
  });
  return rows;
}

/**
 * Return a name as it stands in the key of a row, where a slash parts names.
 * @param {string} name
 */
function partOfKey(name) {
  return visible(name).replace(/[%/]/g, encodeURIComponent);
}

/**
 * Add the row of a case, and where it runs with several dtypes and stands open, those of its targets.
 * @param {Model} model
 * @param {Found} found
 * @param {Set<string>} flipped
 * @param {string} above
 * @param {number} topic
 * @param {number} rule
 * @param {number} item
 * @param {Row[]} rows
 */
function caseRows(model, found, flipped, above, topic, rule, item, rows) {
  const key = `${above}/${partOfKey(model.cases[item].id)}`;
  const dtypes = found.dtypes.filter((dtype) => found.columns.some((column) => (column.tracks[dtype]?.marks[item] || " ") !== " "));
  const open = dtypes.length > 1 ? flipped.has(key) : null;
  rows.push({ kind: "case", key, topic, rule, cases: [item], dtypes, open });
  if (!open) return;
  for (const dtype of dtypes) rows.push({ kind: "target", key: `${key}/${dtype}`, topic, rule, cases: [item], dtypes: [dtype], open: null });
}

/**
 * Count the outcomes of some cases in a column by status.
 * @param {Model} model
 * @param {Column} column
 * @param {number[]} cases
 * @param {number[]} dtypes
 * @returns {Map<string, number>}
 */
function countsOf(model, column, cases, dtypes) {
  const byMark = new Map();
  for (const dtype of dtypes) {
    const track = column.tracks[dtype];
    if (!track) continue;
    for (const item of cases) {
      const mark = track.marks[item];
      if (mark !== " ") byMark.set(mark, (byMark.get(mark) || 0) + 1);
    }
  }
  const counts = new Map();
  for (const { name, mark } of STATUSES.values()) {
    const count = byMark.get(mark);
    if (count) counts.set(name, count);
  }
  return counts;
}
