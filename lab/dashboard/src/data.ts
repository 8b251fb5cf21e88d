// The data from `cargo xtask dashboard`: crates/record/src/page.rs. Figures are computed there; the
// page only chooses and shows them.

/** Low, median, high. */
export type Interval = [number, number, number];

export interface Page {
  version: number;
  /** Ratios this close to 1 are called even. */
  even: number;
  lanes: { name: string; about: string }[];
  suites: { name: string; title: string; about: string }[];
  /** Our results on each machine: the one with the most cases first. */
  machines: Machine[];
  /**
   * The worst comparison of every run that is the newest of its kind and has a loss: the greatest
   * first.
   */
  losses: Loss[];
  /** The oldest first. */
  runs: Run[];
}

/** The number of cases in which ours is the fastest, even with the fastest, or slower. */
export interface Count {
  fastest: number;
  even: number;
  slower: number;
}

export interface Machine {
  lane: string;
  cpus: string[];
  suites: number;
  count: Count;
  /** The sizes of the operation that most readers look for. */
  main: { run: number; group: string; count: Count; least: At; most: At };
}

/** Ours compared with the best peer in a case. */
export interface At {
  case: string;
  ratio: number;
}

export interface Loss {
  run: number;
  case: string;
  /** The index in the run's peers. */
  peer: number;
  lost: number;
  of: number;
}

export interface Run {
  run: string;
  suite: string;
  lane: string;
  forced: string;
  kernel: string;
  implementation: string;
  version: string;
  cpu: string;
  /** The processors that the process could use; 0 if unknown. */
  cores: number;
  features: string[];
  ghz: number;
  toolchain: string;
  flags: string;
  commit: string;
  dirty: boolean;
  launches: number;
  load: number;
  disturbed: number;
  peers: string[];
  cases: Case[];
  modeled: ModeledCurve[];
}

/** What a model says about more threads than were measured, for one implementation in a group. */
export interface ModeledCurve {
  group: string;
  /** The index in the run's peers; ours has none. */
  peer: number | null;
  /** Pairs of a number of threads and nanoseconds. */
  times: [number, number][];
  /** The greatest distance of the model from a measured time, as a share of it. */
  error: number;
}

export interface Case {
  case: string;
  bytes: number;
  /** The threads that the operation may use; 0 if unknown. */
  threads: number;
  /** The unit of work, and how many units one operation does. */
  unit: "byte" | "signature" | "call";
  count: number;
  /** 0 if the clock is unknown. */
  ghz: number;
  ns: number;
  /** Indices in the run's peers; ours has none. */
  fastest: { peer: number | null; lead: number; even: (number | null)[] };
  control: Interval | null;
  controls: number[];
  disturbed: number;
  against: Against[];
}

export interface Against {
  peer: number;
  ns: number;
  /** Peer over ours: above 1, ours is faster. */
  ratio: Interval;
  launches: number[];
  limit: number | null;
  verdict: string;
}

/** The version that this page reads. */
const VERSION = 3;

/** The data, or its problem in words for the reader. */
export function load(): Page | string {
  const found = (globalThis as { bullaLab?: unknown }).bullaLab;
  if (found === undefined) return "The data is missing: this page expects data.js beside it.";
  const page = found as Page;
  if (typeof page !== "object" || page === null || page.version !== VERSION || !Array.isArray(page.runs)) {
    return "The data is of another version than this page.";
  }
  return page;
}

/** The group of a case: the part before its last slash. */
export function groupOf(name: string): string {
  const at = name.lastIndexOf("/");
  return at < 0 ? name : name.slice(0, at);
}

/** The part of the name after the last slash, which varies within the group. */
export function lastOf(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}

/** Each value once, in the order of first occurrence. */
export function distinct<T>(values: Iterable<T>): T[] {
  return [...new Set(values)];
}

/** The displayed name of a lane; runs from before there were lanes have none. */
export const laneName = (lane: string) => lane || "no lane recorded";

/**
 * A machine in few words: the lane's description up to its first comma, or the processor's own
 * name.
 */
export function machineName(page: Page, lane: string, cpus: string[]): string {
  const about = page.lanes.find((known) => known.name === lane)?.about;
  if (about === undefined) return cpus.join(", ") || laneName(lane);
  return about.startsWith("Any ") ? about : (about.split(/[,:]/)[0] ?? about);
}

export type Standing = "lost" | "even" | "won";

export function standing(against: Against, even: number): Standing {
  const ratio = against.ratio[1];
  if (ratio < 1 - even) return "lost";
  return ratio > 1 + even ? "won" : "even";
}

/** The comparison of one case with one peer, for tables and charts. */
export interface Row {
  run: Run;
  case: Case;
  against: Against;
  peer: string;
}

export function rowsOf(run: Run): Row[] {
  return run.cases.flatMap((found) =>
    found.against.map((against) => ({ run, case: found, against, peer: run.peers[against.peer] ?? "" })),
  );
}
