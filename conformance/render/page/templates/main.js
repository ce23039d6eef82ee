// Starts the page, draws the view that its address names, and handles the keyboard.

/** @type {View} */
let view;
let waiting = 0;
let wasTyped = false; // whether the last change was to the text that is searched for
let drawn = ""; // the view of the matrix as it is drawn
/** @type {{at: Element | null, page: number, table: number}} */
let left = { at: null, page: 0, table: 0 }; // where one was in the matrix when another page was opened

/**
 * Change the view of the matrix and draw it. Going back undoes it, but for rows that are opened and closed, and letters.
 * @param {Partial<View>} part
 * @param {string} [key] the row that has the focus
 */
function change(part, key) {
  view = { ...view, ...part };
  drawMatrix();
  const toggles = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("button.toggle"));
  if (key !== undefined) [...toggles].find((element) => element.dataset.key === visible(key))?.focus();
  clearTimeout(waiting);
  const isTyped = "q" in part && !("status" in part);
  if (key !== undefined || (isTyped && wasTyped)) waiting = setTimeout(() => history.replaceState(null, "", fragmentOf(view)), 150);
  else history.pushState(null, "", fragmentOf(view));
  wasTyped = isTyped;
}

/** Return the fragment of the matrix behind a view. @param {View} view */
function matrixBehind(view) {
  return fragmentOf({ ...view, page: "", id: "", from: "", to: "", kind: [] });
}

/** Go to another view, with an entry in the history of the browser. @param {Partial<View>} part */
function go(part) {
  location.hash = fragmentOf({ ...view, ...part });
}

function drawMatrix() {
  const focused = /** @type {HTMLElement | null | undefined} */ (document.activeElement?.closest("table.matrix tbody tr")?.querySelector(".label"));
  drawn = matrixBehind(view);
  showForm(view);
  const found = foundBy(view);
  const rows = rowsOf(view, found);
  const of = found.count === model.cases.length ? "" : ` of ${model.cases.length}`;
  const columns = `${found.columns.length} column${found.columns.length === 1 ? "" : "s"}`;
  const isReading = view.q !== "" && !isEverythingRead;
  if (isReading) searchEverything();
  find("found").textContent = `${found.count}${of} case${model.cases.length === 1 ? "" : "s"} in ${columns}${isReading ? ", so far: what they do is still being read" : ""}`;
  const isAll = view.all && found.columns.length > MOST_COLUMNS + 1;
  find("older").textContent = isAll ? "Fold the older builds" : `Show ${counted(found.folded, "older column")}`;
  find("older").hidden = found.folded === 0 && !isAll;
  const causes = causesOf(found);
  find("causes-of").replaceChildren(...causes);
  find("causes-of").hidden = causes.length === 0;
  const nothing = h("p", {}, "Nothing fits the filters. ", h("button", { type: "button", click: () => change(viewOf("")) }, "Clear"));
  find("table").replaceChildren(rows.length && found.columns.length ? tableOf(view, found, rows) : nothing);
  const labels = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("table.matrix tbody .label"));
  if (focused) [...labels].find((label) => label.dataset.key === focused.dataset.key)?.focus(); // one may be on the way through it
}

/** Return links to the causes of what is red on the builds of the columns shown. @param {Found} found */
function causesOf(found) {
  return [...new Set(found.columns.map((column) => column.build))].flatMap((build) => {
    const red = build.causes.filter(([cause]) => model.index.causes[cause][3]);
    if (red.length === 0) return [];
    const count = red.flatMap(([, counts]) => Object.values(counts)).reduce((sum, each) => sum + each, 0);
    const words = `${red.length} cause${red.length === 1 ? "" : "s"} of ${count} red outcome${count === 1 ? "" : "s"}`;
    return [h("li", {}, inward(view, { page: "build", id: build.id }, {}, `${words} on torch ${build.torch} ${build.label.join(" ")}`))];
  });
}

/** Draw the view that the address names. */
async function route() {
  clearTimeout(waiting);
  const asked = viewOf(location.hash === "#content" ? "" : location.hash);
  const before = view;
  view = asked;
  wasTyped = false;
  if (before?.page === "" && asked.page !== "") left = { at: document.activeElement, page: window.scrollY, table: find("table").scrollTop };
  const sheet = find("sheet");
  const isMatrix = asked.page === "";
  /** @type {Child[]} */
  let content = [];
  const isSame = isMatrix && drawn === matrixBehind(asked);
  if (isMatrix && !isSame) drawMatrix();
  else if (!isMatrix) content = await sheetOf(asked).catch((error) => [h("h1", { tabindex: "-1" }, "This part of the page is damaged"), h("p", {}, damage(error))]);
  if (view !== asked) return; // the address changed while the details were unpacked
  sheet.replaceChildren(...(isMatrix ? [] : [h("p", { class: "back" }, inward(asked, { page: "", id: "", from: "", to: "", kind: [] }, {}, "← All cases"))]), ...content.filter((child) => child !== false && child !== null && child !== undefined));
  sheet.hidden = isMatrix;
  find("matrix").hidden = !isMatrix;
  const heading = /** @type {HTMLElement | null} */ (document.querySelector(isMatrix ? "#matrix h1" : "#sheet h1"));
  const own = ownBuild();
  document.title = [isMatrix ? [asked.q, ...asked.status].filter(Boolean).join(" ") || (own ? nameOfBuild(own) : "") : heading?.textContent, "Autograd conformance"].filter(Boolean).join(" · ");
  if (before && isMatrix && before.page === "") return; // a filter was undone
  if (before && isSame && left.at?.isConnected) {
    /** @type {HTMLElement} */ (left.at).focus({ preventScroll: true });
    window.scrollTo(0, left.page);
    find("table").scrollTop = left.table;
  } else if (before) {
    heading?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
}

/** Return the content of a page other than the matrix. @param {View} asked @returns {Promise<Child[]>} */
async function sheetOf(asked) {
  if (asked.page === "changes") return changesSheet(asked);
  if (asked.page === "case") {
    const item = model.byId.get(asked.id);
    return item ? caseSheet(asked, item, await detailsOf(item).catch(lostDetails), await backgroundOfCases()) : missing("case", asked.id, asked);
  }
  const build = asked.page === "build" && model.index.builds.find((other) => other.id === asked.id);
  return build ? buildSheet(asked, build) : missing(asked.page, asked.id, asked);
}

/** Say what is wrong with the page, and what to do. @param {unknown} error */
function damage(error) {
  return `What it should show can't be unpacked (${error}). The file is damaged or was cut off: get it again, or make it anew of the JSON reports with python -m conformance report.`;
}

/** Say what can't be opened of a page of which the end is missing. */
function cutOff() {
  const parts = document.querySelectorAll("script[type='text/plain']").length - 2; // but for the index, and the one that is cut
  const kept = Math.min(model.cases.length, Math.max(0, parts) * model.index.chunk);
  return `the end of this file is missing. ${kept} of ${counted(model.cases.length, "case")} can be opened; of the others it has the outcomes alone. Get it again.`;
}

/** @param {string} what @param {string} id @param {View} asked @returns {Child[]} */
function missing(what, id, asked) {
  return [h("h1", { tabindex: "-1" }, "Not in this report"), h("p", {}, `There is no ${what || "page"} `, h("code", {}, id), " here. ", inward(asked, { page: "", id: "" }, {}, "Show all cases"))];
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  const typing = target.matches("input, select, textarea");
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "/" && !typing && !find("matrix").hidden) {
    event.preventDefault();
    find("q").focus();
  } else if (event.key === "Escape" && target.closest("details.choice[open]")) {
    const menu = /** @type {HTMLDetailsElement} */ (target.closest("details.choice[open]"));
    menu.open = false;
    menu.querySelector("summary")?.focus();
  } else if (event.key === "Escape" && view.page !== "") {
    go({ page: "", id: "", from: "", to: "", kind: [] });
  } else if (!typing && target.closest("table.matrix")) {
    onRowKey(event, target);
  } else if (event.key === "ArrowDown" && target.id === "q") {
    event.preventDefault();
    /** @type {HTMLElement | null} */ (document.querySelector("table.matrix tbody .label"))?.focus();
  }
}

/** @param {KeyboardEvent} event @param {HTMLElement} target */
function onRowKey(event, target) {
  const labels = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("table.matrix tbody .label")]);
  const row = target.closest("tr");
  const at = labels.indexOf(/** @type {HTMLElement} */ (row?.querySelector(".label")));
  const along = /** @type {HTMLElement[]} */ ([labels[at], ...(row?.querySelectorAll("td a") ?? [])]);
  const place = along.indexOf(target);
  const open = target.getAttribute("aria-expanded");
  if (event.key === "ArrowDown") labels[at + 1]?.focus();
  else if (event.key === "ArrowUp") labels[at - 1]?.focus();
  else if ((event.key === "ArrowRight" && open === "false") || (event.key === "ArrowLeft" && open === "true")) target.click();
  else if (event.key === "ArrowRight") along[place + 1]?.focus();
  else if (event.key === "ArrowLeft") along[place - 1]?.focus();
  else return;
  event.preventDefault();
}

async function start() {
  if (typeof DecompressionStream === "undefined") {
    find("wait").textContent = "This browser is too old to unpack the report; use one from 2023 or later.";
    return;
  }
  try {
    model = modelOf(await unpack(0));
  } catch (error) {
    find("wait").textContent = damage(error);
    return;
  }
  makeForm();
  find("verdict").replaceChildren(...verdict().filter((child) => child instanceof Node || typeof child === "string"));
  find("upgrade").replaceChildren(...upgrades());
  find("older").addEventListener("click", () => change({ all: !view.all }));
  find("found").after(copyButton("link", () => location.href));
  find("signs").append(h("details", {}, h("summary", {}, "What the signs mean"), h("dl", { id: "legend" })));
  find("legend").append(...model.index.statuses.flatMap(({ name, explanation }) => [h("dt", {}, signBeside(name), ` ${name}`), h("dd", {}, explanation)]),
    h("dt", {}, h("sub", {}, "a"), " ", h("sub", {}, "b")), h("dd", {}, "what is expected depends on the release; the same letter is the same expectation"));
  document.querySelector(".skip")?.addEventListener("click", (event) => {
    event.preventDefault(); // the address would become that of another view
    find("content").focus();
  });
  window.addEventListener("hashchange", route);
  document.addEventListener("keydown", onKey);
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.choice[open]")) if (!menu.contains(/** @type {Node} */ (event.target))) menu.removeAttribute("open");
  });
  wholeFile().then(() => {
    if (!document.getElementById("end")) document.querySelector("header")?.append(notice("Cut off", cutOff()));
  });
  await route();
  find("wait").remove();
  setTimeout(searchTexts); // so that the first search is as fast as the later ones
  find("q").addEventListener("focus", searchEverything);
}

start();
