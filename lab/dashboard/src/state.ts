// The reader's choices. They are in the address, so that a view can be kept and sent.

import { distinct, groupOf, type Page, type Run } from "./data.js";

export interface Choice {
  lane: string;
  suite: string;
  kernel: string;
  run: string;
  group: string;
  /** The case of the history; empty means all of the group. */
  case: string;
  /** "all" shows every size in the grid; otherwise it shows the main ones. */
  sizes: string;
}

const KEYS = ["lane", "suite", "kernel", "run", "group", "case", "sizes"] as const;

/**
 * The parts of the page that an address can lead to. The part is not kept: addresses written later
 * name only the view.
 */
export const SEEN = ["grid", "ratio"] as const;
export type Seen = (typeof SEEN)[number];

/** The part that the address leads to. */
export function seen(): Seen | undefined {
  const wish = new URLSearchParams(location.hash.slice(1)).get("see");
  return SEEN.find((part) => part === wish);
}

/** The address of a view, and of a part of it. */
export function link(choice: Partial<Choice>, see: Seen): string {
  return `#${new URLSearchParams({ ...choice, see })}`;
}

export function read(): Partial<Choice> {
  const words = new URLSearchParams(location.hash.slice(1));
  const choice: Partial<Choice> = {};
  for (const key of KEYS) {
    const value = words.get(key);
    if (value !== null) choice[key] = value;
  }
  return choice;
}

export function write(choice: Choice): void {
  const words = new URLSearchParams();
  // The lane is always written; an unknown lane has an empty name.
  for (const key of KEYS) if (choice[key] !== "" || key === "lane") words.set(key, choice[key]);
  const hash = `#${words}`;
  // A choice is not a step in the browser's history: "back" leaves the page.
  if (hash !== location.hash) history.replaceState(null, "", hash);
}

/** The available values of a choice, given the earlier choices. */
export interface Options {
  lanes: string[];
  suites: string[];
  kernels: string[];
  /** The newest first. */
  runs: Run[];
  groups: string[];
  cases: string[];
}

/** An existing choice: a wished value that does not exist becomes the first one that does. */
export function settle(page: Page, wish: Partial<Choice>): { choice: Choice; options: Options; run: Run; history: Run[] } {
  const newest = [...page.runs].reverse();
  // First the lanes with the suite that most readers look for, and last the machines without one.
  const lacks = (lane: string) => Number(!newest.some((run) => run.lane === lane && run.suite === MAIN_SUITE)) + 2 * Number(lane === "");
  const lanes = distinct(newest.map((run) => run.lane)).sort((a, b) => lacks(a) - lacks(b));
  const lane = pick(lanes, wish.lane);
  const ofLane = newest.filter((run) => run.lane === lane);
  const suites = distinct(ofLane.map((run) => run.suite)).sort(bySuite);
  const suite = pick(suites, wish.suite);
  const ofSuite = ofLane.filter((run) => run.suite === suite);
  const kernels = distinct(ofSuite.map((run) => run.forced)).sort();
  const kernel = pick(kernels, wish.kernel);
  const runs = ofSuite.filter((run) => run.forced === kernel);
  const name = pick(runs.map((run) => run.run), wish.run);
  const run = runs.find((run) => run.run === name) ?? runs[0];
  if (run === undefined) throw new Error("there is no run");
  const groups = distinct(run.cases.map((found) => groupOf(found.case)));
  const group = pick(groups, wish.group);
  const cases = run.cases.map((found) => found.case).filter((found) => groupOf(found) === group);
  const chosen = wish.case !== undefined && cases.includes(wish.case) ? wish.case : "";
  return {
    choice: { lane, suite, kernel, run: name, group, case: chosen, sizes: wish.sizes === "all" ? "all" : "" },
    options: { lanes, suites, kernels, runs, groups, cases },
    run,
    history: [...runs].reverse(),
  };
}

function pick(there: string[], wish: string | undefined): string {
  return wish !== undefined && there.includes(wish) ? wish : (there[0] ?? "");
}

/** The suite that most readers look for. */
const MAIN_SUITE = "oneshot";

/** The main suite comes first. */
function bySuite(a: string, b: string): number {
  const first = (suite: string) => Number(suite !== MAIN_SUITE);
  return first(a) - first(b) || a.localeCompare(b);
}
