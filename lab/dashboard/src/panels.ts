// The panels beside the charts: our standing, every suite at a glance, and the machine.

import { distinct, laneName, type Page, type Row, rowsOf, type Run, type Standing, standing } from "./data.js";
import { commit } from "./charts.js";
import { element, fill } from "./dom.js";
import { bytes, day, minute, nanoseconds, need, percent, plural, ratio } from "./format.js";
import { word } from "./words.js";

const WORDS: Record<Standing, string> = { lost: "slower", even: "even", won: "faster" };

/** The number of leads below the losses: those that are nearest to being lost. */
const NARROW = 5;

/** Counts of each standing. */
function count(rows: Row[], even: number): Record<Standing, number> {
  const counts = { lost: 0, even: 0, won: 0 };
  for (const row of rows) counts[standing(row.against, even)]++;
  return counts;
}

/** Losses first, the greatest above. */
export function standings(run: Run, even: number): void {
  const rows = rowsOf(run);
  const counts = count(rows, even);
  const worst = [...rows].sort((a, b) => a.against.ratio[1] - b.against.ratio[1]).slice(0, counts.lost + NARROW);
  fill(
    "verdict",
    counts.lost === 0
      ? `Ours is slower in none of ${plural(rows.length, "comparison")}.`
      : `Ours is slower in ${counts.lost} of ${plural(rows.length, "comparison")}.`,
  );
  const kinds: Standing[] = ["lost", "even", "won"];
  fill("bar", ...kinds.map((kind) => counts[kind] > 0 && element("span", { class: kind, style: `flex-grow: ${counts[kind]}` })));
  fill(
    "counts",
    ...kinds.map((kind) => element("li", { class: kind }, element("b", {}, String(counts[kind])), ` ${WORDS[kind]}`, kind === "even" && ` (within ${percent(even)})`)),
  );
  const line = (row: Row) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, row.case.case),
      element("td", {}, row.peer),
      element("td", { class: standing(row.against, even) === "lost" ? "figure lost" : "figure" }, need(row.against.ratio[1])),
      element("td", { class: "figure" }, `${ratio(row.against.ratio[0])}–${ratio(row.against.ratio[2])}`),
      element("td", { class: "figure" }, nanoseconds(row.case.ns)),
      element("td", { class: "figure" }, nanoseconds(row.against.ns)),
    );
  const heads = ["Case", "Against", "Need", "Times as fast", "Ours", "Theirs"];
  const caption = counts.lost > 0 ? "The losses, the greatest first, and then the narrowest leads" : "The narrowest leads";
  fill("losses", table(caption, heads, worst.map(line), 2));
}

/** Every lane and suite by its newest run: the most losses first. */
export function overview(page: Page, chosen: Run, choose: (run: Run) => void): void {
  const key = (run: Run) => JSON.stringify([run.lane, run.suite, run.forced]);
  const newest = [...new Map(page.runs.map((run) => [key(run), run])).values()];
  const known = newest.map((run) => ({ run, counts: count(rowsOf(run), page.even), worst: worst(run) }));
  known.sort((a, b) => b.counts.lost - a.counts.lost || a.worst.against.ratio[1] - b.worst.against.ratio[1]);
  const line = ({ run, counts, worst }: (typeof known)[number]) =>
    element(
      "tr",
      key(run) === key(chosen) ? { class: "chosen" } : {},
      element(
        "th",
        { scope: "row" },
        element("button", { type: "button", class: "link", onclick: () => choose(run) }, run.forced === "" ? run.suite : `${run.suite}, ${run.forced}`),
      ),
      element("td", {}, laneName(run.lane)),
      element("td", { class: `figure ${counts.lost > 0 ? "lost" : ""}` }, String(counts.lost)),
      element("td", { class: "figure" }, String(counts.even)),
      element("td", { class: "figure" }, String(counts.won)),
      element("td", { class: "figure" }, need(worst.against.ratio[1])),
      element("td", {}, `${worst.case.case} against ${worst.peer}`),
      element("td", {}, day(run.run)),
    );
  fill("overview", table("The newest run of every suite", ["Suite", "Lane", "Slower", "Even", "Faster", "Worst need", "Where", "Measured"], known.map(line), 2, 6));
}

function worst(run: Run): Row {
  const [first, ...rest] = rowsOf(run);
  if (first === undefined) throw new Error("a run without comparisons");
  return rest.reduce((worst, row) => (row.against.ratio[1] < worst.against.ratio[1] ? row : worst), first);
}

/** A table that scrolls within itself; columns from `from` up to `to` hold figures. */
function table(caption: string, heads: string[], rows: HTMLElement[], from: number, to = heads.length): HTMLElement {
  const head = heads.map((text, index) => element("th", { scope: "col", ...(index >= from && index < to ? { class: "figure" } : {}) }, text));
  return element(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)),
  );
}

/** The conditions of the measurement. */
export function machine(page: Page, run: Run): void {
  const about = page.lanes.find((lane) => lane.name === run.lane)?.about;
  const controls = run.cases.flatMap((found) => (found.control === null ? [] : [found.control[1]]));
  const off = controls.map((control) => Math.abs(control - 1)).sort((a, b) => a - b);
  const sizes = run.cases.map((found) => found.bytes);
  const facts: [string | HTMLElement, string | null][] = [
    ["Processor", run.cores > 0 ? `${run.cpu}, ${plural(run.cores, "processor")} for the process` : run.cpu],
    [word("lane", "Lane"), about === undefined ? laneName(run.lane) : `${run.lane}: ${about}`],
    ["Clock", run.ghz > 0 ? `${run.ghz.toFixed(2)} GHz, by a chain of additions` : "not known"],
    [word("kernel", "Kernel"), run.kernel === "" ? null : `${run.kernel}${run.forced === "" ? ", by detection" : ", forced"}`],
    ["Features", run.features.join(" ") || null],
    ["Built by", [run.toolchain, run.flags].filter(Boolean).join(", flags ")],
    ["Commit", run.commit === "" ? "none" : `${commit(run)}${run.dirty ? ", with changes beside it" : ""}`],
    ["Measured", `${minute(run.run)} UTC`],
    [word("launch", "Launches"), `${run.launches}, each a process of its own`],
    ["Cases", `${run.cases.length}, up to ${bytes(Math.max(...sizes))}`],
    ["Load beside", run.load.toFixed(1)],
    [word("shared", "Rounds shared"), `${percent(run.disturbed)} (median of the cases)`],
    [word("control", "Two equals"), off.length === 0 ? "not measured" : `${percent(off[Math.floor(off.length / 2)] ?? 0)} apart (median of the cases), at most ${percent(off.at(-1) ?? 0)}`],
  ];
  fill("facts", ...facts.flatMap(([name, value]) => (value === null ? [] : [element("dt", {}, name), element("dd", {}, value)])));
  fill("peers", ...distinct(run.peers).map((peer) => element("li", {}, peer)));
}
