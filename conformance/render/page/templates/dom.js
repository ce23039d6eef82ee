// Makes elements. All text of the page goes through here and is never parsed as markup.

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\p{Cs}/gu;

const PLAIN = /^[\n\t -~]*$/;

/**
 * Return text with invisible and direction-changing characters as their code points.
 * @param {string} text
 */
function visible(text) {
  if (PLAIN.test(text)) return text;
  return text.replace(UNSEEN, (character) => {
    const code = (character.codePointAt(0) || 0).toString(16).toUpperCase().padStart(4, "0");
    return `⟨U+${code}⟩`;
  });
}

const LONGEST_TEXT = 50_000; // characters; browsers take long to lay out more

/** Return text, cut if it is very long. @param {string} text */
function shortened(text) {
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT)}… (${text.length - LONGEST_TEXT} characters more)`;
}

/** @typedef {Node | string | null | undefined | false} Child */

/**
 * Return a new element; a property that is a function listens to the event of that name.
 * @param {string} tag
 * @param {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} [properties]
 * @param {...Child} children
 * @returns {HTMLElement}
 */
function h(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/**
 * Return a new element of a drawing.
 * @param {string} tag
 * @param {Record<string, string | number>} properties
 * @param {...Child} children
 */
function svg(tag, properties, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

/** @template {Element} E @param {E} element @param {Record<string, any>} properties @param {Child[]} children */
function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : visible(String(value)));
    }
  }
  for (const child of children) {
    if (typeof child === "string") element.append(visible(shortened(child)));
    else if (child) element.append(child);
  }
  return element;
}

/**
 * Return a table in a region that scrolls, with a heading for each column.
 * @param {string} label of the region
 * @param {string[]} names of the columns
 * @param {Child[]} rows
 * @param {string} [style] the class of the table
 */
function scrollingTable(label, names, rows, style) {
  const headings = names.map((name) => h("th", { scope: "col" }, name));
  const table = h("table", { class: style }, h("thead", {}, h("tr", {}, ...headings)), h("tbody", {}, ...rows));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
}

/** Return a paragraph that says what is amiss. @param {string} what @param {string} text */
function notice(what, text) {
  return h("p", { class: "notice", role: "note" }, h("strong", {}, `${what}:`), ` ${text}`);
}

/**
 * Return the element with an id that the page is known to have.
 * @param {string} id
 * @returns {HTMLElement}
 */
function find(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`no element ${id}`);
  return element;
}

/**
 * Return a link to another site, or plain text where the address is no http or https address.
 * @param {string} address
 * @param {string} text
 */
function outward(address, text) {
  if (!/^https?:\/\/[^\s]+$/i.test(address)) return h("span", {}, `${text}: ${address}`);
  return h("a", { href: address, rel: "noopener noreferrer", target: "_blank" }, text);
}

/**
 * Return a button that copies text and then says whether it did.
 * @param {string} what
 * @param {string | (() => string)} text or what returns it when it is asked for
 */
function copyButton(what, text) {
  const label = `Copy ${what}`;
  const button = h("button", { type: "button", class: "copy", click: copy }, label);
  async function copy() {
    button.textContent = (await copied(typeof text === "string" ? text : text())) ? "Copied" : "Could not copy; select the text instead";
    setTimeout(() => { button.textContent = label; }, 2000);
  }
  return button;
}

/**
 * Copy text; the clipboard API can be missing on a page that was opened from a file.
 * @param {string} text
 */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
