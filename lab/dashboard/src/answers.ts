// The answers at the top of the page: our results on each machine, and the worst loss of each
// suite.

import { type At, type Count, groupOf, lastOf, laneName, type Loss, type Machine, machineName, type Page, type Run } from "./data.js";
import { byId, element, fill } from "./dom.js";
import { bytes, cost, plural, rate, slower, times } from "./format.js";
import { axisOf } from "./series.js";
import { link } from "./state.js";
import { word } from "./words.js";

const total = (count: Count) => count.fastest + count.even + count.slower;

/** A suite in plain words. */
export const titleOf = (page: Page, suite: string) => page.suites.find((known) => known.name === suite)?.title ?? suite;

/** The part of an address that names a run. */
export const viewOf = (run: Run) => ({ lane: run.lane, suite: run.suite, kernel: run.forced, run: run.run });

/** One sentence for each machine, and the standing of all its cases. */
export function summary(page: Page): void {
  fill("summary", ...page.machines.map((machine) => onMachine(page, machine)));
}

function onMachine(page: Page, machine: Machine): HTMLElement {
  const { count, main } = machine;
  const run = page.runs[main.run];
  if (run === undefined) throw new Error("a machine without a run");
  const part = (kind: keyof Count, mark: string) =>
    element("li", { class: kind }, element("span", { class: "mark", "aria-hidden": "true" }, mark), element("b", {}, String(count[kind])), ` ${kind}`);
  return element(
    "article",
    {},
    element("h2", {}, machineName(page, machine.lane, machine.cpus), " ", element("small", {}, `${laneName(machine.lane)}, ${plural(machine.suites, "suite")}`)),
    element("p", { class: "sentence" }, ...sentence(page, run, main)),
    element("div", { class: "stand" }, bar(count), element("ul", { class: "counts", "aria-label": `Of all ${plural(total(count), "case")}` }, part("fastest", "✓"), part("even", "≈"), part("slower", "▼"))),
  );
}

/**
 * Our results at the sizes that most readers look for: where ours leads, by how much, and where it
 * does not.
 */
function sentence(page: Page, run: Run, { count, group, least, most }: Machine["main"]): (HTMLElement | string)[] {
  const all = total(count);
  const where = `${count.fastest === all ? `all ${all}` : `${count.fastest} of ${all}`} ${all === 1 ? "size" : "sizes"}`;
  const rest = [count.even > 0 && `even at ${count.even}`, count.slower > 0 && `slower at ${count.slower}`].filter(Boolean);
  const size = ({ case: name }: At) => ` (${sizeOf(run, name).replace(" ", "\u00a0")})`;
  return [
    `${titleOf(page, run.suite)}: `,
    element("strong", {}, "bulla is fastest at ", element("a", { href: link({ ...viewOf(run), group }, "grid") }, where)),
    rest.length > 0 ? `, ${rest.join(", ")},` : ",",
    " ",
    element("span", {}, rest.length > 0 ? "from " : "by ", word("ratio", times(least.ratio)), `${size(least)} to ${times(most.ratio)}${size(most)}.`),
  ];
}

/** The variable part of a group's cases, in words. */
export function sizeOf(run: Run, name: string): string {
  const axis = axisOf(run, groupOf(name));
  const last = Number(lastOf(name));
  if (axis.kind === "log") return axis.name(last);
  const found = run.cases.find((one) => one.case === name);
  return found?.unit === "byte" && last === found.bytes ? bytes(last) : lastOf(name);
}

/** Shares as lengths; the words are beside it. */
function bar(count: Count): HTMLElement {
  const kinds = ["fastest", "even", "slower"] as const;
  const parts = kinds.map((kind) => count[kind] > 0 && element("span", { class: kind, style: `flex-grow: ${count[kind]}` }));
  return element("div", { class: "bar", "aria-hidden": "true" }, ...parts);
}

/** The number of losses that a narrow screen shows before the reader asks for more. */
const FEW = 4;

/** The worst loss of every suite, each with a link to its chart. */
export function losses(page: Page): void {
  const known = page.losses.length;
  const subjects = new Set(page.runs.map((run) => JSON.stringify([run.lane, run.suite, run.forced]))).size;
  fill("worst", ...page.losses.map((loss, index) => lossOf(page, loss, index)));
  byId("worst").hidden = known === 0;
  fill(
    "worst-about",
    known === 0
      ? `Nowhere: none of ${plural(subjects, "suite")} has a loss of more than ${page.even * 100} %.`
      : `The worst loss of each suite, machine and kernel: ${known} of ${subjects} lose a case by more than ${page.even * 100} %, ${subjects - known} lose none. Each links to its chart.`,
  );
  const more = byId("worst-more");
  more.hidden = known <= FEW;
  more.textContent = `Show all ${known}`;
  more.onclick = () => {
    byId("worst").classList.add("all");
    more.remove();
    byId("worst").querySelectorAll<HTMLElement>("a")[FEW]?.focus();
  };
}

function lossOf(page: Page, loss: Loss, index: number): HTMLElement {
  const run = page.runs[loss.run];
  const found = run?.cases.find((one) => one.case === loss.case);
  const against = found?.against.find((one) => one.peer === loss.peer);
  if (run === undefined || found === undefined || against === undefined) throw new Error("a loss that no run has");
  const address = link({ ...viewOf(run), group: groupOf(loss.case), case: loss.case }, "ratio");
  const figure = (ns: number) => (found.unit === "call" ? cost(found, ns) : rate(found.unit, found.count, ns));
  const [ours, theirs] = [figure(found.ns), figure(against.ns)];
  const unit = theirs.slice(theirs.indexOf(" "));
  const suite = titleOf(page, run.suite);
  const known = page.suites.some((one) => one.name === run.suite);
  return element(
    "li",
    index < FEW ? {} : { class: "more" },
    element("b", { class: "lost" }, element("span", { class: "mark", "aria-hidden": "true" }, "▼"), `${slower(against.ratio[1])} slower`),
    element("span", {}, element("a", { href: address }, loss.case), ` against ${run.peers[loss.peer] ?? ""}`),
    element(
      "div",
      {},
      element("span", {}, `${ours.endsWith(unit) ? ours.slice(0, -unit.length) : ours}, theirs ${theirs}`),
      element("span", {}, known ? word(`suite-${run.suite}`, suite) : suite),
      element("span", {}, run.lane || machineName(page, run.lane, [run.cpu])),
      element("span", {}, `${loss.lost} of ${loss.of} lost`),
    ),
  );
}
