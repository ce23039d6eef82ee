// What cases went through in the last nights of a build line: a strip of marks, and the same in words.

/** @type {Promise<Record<string, Past>> | undefined} */
let past; // by column

/** Return the nights of each column that has any. @returns {Promise<[Column, Past][]>} */
async function pastOfColumns() {
  if (!model.index.nights) return [];
  past ??= unpack(model.index.nights);
  return Object.entries(await past).map(([number, own]) => [model.columns[Number(number)], own]);
}

/** Return a section on what a case went through on each column; it is filled later. @param {Case} item */
function nightsOfCase(item) {
  const section = h("section", { hidden: true }, h("h3", {}, "Night after night"));
  pastOfColumns().then((columns) => {
    for (const [column, own] of columns) {
      model.index.dtypes.forEach((dtype, number) => {
        if (!statusOf(column.tracks[number], item.number) || !own.cases[dtype]) return;
        section.append(h("p", {}, ...stripOf(own, own.cases[dtype][item.number]), h("strong", {}, `${longName(column)}, ${dtype}: `), inWords(own, own.cases[dtype][item.number])));
        section.hidden = false;
      });
    }
  }).catch((error) => { section.replaceChildren(h("p", {}, damage(error))); section.hidden = false; });
  return section;
}

/** Return a section on the cases of a build that turned within its nights, the last first; it is filled later. @param {View} view @param {Build} build */
function nightsOfBuild(view, build) {
  const section = h("section", { hidden: true }, h("h2", {}, "What turned in the last nights"));
  pastOfColumns().then((columns) => {
    const turned = columns.filter(([column]) => column.build === build).flatMap(([, own]) =>
      Object.entries(own.cases).flatMap(([dtype, cases]) => Object.entries(cases).flatMap(([item, stretches]) =>
        (stretches.length > 1 ? [{ own, dtype, item: model.cases[Number(item)], stretches }] : []))));
    const since = (/** @type {Stretches} */ stretches) => stretches[stretches.length - 1][1];
    turned.sort((one, other) => since(one.stretches) - since(other.stretches) || one.item.number - other.item.number);
    const rows = turned.slice(0, MOST_ENTRIES).map(({ own, dtype, item, stretches }) => h("tr", {},
      h("th", { scope: "row", class: "message" }, inward(view, { page: "case", id: item.id }, {}, item.title)), h("td", {}, dtype),
      h("td", {}, ...stripOf(own, stretches)), h("td", { class: "message" }, inWords(own, stretches))));
    if (rows.length) section.append(scrollingTable("What turned", ["Case", "Dtype", "Nights", "In words"], [...rows, moreOf(turned, "tr")], "causes"));
    section.hidden = rows.length === 0;
  }).catch((error) => { section.replaceChildren(h("p", {}, damage(error))); section.hidden = false; });
  return section;
}

/** Return a mark for each night, which the words beside it make needless for those who can't see it. @param {Past} own @param {Stretches} [stretches] */
function stripOf(own, stretches = [["pass", own.nights.length]]) {
  const marks = stretches.flatMap(([status, count]) => Array.from({ length: count }, () => status));
  return [h("span", { class: "strip", "aria-hidden": "true" }, ...marks.map((status, night) =>
    h("span", { class: STATUSES.has(status) ? `sign ${statusNamed(status).role}` : "off", title: `${own.nights[night][0].slice(0, 10)}: ${status}` }, STATUSES.has(status) ? statusNamed(status).sign : "")))];
}

/** Return what a case went through, the last first. @param {Past} own @param {Stretches} [stretches] */
function inWords(own, stretches = [["pass", own.nights.length]]) {
  const count = own.nights.length;
  if (stretches.length === 1) return `${stretches[0][0]} in ${count === 1 ? "the one night that is kept" : `all of ${count} nights`}`;
  let night = count;
  const told = stretches.toReversed().map(([status, length], place) => {
    night -= length;
    const [started, torch] = own.nights[night];
    return night > 0 ? `${status} since ${started.slice(0, 10)}${place === 0 ? `, torch ${torch}` : ""}` : `${status} before`;
  });
  return told.join("; ");
}
