// What `cargo xtask dashboard` hands over: crates/record/src/page.rs. Figures come from there; here they are only chosen and shown.

/** Low, median, high. */
export type Interval = [number, number, number];

export interface Page {
  version: number;
  /** Ratios this close to 1 are called even. */
  even: number;
  lanes: { name: string; about: string }[];
  suites: { name: string; title: string; about: string }[];
  /** How ours does on each machine: the one with the most cases first. */
  machines: Machine[];
  /** The worst comparison of every run that is the newest of its kind and has a loss: the greatest first. */
  losses: Loss[];
  /** The oldest first. */
  runs: Run[];
}

/** In how many cases ours is the fastest, even with it, or slower. */
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

/** Ours beside the best peer in a case. */
export interface At {
  case: string;
  ratio: number;
}

export interface Loss {
  run: number;
  case: string;
  /** The place in the peers of the run. */
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
}

export interface Case {
  case: string;
  bytes: number;
  /** What is counted, and how many of it one operation does. */
  unit: "byte" | "signature" | "call";
  count: number;
  /** 0 where the clock is not known. */
  ghz: number;
  ns: number;
  /** Places in the peers of the run; ours has none. */
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
const VERSION = 2;

/** The data, or what is wrong with it in words for the reader. */
export function load(): Page | string {
  const found = (globalThis as { bullaLab?: unknown }).bullaLab;
  if (found === undefined) return "The data is missing: this page expects data.js beside it.";
  const page = found as Page;
  if (typeof page !== "object" || page === null || page.version !== VERSION || !Array.isArray(page.runs)) {
    return "The data is of another version than this page.";
  }
  return page;
}

/** The group of a case: what stands before its last slash. */
export function groupOf(name: string): string {
  const at = name.lastIndexOf("/");
  return at < 0 ? name : name.slice(0, at);
}

/** What varies within the group: what stands behind the last slash. */
export function lastOf(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}

/** Each value once, in the order of first occurrence. */
export function distinct<T>(values: Iterable<T>): T[] {
  return [...new Set(values)];
}

/** A lane as it is shown; runs that were kept before there were lanes have none. */
export const laneName = (lane: string) => lane || "no lane recorded";

/** A machine in few words: the lane's description up to its first comma, or what the processor calls itself. */
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

/** One case beside one peer, as tables and charts show it. */
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
