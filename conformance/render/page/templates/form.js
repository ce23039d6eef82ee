// The form above the matrix: filters, and the choice of two columns to compare.

const FILTERS = /** @type {const} */ (["status", "build", "device", "dtype", "topic", "level", "cause"]); // made of boxes to tick

/** Fill the form with the choices that this page has; called once. */
function makeForm() {
  const devices = [...new Set(model.columns.map((column) => column.device))];
  const used = model.index.statuses.filter((status) => model.columns.some((column) => column.tracks.some((track) => track?.marks.includes(status.mark))));
  find("statuses").append(...used.map(({ name }) =>
    h("label", { class: "chip" }, h("input", { type: "checkbox", name: "status", value: name, change: applyTicked }), signBeside(name), name)));
  const wrong = used.filter((status) => status.is_wrong).map((status) => status.name);
  find("choices").append(
    choice("Build", "build", model.index.builds.map((build) => [build.id, `${build.torch} ${build.label.join(" ")}`])),
    choice("Device", "device", devices.map((device) => [device, device])),
    choice("Dtype", "dtype", model.index.dtypes.map((dtype) => [dtype, dtype])),
    choice("Topic", "topic", model.index.topics.map((topic) => [topic, topic])),
    choice("Level", "level", [["documented", "documented"], ["observed", "observed"]]),
    choice("Cause", "cause", model.index.causes.map(([id, title, count, isRed]) => [id, `${count} ${isRed ? "red" : "missing"}: ${title}`]), 1),
  );
  if (model.columns.length > 1) find("compare").append(...comparison());
  find("q").addEventListener("input", (event) => change({ q: /** @type {HTMLInputElement} */ (event.target).value, flip: [] }));
  find("differ").addEventListener("change", (event) => change({ differ: /** @type {HTMLInputElement} */ (event.target).checked, flip: [] }));
  find("wrong").addEventListener("click", () => change({ status: wrong, flip: [] }));
  const own = model.index.builds.find((build) => build.is_own && build.beside);
  if (own) find("wrong").after(" ", h("button", { type: "button", id: "beside", click: () => change({ build: [own.beside, own.id], flip: [] }) }, "Show this run beside torch alone"));
  find("clear").addEventListener("click", () => change(viewOf("")));
  find("find").addEventListener("submit", (event) => event.preventDefault());
  if (wrong.length === 0) find("wrong").setAttribute("disabled", "");
}

/**
 * Return a folded list of boxes to tick, hidden where it has fewer than a choice needs.
 * @param {string} title
 * @param {"build" | "device" | "dtype" | "topic" | "level" | "cause"} name
 * @param {[string, string][]} options
 * @param {number} [fewest]
 */
function choice(title, name, options, fewest = 2) {
  const boxes = options.map(([value, label]) =>
    h("label", {}, h("input", { type: "checkbox", name, value, change: applyTicked }), label || "—"));
  return h("details", { class: "choice", name: "choice", "data-name": name, hidden: options.length < fewest }, h("summary", {}, title, h("span", { class: "chosen" })),
    h("div", { class: "options", role: "group", "aria-label": title }, ...boxes));
}

/** Change the view to the boxes that are ticked. */
function applyTicked() {
  /** @type {Partial<View>} */
  const taken = {};
  for (const name of FILTERS) taken[name] = boxes(name).filter((box) => box.checked).map((box) => box.value);
  change({ ...taken, flip: [] });
}

/** @param {string} name @returns {HTMLInputElement[]} */
function boxes(name) {
  return [...document.querySelectorAll("#find input[type=checkbox]")].map((box) => /** @type {HTMLInputElement} */ (box)).filter((box) => box.name === name);
}

/**
 * Return two lists of columns, the newest first, and a button that opens the changes between them.
 *
 * Without a view, the second is the build that the verdict is on, and the first the one before it.
 * @param {View} [view]
 */
function comparison(view) {
  const newest = model.columns.toReversed();
  const options = () => newest.map((column) => h("option", { value: column.id }, longName(column)));
  const from = /** @type {HTMLSelectElement} */ (h("select", {}, ...options()));
  const to = /** @type {HTMLSelectElement} */ (h("select", {}, ...options()));
  const own = newest.find((column) => column.build === ownBuild()) ?? newest[0];
  to.value = view?.to ?? own.id;
  from.value = view?.from ?? (newest[newest.indexOf(own) + 1] ?? newest.find((column) => column !== own) ?? own).id;
  const click = () => go({ page: "changes", id: "", kind: [], from: from.value, to: to.value });
  const button = h("button", { type: "button", class: "changed", click }, "Show what changed");
  return [h("label", {}, "From ", from), h("label", {}, "to ", to), button];
}

/** Set the form to a view. @param {View} view */
function showForm(view) {
  const q = /** @type {HTMLInputElement} */ (find("q"));
  if (q.value !== view.q) q.value = view.q;
  /** @type {HTMLInputElement} */ (find("differ")).checked = view.differ;
  for (const name of FILTERS) {
    for (const box of boxes(name)) box.checked = view[name].includes(box.value);
    const label = document.querySelector(`.choice[data-name=${name}] .chosen`);
    if (label) label.textContent = view[name].length ? `: ${view[name].length} chosen` : ": all";
  }
}
