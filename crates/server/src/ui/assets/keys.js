// The list of keys, with search, filters and pages.

import { keys } from "./api.js";
import { announce, button, field, h, notice, table } from "./dom.js";
import { ageOf, capital, duration, exactDuration, nameOf, time, words } from "./format.js";
import { may } from "./session.js";
import { createKey } from "./actions.js";

const ROWS = 50;
/**
 * How many keys a request brings: few for the first page, many for a search through all of them.
 */
const [PAGE, WHOLE] = [200, 1000];
/** A search goes through at most this many keys, so that the page stays quick. */
const MOST = 20_000;

const STATES = ["enabled", "disabled", "pending_destruction", "destroyed"];

/** A sign beside each state: color alone says nothing to some people. */
const SIGNS = { enabled: "●", disabled: "○", pending_destruction: "▲", destroyed: "✕", usable: "●", revoked: "▲" };

export function stateTag(state) {
  const isKnown = Object.hasOwn(SIGNS, state);
  return h("span", { class: `state ${isKnown ? state : "unknown"}` },
    h("span", { class: "sign", "aria-hidden": "true" }, isKnown ? SIGNS[state] : "?"), capital(words(state)));
}

export const headOf = (key) => key.versions.find((version) => version.version === key.head);

export function rotationText({ max_age_seconds: age, max_uses: uses }) {
  const bounds = [age && `every ${exactDuration(age)}`, uses && `after ${uses.toLocaleString("en-US")} signatures`].filter(Boolean);
  return bounds.length === 0 ? "by hand" : bounds.join(", or ");
}

/** What the view has of the service's keys. */
class Found {
  list = [];
  next = undefined;

  get isWhole() {
    return this.next === null || this.list.length >= MOST;
  }

  #coming = null;

  /**
   * Loads the next page. It waits for a page that is on its way: a second request would bring the
   * same keys twice.
   */
  more(limit) {
    this.#coming ??= this.#load(limit).finally(() => { this.#coming = null; });
    return this.#coming;
  }

  async #load(limit) {
    const page = await keys.page(this.next, limit);
    this.list.push(...page.keys);
    this.next = page.next;
  }
}

const COLUMNS = [{ name: "Key" }, { name: "Algorithm" }, { name: "State" }, { name: "Version", figure: true }, { name: "Age", figure: true }, { name: "Rotation" }];

function row(key) {
  const head = headOf(key);
  const link = h("a", { href: `#/keys/${encodeURIComponent(key.key)}`, title: key.key }, nameOf(key));
  if (key.label === null) link.classList.add("unnamed");
  const age = head ? h("time", { datetime: head.created, title: time(head.created) }, duration(ageOf(head.created))) : "–";
  return [link, h("code", {}, key.algorithm), stateTag(key.state), String(key.head), age, rotationText(key.rotation)];
}

/** The view. `go` shows another address. */
export function keysView(go) {
  const found = new Found();
  const search = h("input", { type: "search", autocomplete: "off", spellcheck: "false" });
  const [state, algorithm] = [choice(["", "Any state"], STATES.map((name) => [name, capital(words(name))])), choice(["", "Any algorithm"], [])];
  const [list, about] = [h("div", {}), h("p", { class: "about", role: "status" })];
  const [previous, next] = [button("Previous", () => turn(-1)), button("Next", () => turn(1))];
  let first = 0;
  let turned = 0;

  const matches = () => {
    const [text, inState, by] = [search.value.trim().toLowerCase(), state.value, algorithm.value];
    return found.list.filter((key) => (text === "" || `${key.label ?? ""} ${key.key}`.toLowerCase().includes(text))
      && (inState === "" || key.state === inState) && (by === "" || key.algorithm === by));
  };
  const isFiltered = () => search.value.trim() !== "" || state.value !== "" || algorithm.value !== "";

  function draw() {
    const fit = matches();
    const shown = fit.slice(first, first + ROWS);
    fillAlgorithms(algorithm, found.list);
    list.replaceChildren(shown.length > 0 ? table("Keys", COLUMNS, shown.map(row)) : nothing(found, isFiltered()));
    const of = isFiltered() ? `${fit.length} of ${found.list.length}` : String(fit.length);
    const limit = found.isWhole && found.next ? `. Only the first ${found.list.length.toLocaleString("en-US")} keys were searched` : "";
    about.textContent = shown.length === 0 ? "" : `Keys ${first + 1} to ${first + shown.length} of ${of}${found.isWhole ? "" : " and more"}${limit}`;
    previous.disabled = first === 0;
    next.disabled = found.isWhole && first + ROWS >= fit.length;
  }

  /**
   * Loads what the view needs: one page, or all keys where it searches. A later call makes an
   * earlier one stop.
   */
  async function load() {
    const turn = ++turned;
    try {
      while (turn === turned && !found.isWhole && (isFiltered() || matches().length < first + ROWS)) {
        if (isFiltered()) about.textContent = `Searching: ${found.list.length} keys so far…`;
        await found.more(isFiltered() ? WHOLE : PAGE);
      }
    } catch (error) {
      list.replaceChildren(problem(error));
      about.textContent = "";
      return;
    }
    if (turn === turned) draw();
  }

  async function turn(by) {
    const before = first;
    first = Math.max(0, first + by * ROWS);
    await load();
    if (matches().length <= first) first = before;
    draw();
    list.querySelector("a")?.focus();
  }

  const filtered = () => {
    first = 0;
    load();
  };
  search.addEventListener("input", filtered);
  for (const select of [state, algorithm]) select.addEventListener("change", filtered);
  const create = button("Create a key", async () => {
    const key = await createKey();
    if (key === null) return;
    announce(`The key ${nameOf(key)} is created`);
    go(`#/keys/${encodeURIComponent(key.key)}`);
  }, { class: "primary" });
  load();
  return h("div", {},
    h("div", { class: "title" }, h("h1", { tabindex: -1 }, "Keys"), may("create") ? create : null),
    h("form", { class: "tools", role: "search", onsubmit: (event) => event.preventDefault() },
      field("Search by label or name", search), field("State", state), field("Algorithm", algorithm)),
    list, h("div", { class: "pages" }, about, h("div", { class: "buttons" }, previous, next)));
}

function choice([none, text], others) {
  return h("select", {}, [[none, text], ...others].map(([value, name]) => h("option", { value }, name)));
}

/** Offers each algorithm that a key has. */
function fillAlgorithms(select, list) {
  const offered = new Set([...select.options].map((option) => option.value));
  const names = [...new Set(list.map((key) => key.algorithm))].filter((name) => !offered.has(name)).sort();
  select.append(...names.map((name) => h("option", { value: name }, name)));
}

function nothing(found, isFiltered) {
  if (isFiltered) return h("p", { class: "nothing" }, "No key matches. Try other words, or another filter.");
  return h("p", { class: "nothing" }, "There is no key that you may read. Create one, or sign in with another token.");
}

/** Why something cannot be shown. */
export function problem(error) {
  const text = error.isRefused ? "You may not read this, or it does not exist." : error.message;
  return notice("bad", h("p", { role: "alert" }, text));
}
