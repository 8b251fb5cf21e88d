// Converts the cases of a group to the points of a chart.

import { type Case, distinct, groupOf, lastOf, type ModeledCurve, type Row, rowsOf, type Run } from "./data.js";
import { bytes, nanoseconds, plural, shortBytes, three } from "./format.js";

/** The axis of a group's cases. */
export interface Axis {
  /** By size if the names end in numbers, otherwise one after the other. */
  kind: "log" | "names";
  label: string;
  /** The place of a case: a number on a logarithmic axis, otherwise its name. */
  at: (found: Case) => number | string;
  /** The text of a place on the axis, and its full text. */
  tick: (at: number | string) => string;
  name: (at: number | string) => string;
  /** The cases that have a place. */
  cases: Case[];
  /** The places beyond the cases that a model has. */
  modeled: number[];
  /** The cases without a place: a logarithmic axis has no zero. */
  left: Case[];
}

/** The vertical quantity. */
export interface Quantity {
  label: string;
  of: (found: Case, ns: number) => number;
  show: (value: number) => string;
  tick: (value: number) => string;
}

export function axisOf(run: Run, group: string): Axis {
  const all = run.cases.filter((found) => groupOf(found.case) === group);
  const value = (found: Case) => Number(lastOf(found.case));
  const placed = all.filter((found) => value(found) > 0);
  if (placed.length < 2 || all.some((found) => !(value(found) >= 0))) {
    const name = (at: number | string) => String(at);
    return { kind: "names", label: "Case", at: (found) => lastOf(found.case), tick: name, name, cases: all, modeled: [], left: [] };
  }
  const unit = placed.every((found) => found.unit === "signature")
    ? "Signatures"
    : placed.every((found) => found.threads === value(found))
      ? "Threads"
      : unitOf(run.suite, group, placed.every((found) => found.bytes === value(found)));
  const ofBytes = unit.startsWith("Bytes");
  return {
    kind: "log",
    label: unit,
    at: value,
    tick: (at) => (ofBytes ? shortBytes(Number(at)) : String(at)),
    name: (at) => (ofBytes ? (Number(at) < 1024 ? plural(Number(at), "byte") : bytes(Number(at))) : plural(Number(at), unit.toLowerCase().replace(/s$/, ""))),
    cases: placed,
    modeled: distinct(curvesOf(run, group).flatMap(({ times }) => times.map(([threads]) => threads))),
    left: all.filter((found) => !placed.includes(found)),
  };
}

/** The modeled curves of a group. */
export const curvesOf = (run: Run, group: string): ModeledCurve[] => run.modeled.filter((curve) => curve.group === group);

/** The label of the implementation that a modeled curve is about. */
export const ofCurve = (run: Run, curve: ModeledCurve) => (curve.peer === null ? oursOf(run) : (run.peers[curve.peer] ?? ""));

/** The unit of the numbers at the ends of the names. */
function unitOf(suite: string, group: string, areBytes: boolean): string {
  if (suite === "xof") return "Bytes of output";
  if (areBytes) return "Bytes of input";
  if (suite === "parent-folding") return "Chunks";
  return /\bby$|^stream/.test(group) ? "Bytes of one update" : "Bytes of each input";
}

export function quantityOf(axis: Axis): Quantity {
  const [first] = axis.cases;
  const unit = first !== undefined && axis.cases.every((found) => found.unit === first.unit) ? first.unit : undefined;
  if (unit === "byte") return { label: "GB a second", of: (found, ns) => found.count / ns, show: (value) => `${three(value)} GB/s`, tick: plain };
  if (unit === "signature") {
    return { label: "Signatures a second", of: (found, ns) => (found.count * 1e9) / ns, show: (value) => `${three(value)} a second`, tick: thousands };
  }
  return { label: "Nanoseconds (less is better)", of: (_, ns) => ns, show: nanoseconds, tick: plain };
}

const plain = (value: number) => String(Number(value.toPrecision(3)));
const thousands = (value: number) => (value >= 1000 ? `${plain(value / 1000)}k` : plain(value));

/** One implementation in one case. */
export interface Point {
  x: number | string;
  y: number;
  who: string;
  case: Case;
  ns: number;
}

export const oursOf = (run: Run) => `${run.implementation} ${run.version}`;

export function points(run: Run, axis: Axis, quantity: Quantity): Point[] {
  return axis.cases.flatMap((found) => {
    const point = (who: string, ns: number): Point => ({ x: axis.at(found), y: quantity.of(found, ns), who, case: found, ns });
    const peers = found.against.map((against) => point(run.peers[against.peer] ?? "", against.ns));
    return [point(oursOf(run), found.ns), ...peers];
  });
}

/** The comparisons that have a place on the axis. */
export function placedRows(run: Run, axis: Axis): Row[] {
  const placed = new Set(axis.cases.map((found) => found.case));
  return rowsOf(run).filter((row) => placed.has(row.case.case));
}
