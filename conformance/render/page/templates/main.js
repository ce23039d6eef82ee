// Starts the page, draws the view that its address names, and handles the keyboard.

/** @type {View} */
let view;
let waiting = 0;

/**
 * Change the view of the matrix and draw it; the address is updated a moment later.
 * @param {Partial<View>} part
 * @param {string} [key] the row that has the focus
 */
function change(part, key) {
  view = { ...view, ...part };
  drawMatrix();
  const toggles = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("button.toggle"));
  if (key !== undefined) [...toggles].find((element) => element.dataset.key === visible(key))?.focus();
  clearTimeout(waiting);
  waiting = setTimeout(() => history.replaceState(null, "", fragmentOf(view)), 150);
}

/** Go to another view, with an entry in the history of the browser. @param {Partial<View>} part */
function go(part) {
  location.hash = fragmentOf({ ...view, ...part });
}

function drawMatrix() {
  showForm(view);
  const found = foundBy(view);
  const rows = rowsOf(view, found);
  const of = found.count === model.cases.length ? "" : ` of ${model.cases.length}`;
  const columns = `${found.columns.length} column${found.columns.length === 1 ? "" : "s"}`;
  find("found").textContent = `${found.count}${of} case${model.cases.length === 1 ? "" : "s"} in ${columns}`;
  const causes = causesOf(found);
  find("causes-of").replaceChildren(...causes);
  find("causes-of").hidden = causes.length === 0;
  const nothing = h("p", {}, "Nothing fits the filters. ", h("button", { type: "button", click: () => change(viewOf("")) }, "Clear"));
  find("table").replaceChildren(rows.length && found.columns.length ? tableOf(view, found, rows) : nothing);
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
  const isFirst = view === undefined;
  view = asked;
  const sheet = find("sheet");
  const isMatrix = asked.page === "";
  /** @type {Child[]} */
  let content = [];
  if (isMatrix) drawMatrix();
  else if (asked.page === "changes") content = await changesSheet(asked);
  else if (asked.page === "case") {
    const item = model.byId.get(asked.id);
    content = item ? caseSheet(asked, item, await detailsOf(item)) : missing("case", asked.id, asked);
  } else {
    const build = asked.page === "build" && model.index.builds.find((other) => other.id === asked.id);
    content = build ? buildSheet(asked, build) : missing(asked.page, asked.id, asked);
  }
  if (view !== asked) return; // the address changed while the details were unpacked
  sheet.replaceChildren(...(isMatrix ? [] : [h("p", { class: "back" }, inward(asked, { page: "", id: "", from: "", to: "" }, {}, "← All cases"))]), ...content.filter((child) => child !== false && child !== null && child !== undefined));
  sheet.hidden = isMatrix;
  find("matrix").hidden = !isMatrix;
  const heading = /** @type {HTMLElement | null} */ (document.querySelector(isMatrix ? "#matrix h1" : "#sheet h1"));
  document.title = isMatrix ? "Autograd conformance" : `${heading?.textContent || ""} · Autograd conformance`;
  if (!isFirst) {
    heading?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
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
  } else if (event.key === "Escape" && view.page !== "") {
    go({ page: "", id: "", from: "", to: "" });
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
  const at = labels.indexOf(/** @type {HTMLElement} */ (target.closest("tr")?.querySelector(".label")));
  const open = target.getAttribute("aria-expanded");
  if (event.key === "ArrowDown") labels[at + 1]?.focus();
  else if (event.key === "ArrowUp") labels[at - 1]?.focus();
  else if ((event.key === "ArrowRight" && open === "false") || (event.key === "ArrowLeft" && open === "true")) target.click();
  else return;
  event.preventDefault();
}

async function start() {
  if (typeof DecompressionStream === "undefined") {
    find("wait").textContent = "This browser is too old to unpack the report; use one from 2023 or later.";
    return;
  }
  model = modelOf(await unpack(0));
  makeForm();
  find("verdict").replaceChildren(...verdict().filter((child) => child instanceof Node || typeof child === "string"));
  find("legend").append(...model.index.statuses.flatMap(({ name, explanation }) => [h("dt", {}, sign(name), ` ${name}`), h("dd", {}, explanation)]),
    h("dt", {}, h("sub", {}, "a"), " ", h("sub", {}, "b")), h("dd", {}, "what is expected depends on the release; the same letter is the same expectation"));
  document.querySelector(".skip")?.addEventListener("click", (event) => {
    event.preventDefault(); // the address would become that of another view
    find("content").focus();
  });
  window.addEventListener("hashchange", route);
  document.addEventListener("keydown", onKey);
  await route();
  find("wait").remove();
  setTimeout(searchTexts); // so that the first search is as fast as the later ones
}

start();
