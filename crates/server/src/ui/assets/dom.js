// The little of a framework that the page needs. Data become text nodes and attributes, never
// markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, String(value));
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** An element with attributes and children. Attributes that begin with `on` are listeners. */
export const h = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);

/** The same in the namespace of SVG. */
export const svg = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

export const byId = (id) => document.getElementById(id);

/** Has a screen reader say what changed. The same text twice is said twice. */
export function announce(text, { urgent = false } = {}) {
  const region = byId(urgent ? "alert" : "announcement");
  region.textContent = region.textContent === text ? `${text}\u00a0` : text;
}

let names = 0;

/** A name that no other element has, for labels. */
export const fresh = (prefix) => `${prefix}-${++names}`;

/** A section with its title. */
export function section(title, ...children) {
  const id = fresh("section");
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), ...children);
}

/** A button. */
export const button = (text, onclick, attributes = {}) => h("button", { type: "button", onclick, ...attributes }, text);

/** A labeled input, and what explains it. */
export function field(label, input, about = null) {
  const id = fresh("field");
  input.id = id;
  if (about !== null) input.setAttribute("aria-describedby", `${id}-about`);
  return h("div", { class: "field" }, h("label", { for: id }, label), input,
    about === null ? null : h("p", { class: "about", id: `${id}-about` }, about));
}

/** Names and values, one pair in a row. */
export const facts = (...pairs) => h("dl", { class: "facts" },
  pairs.filter(Boolean).flatMap(([name, ...value]) => [h("dt", {}, name), h("dd", {}, ...value)]));

/**
 * A table whose columns are `{ name, figure }`. A row is a list of cells: text or nodes. The first
 * cell names the row.
 */
export function table(caption, columns, rows, { stacked = true } = {}) {
  const head = columns.map((column) => h("th", { scope: "col", class: column.figure ? "figure" : null }, column.name));
  const body = rows.map((cells) => h("tr", {}, cells.map((cell, place) => {
    const { name, figure } = columns[place];
    const attributes = { class: figure ? "figure" : null, "data-name": name };
    return place === 0 ? h("th", { scope: "row", ...attributes }, cell) : h("td", attributes, cell);
  })));
  return h("div", { class: stacked ? "scroll stacked" : "scroll", role: "region", "aria-label": caption, tabindex: stacked ? null : 0 },
    h("table", {}, h("caption", { class: "unseen" }, caption), h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)));
}

/** A button that copies a text. */
export function copyButton(text, what) {
  const made = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(text);
      made.textContent = "Copied";
      announce(`${what} copied`);
    } catch {
      // Without a secure context there is no clipboard.
      made.textContent = "Select it by hand";
      announce("This browser did not permit copying. Select the text and copy it by hand.", { urgent: true });
    }
    setTimeout(() => { made.textContent = "Copy"; }, 2000);
  }, { class: "small", "aria-label": `Copy ${what}` });
  return made;
}

/** A notice in the page. Its kind is `info`, `good` or `bad`. */
export const notice = (kind, ...children) => h("div", { class: `notice ${kind}` }, ...children);
