// The view: which page and which filters, as the fragment of the address holds them.

/** @typedef {{page: string, id: string, q: string, status: string[], device: string[], dtype: string[], topic: string[], level: string[], build: string[], cause: string[], kind: string[], differ: boolean, all: boolean, from: string, to: string, flip: string[]}} View */

const LISTS = /** @type {const} */ (["status", "device", "dtype", "topic", "level", "build", "cause", "kind", "flip"]);
const FLAGS = /** @type {const} */ (["differ", "all"]);
const TEXTS = /** @type {const} */ (["q", "from", "to"]);

/**
 * Return the view that a fragment describes: `#case/<id>?q=…`, where each part may be missing.
 * @param {string} fragment
 * @returns {View}
 */
function viewOf(fragment) {
  const [, path, query] = /^#?([^?]*)\??(.*)$/s.exec(fragment) || ["", "", ""];
  const slash = path.indexOf("/");
  const given = new URLSearchParams(query);
  /** @type {View} */
  const view = {
    page: slash < 0 ? path : path.slice(0, slash), id: slash < 0 ? "" : decoded(path.slice(slash + 1)),
    q: "", status: [], device: [], dtype: [], topic: [], level: [], build: [], cause: [], kind: [], differ: false, all: false,
    from: "", to: "", flip: [],
  };
  for (const name of TEXTS) view[name] = given.get(name) || "";
  for (const name of LISTS) view[name] = given.getAll(name);
  for (const name of FLAGS) view[name] = given.has(name);
  return view;
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Return the fragment that leads to a view. @param {View} view */
function fragmentOf(view) {
  const query = new URLSearchParams();
  for (const name of TEXTS) if (view[name]) query.append(name, view[name]);
  for (const name of LISTS) for (const value of view[name]) query.append(name, value);
  for (const name of FLAGS) if (view[name]) query.append(name, "1");
  const id = view.id ? `/${encodeURIComponent(visible(view.id))}` : "";
  const asked = query.toString();
  return `#${view.page}${id}${asked ? `?${asked}` : ""}`;
}

/**
 * Return a link within the page that keeps the rest of the view.
 * @param {View} view
 * @param {Partial<View>} change
 * @param {Record<string, any>} properties
 * @param {...Child} children
 */
function inward(view, change, properties, ...children) {
  return h("a", { ...properties, href: fragmentOf({ ...view, ...change }) }, ...children);
}
