// The grid: sizes and implementations, with the fastest marked in each row.

import { type Against, type Case, groupOf, type Page, type Run, standing } from "./data.js";
import { byId, element, fill } from "./dom.js";
import { cost, rate, times } from "./format.js";
import type { Look } from "./look.js";
import { axisOf, oursOf } from "./series.js";
import { sizeOf } from "./answers.js";
import { word } from "./words.js";

/** With more sizes than this, the grid shows only the main ones, unless the reader wants all. */
const MANY = 14;

/**
 * Powers of two from 64 on; and every case in which ours is not the only fastest, so that no loss
 * is left out.
 */
function isMain(found: Case): boolean {
  const power = Number.isInteger(Math.log2(found.bytes));
  return (power && found.bytes >= 64) || found.fastest.peer !== null || found.fastest.even.length > 0;
}

/** Draws the grid of a group. `choose` switches between all sizes and the main ones. */
export function grid(page: Page, run: Run, group: string, looks: Map<string, Look>, sizes: string, choose: (sizes: string) => void): void {
  const cases = run.cases.filter((found) => groupOf(found.case) === group);
  const main = cases.length > MANY ? cases.filter(isMain) : cases;
  const shown = sizes === "all" ? cases : main;
  const peers = run.peers.map((peer, index) => ({ peer, index })).filter(({ index }) => cases.some((found) => found.against.some((against) => against.peer === index)));
  const head = (label: string, ours: boolean) =>
    element(
      "th",
      { scope: "col", class: "figure" },
      element("span", { class: "glyph", style: `color: ${looks.get(label)?.color ?? "inherit"}`, "aria-hidden": "true" }, looks.get(label)?.glyph ?? ""),
      ` ${label}`,
      ours && element("span", { class: "ours" }, "ours"),
    );
  const heads = [
    element("th", { scope: "col" }, cases.every((found) => found.unit === "signature") ? "Signatures" : axisOf(run, group).label === "Threads" ? "Threads" : "Size"),
    element("th", { scope: "col", class: "winner" }, "Fastest"),
    head(oursOf(run), true),
    ...peers.map(({ peer }) => head(peer, false)),
  ];
  const row = (found: Case) => {
    const { names, lead, short, kind } = winner(run, found);
    return element(
      "tr",
      { "data-case": found.case },
      element("th", { scope: "row" }, sizeOf(run, found.case).replace(/ bytes?$/, " B").replace(/ (?:signature|thread)s?$/, ""), element("small", { class: `narrow ${kind}` }, names, element("br"), short)),
      element("td", { class: `winner ${kind}` }, element("b", {}, names), " ", element("small", {}, lead)),
      cell(found, null, undefined, page.even),
      ...peers.map(({ index }) => cell(found, index, found.against.find((against) => against.peer === index), page.even)),
    );
  };
  byId("grid-table").classList.toggle("roomy", peers.length < 3);
  fill("grid-table", element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...shown.map(row)));
  legend(page, shown);
  more(cases.length, main.length, sizes, choose);
}

const nameOf = (run: Run, place: number | null) => (place === null ? run.implementation : (run.peers[place] ?? "").replace(/ v?[\d.]+.*$/, ""));

/**
 * The fastest, and how many times as fast as the next it is: in words, and in a shorter form for
 * little room.
 */
function winner(run: Run, found: Case): { names: string; lead: string; short: string; kind: string } {
  const { peer, lead, even } = found.fastest;
  if (even.length === 0) return { names: nameOf(run, peer), lead: `${times(lead)} the next`, short: times(lead), kind: peer === null ? "won" : "lost" };
  const names = [peer, ...even].sort((a, b) => (a ?? -1) - (b ?? -1)).map((place) => nameOf(run, place));
  return { names: names.join(", "), lead: "≈ even", short: "≈ even", kind: "tie" };
}

/** The result of one implementation in a case. */
function cell(found: Case, place: number | null, against: Against | undefined, even: number): HTMLElement {
  if (place !== null && against === undefined) return element("td", { class: "figure none" }, "–");
  const ns = against?.ns ?? found.ns;
  const { peer, even: equals } = found.fastest;
  const isFastest = peer === place && equals.length === 0;
  const isEven = equals.length > 0 && (peer === place || equals.includes(place));
  const mark = isFastest ? ["✓", "fastest"] : isEven ? ["≈", "even"] : undefined;
  const isLost = against !== undefined && standing(against, even) === "lost";
  const [value, unit] = rate(found.unit, found.count, ns).split(" ");
  return element(
    "td",
    { class: `figure${isFastest ? (place === null ? " best" : " best beaten") : isEven ? " level" : ""}`, "data-place": place ?? "ours" },
    element(
      "div",
      {},
      element(
        "b",
        {},
        mark !== undefined && element("span", { class: "mark", role: "img", "aria-label": mark[1] ?? "" }, mark[0] ?? ""),
        value ?? "",
        " ",
        element("span", { class: "unit" }, unit ?? ""),
      ),
      " ",
      element("small", {}, cost(found, ns)),
      " ",
      against !== undefined && element("small", { class: isLost ? "lost" : "" }, `${isLost ? "▼ " : ""}ours ${times(against.ratio[1])}`),
    ),
  );
}

/** The marks and units of the grid, each a word that explains itself. */
function legend(page: Page, cases: Case[]): void {
  const units = new Set(cases.map((found) => found.unit));
  fill(
    "grid-legend",
    element("li", {}, element("span", { class: "mark won" }, "✓"), " fastest"),
    element("li", {}, element("span", { class: "mark" }, "≈"), " ", word("even", "even"), `: within ${page.even * 100} %`),
    element("li", {}, element("span", { class: "mark lost" }, "▼"), " ours is slower"),
    element("li", {}, word("ratio", "ours 1.25×"), ": ours is 1.25 times as fast"),
    units.has("byte") && element("li", {}, word("gbs", "GB/s"), ": more is better"),
    units.has("byte") && element("li", {}, word("cycles", "c/B"), ": fewer is better"),
    units.has("signature") && element("li", {}, word("gbs", "k/s"), ": thousand signatures a second"),
    units.has("signature") && element("li", {}, word("cycles", "cycles"), ": for one signature"),
    units.has("call") && element("li", {}, word("gbs", "M/s"), ": million calls a second"),
  );
}

function more(all: number, main: number, sizes: string, choose: (sizes: string) => void): void {
  const button = document.getElementById("grid-sizes") as HTMLButtonElement;
  button.hidden = all === main;
  button.textContent = sizes === "all" ? `Show the ${main} main sizes` : `Show all ${all} sizes`;
  button.onclick = () => choose(sizes === "all" ? "" : "all");
}
