// The charts. Each is drawn again whenever its width changes.

import * as Plot from "@observablehq/plot";
import { type Against, type Case, groupOf, type Row, type Run } from "./data.js";
import { day, nanoseconds, ratio } from "./format.js";
import type { Look } from "./look.js";
import type { Stop } from "./reader.js";
import { type Axis, curvesOf, ofCurve, oursOf, placedRows, type Point, points, type Quantity } from "./series.js";

export interface Drawing {
  svg: SVGSVGElement;
  stops: Stop[];
}

/** The common options of all charts of a view. */
export interface Scene {
  run: Run;
  axis: Axis;
  quantity: Quantity;
  /** By label, including ours. */
  looks: Map<string, Look>;
  /** Labels that the reader has switched off. */
  hidden: Set<string>;
  even: number;
  width: number;
  /** The chosen case, or nothing. */
  chosen: string;
}

/** Space for the labels of the axes, and the page's font. */
function frame(width: number, height: number): Plot.PlotOptions {
  return {
    width,
    height,
    marginLeft: 46,
    marginRight: 14,
    marginTop: 12,
    marginBottom: 40,
    style: { background: "none", color: "var(--soft)", fontFamily: "inherit", fontSize: "12px", overflow: "visible" },
  };
}

/** The scale along the cases, with as many ticks as fit. */
function along(axis: Axis, width: number): Plot.ScaleOptions {
  const places = [...axis.cases.map(axis.at), ...axis.modeled];
  const common = { label: axis.label, labelAnchor: "center", labelArrow: "none", tickSize: 4 } as const;
  if (axis.kind === "names") {
    const long = places.some((place) => String(place).length > 8);
    return { ...common, type: "point", domain: places, padding: 0.6, tickRotate: long ? -30 : 0 };
  }
  const numbers = places.map(Number);
  const [first, last] = [Math.min(...numbers), Math.max(...numbers)];
  const powers = [];
  for (let power = 2 ** Math.ceil(Math.log2(first)); power <= last; power *= 2) powers.push(power);
  const room = Math.max(3, Math.floor(width / 62));
  const every = [1, 2, 4, 6, 8].find((n) => powers.length / n <= room) ?? 8;
  const ticks = powers.filter((power) => Math.log2(power) % every === 0);
  return { ...common, type: "log", base: 2, domain: [first, last], inset: 10, ticks, tickFormat: (at: number) => axis.tick(at) };
}

/** Ticks at 1, 2 and 5 of each power of ten. */
function decades(values: number[]): number[] {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    ticks.push(...[1, 2, 5].map((digit) => digit * 10 ** power));
  }
  const inside = ticks.filter((tick) => tick >= low * 0.8 && tick <= high * 1.2);
  // For many decades, only their beginnings have ticks.
  return inside.length > 13 ? inside.filter((tick) => Number.isInteger(Math.round(Math.log10(tick) * 1e6) / 1e6)) : inside;
}

/**
 * Level lines with their figures. They are drawn here, because on a logarithmic scale the library
 * labels only some of the given ticks.
 */
function levels(ticks: number[], show: (tick: number) => string): Plot.Markish[] {
  return [Plot.gridY(ticks), Plot.axisY(ticks, { text: (tick: number) => show(tick), tickSize: 0, label: null })];
}

/** The places of the cases in a drawing, with the result of `lines` for each. */
function stopsOf(scene: Scene, drawing: Plot.Plot, lines: (found: Case) => Stop["lines"]): Stop[] {
  const scale = drawing.scale("x");
  return scene.axis.cases.map((found) => {
    const at = scene.axis.at(found);
    return { x: Number(scale?.apply(at)), name: found.case, title: scene.axis.name(at), lines: lines(found) };
  });
}

/** A line through the chosen case. */
function through({ axis, chosen }: Scene): Plot.Markish[] {
  const found = axis.cases.filter((one) => one.case === chosen);
  return [
    Plot.ruleX(found, { x: axis.at, stroke: "var(--accent)", strokeOpacity: 0.18, strokeWidth: 12 }),
    Plot.text(found, { x: axis.at, text: (one: Case) => one.case, frameAnchor: "top", dy: -10, fill: "var(--accent)" }),
  ];
}

function finish(plot: (SVGSVGElement | HTMLElement) & Plot.Plot, stops: Stop[]): Drawing {
  if (!(plot instanceof SVGSVGElement)) throw new Error("a chart that is not one drawing");
  return { svg: plot, stops };
}

const visible = (scene: Scene, who: string) => !scene.hidden.has(who);

/** The throughput of each implementation, by size. */
export function throughput(scene: Scene): Drawing {
  const { run, axis, quantity, looks } = scene;
  const all = points(run, axis, quantity).filter((point) => visible(scene, point.who));
  const marks: Plot.Markish[] = [];
  // Draw ours last, so that it is above the others.
  for (const who of [...looks.keys()].reverse()) {
    const look = looks.get(who);
    const own = all.filter((point) => point.who === who);
    if (look === undefined || own.length === 0) continue;
    const strokeWidth = who === oursOf(run) ? 2.4 : 1.4;
    if (axis.kind === "log") marks.push(Plot.line(own, { x: "x", y: "y", stroke: look.color, strokeWidth, strokeLinejoin: "round" }));
    marks.push(Plot.dot(own, { x: "x", y: "y", fill: look.color, symbol: look.sign, r: 3.4, stroke: "var(--paper)", strokeWidth: 0.8 }));
  }
  const curves = modeledCurves(scene, all);
  marks.push(...curves.map(({ mark }) => mark));
  const values = [...all.map((point) => point.y), ...curves.flatMap(({ values }) => values)];
  const plot = Plot.plot({
    ...frame(scene.width, scene.width < 520 ? 300 : 380),
    x: along(axis, scene.width),
    y: {
      type: "log",
      axis: null,
      inset: 8,
    },
    marks: [levels(values.length > 0 ? decades(values) : [], quantity.tick), through(scene), marks],
  });
  const lines = (found: Case) =>
    all
      .filter((point) => point.case === found)
      .sort((a, b) => a.ns - b.ns)
      .map((point) => ({
        ...sign(looks.get(point.who)),
        name: point.who,
        value: quantity.show(point.y) === nanoseconds(point.ns) ? nanoseconds(point.ns) : `${quantity.show(point.y)}, ${nanoseconds(point.ns)}`,
      }));
  return finish(plot, stopsOf(scene, plot, lines));
}

/**
 * What a model says beyond the measured numbers of threads: dashed, from the last measured point
 * on, with hollow signs.
 */
function modeledCurves({ run, axis, quantity, looks, hidden }: Scene, measured: Point[]): { mark: Plot.Markish; values: number[] }[] {
  const [first] = axis.cases;
  if (first === undefined) return [];
  return curvesOf(run, groupOf(first.case)).flatMap((curve) => {
    const who = ofCurve(run, curve);
    const look = looks.get(who);
    if (look === undefined || hidden.has(who)) return [];
    const modeled = curve.times.map(([x, ns]) => ({ x, y: quantity.of(first, ns) }));
    const last = measured.filter((point) => point.who === who).sort((a, b) => Number(a.x) - Number(b.x)).at(-1);
    const line = last === undefined ? modeled : [{ x: Number(last.x), y: last.y }, ...modeled];
    const mark = [
      Plot.line(line, { x: "x", y: "y", stroke: look.color, strokeWidth: 1.4, strokeDasharray: "4 4" }),
      Plot.dot(modeled, { x: "x", y: "y", stroke: look.color, symbol: look.sign, r: 3.4, fill: "var(--paper)", ariaLabel: () => "modeled" }),
    ];
    return [{ mark, values: modeled.map(({ y }) => y) }];
  });
}

const sign = (look: Look | undefined) => ({ glyph: look?.glyph ?? "", color: look?.color ?? "inherit" });

/** Ticks for ratios of speeds. */
const TIMES = [0.1, 0.2, 0.25, 0.33, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100];

/**
 * The scale of ratios with its lines: logarithmic, so that twice as fast and half as fast have the
 * same distance from even.
 */
function times(values: number[], height: number): { y: Plot.ScaleOptions; low: number; lines: Plot.Markish[] } {
  const [low, high] = [Math.min(0.93, ...values) * 0.98, Math.max(1.12, ...values) * 1.03];
  const room = height / 26;
  const inside = TIMES.filter((tick) => tick >= low && tick <= high);
  const step = Math.max(1, Math.ceil(inside.length / room));
  const one = inside.indexOf(1);
  const ticks = inside.filter((_, index) => (index - one) % step === 0);
  return { y: { type: "log", domain: [low, high], axis: null }, low, lines: levels(ticks, (tick) => `${tick}×`) };
}

/**
 * The background of ratios: where ours is slower, where the two are even, and the line of equals.
 */
function ground(even: number, low: number): Plot.Markish[] {
  return [
    Plot.rect([0], { y1: low, y2: 1 - even, fill: "var(--lost-wash)" }),
    Plot.rect([0], { y1: 1 - even, y2: 1 + even, fill: "var(--even-wash)" }),
    Plot.ruleY([1], { stroke: "var(--ink)", strokeWidth: 1 }),
    Plot.text([0], { frameAnchor: "bottom-right", text: () => "ours is slower", fill: "var(--lost)", dy: -5, dx: -4 }),
  ];
}

/** A short level line: the gate's limit for ours. */
const LEVEL = {
  draw(context: { moveTo(x: number, y: number): void; lineTo(x: number, y: number): void }, length: number) {
    context.moveTo(-length / 2, 0);
    context.lineTo(length / 2, 0);
  },
};

/** Ours against each peer, with intervals. */
export function ratios(scene: Scene): Drawing {
  const { run, axis, looks } = scene;
  const rows = placedRows(run, axis).filter((row) => visible(scene, row.peer));
  const height = scene.width < 520 ? 300 : 360;
  const { y, low, lines: level } = times(rows.flatMap((row) => row.against.ratio), height);
  const marks: Plot.Markish[] = [level, ground(scene.even, low), through(scene)];
  run.peers.forEach((peer, index) => {
    const look = looks.get(peer);
    const own = rows.filter((row) => row.peer === peer);
    if (look === undefined || own.length === 0) return;
    const x = (row: Row) => axis.at(row.case);
    const dx = aside(index, run.peers.length, scene.width);
    const value = (index: 0 | 1 | 2) => (row: Row) => row.against.ratio[index];
    const limited = own.filter((row) => row.against.limit !== null);
    marks.push(
      Plot.vector(limited, { x, y: (row: Row) => row.against.limit, dx, length: 9, shape: LEVEL, stroke: "var(--soft)", strokeWidth: 1.2, anchor: "middle" }),
      axis.kind === "log" ? Plot.line(own, { x, y: value(1), dx, stroke: look.color, strokeOpacity: 0.35, strokeWidth: 1 }) : null,
      Plot.ruleX(own, { x, y1: value(0), y2: value(2), dx, stroke: look.color, strokeWidth: 2 }),
      Plot.dot(own, { x, y: value(1), dx, fill: look.color, symbol: look.sign, r: 3.6, stroke: "var(--paper)", strokeWidth: 0.8 }),
      Plot.dot(own.filter((row) => row.against.ratio[1] < 1 - scene.even), { x, y: value(1), dx, r: 8, stroke: "var(--lost)", strokeWidth: 1.6 }),
    );
  });
  const plot = Plot.plot({ ...frame(scene.width, height), x: along(axis, scene.width), y, marks });
  const lines = (found: Case) =>
    rows
      .filter((row) => row.case === found)
      .map((row) => ({ ...sign(looks.get(row.peer)), name: row.peer, value: interval(row.against) }));
  return finish(plot, stopsOf(scene, plot, lines));
}

function interval({ ratio: [low, middle, high] }: Against): string {
  return `${ratio(middle)}× (${ratio(low)}–${ratio(high)})`;
}

/** Peers of one case are side by side. */
function aside(index: number, count: number, width: number): number {
  const step = width < 520 ? 3 : 6;
  return (index - (count - 1) / 2) * step;
}

/**
 * The spread of the run's launches, in percent of their median, together with that of two equal
 * programs.
 */
export function spread(scene: Scene): Drawing {
  const { run, axis, looks } = scene;
  const rows = placedRows(run, axis).filter((row) => visible(scene, row.peer));
  const off = (value: number, middle: number) => (value / middle - 1) * 100;
  const launches = rows.flatMap((row) =>
    row.against.launches.map((value) => ({ row, who: row.peer, x: axis.at(row.case), y: off(value, row.against.ratio[1]) })),
  );
  const controls = axis.cases.flatMap((found) => found.controls.map((value) => ({ x: axis.at(found), y: off(value, 1) })));
  const most = Math.max(1.5, ...[...launches, ...controls].map((dot) => Math.abs(dot.y))) * 1.1;
  const shift = (index: number) => aside(index, run.peers.length + 1, scene.width);
  const bound = scene.even * 100;
  const marks: Plot.Markish[] = [
    Plot.rect([0], { y1: -bound, y2: bound, fill: "var(--even-wash)" }),
    Plot.ruleY([0], { stroke: "var(--ink)" }),
    Plot.dot(controls, { x: "x", y: "y", dx: shift(0), r: 2.2, stroke: "var(--soft)", strokeWidth: 1 }),
  ];
  run.peers.forEach((peer, index) => {
    const look = looks.get(peer);
    const own = launches.filter((dot) => dot.who === peer);
    if (look === undefined || own.length === 0) return;
    marks.push(Plot.dot(own, { x: "x", y: "y", dx: shift(index + 1), fill: look.color, fillOpacity: 0.75, symbol: look.sign, r: 2.4 }));
  });
  const plot = Plot.plot({
    ...frame(scene.width, 260),
    x: along(axis, scene.width),
    y: { domain: [-most, most], grid: true, label: null, ticks: 7, tickSize: 0, tickFormat: (tick: number) => `${tick > 0 ? "+" : tick < 0 ? "−" : ""}${Math.abs(tick)} %` },
    marks,
  });
  const lines = (found: Case) => [
    ...rows
      .filter((row) => row.case === found)
      .map((row) => ({ ...sign(looks.get(row.peer)), name: row.peer, value: range(row.against.launches.map((value) => off(value, row.against.ratio[1]))) })),
    ...(found.controls.length > 0
      ? [{ glyph: "○", color: "var(--soft)", name: "two equals", value: range(found.controls.map((value) => off(value, 1))) }]
      : []),
  ];
  return finish(plot, stopsOf(scene, plot, lines));
}

function range(values: number[]): string {
  const show = (value: number) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`;
  return `${show(Math.min(...values))} to ${show(Math.max(...values))} %`;
}

/** One run in the history of a subject. */
interface Moment {
  run: Run;
  peer: string;
  value: number;
  low: number;
  high: number;
}

/**
 * Ours against each peer, run by run: of one case with its interval, or of a group as its geometric
 * mean.
 */
export function moments(history: Run[], group: string, chosen: string): Moment[] {
  return history.flatMap((run) =>
    run.peers.flatMap((label, peer) => {
      const found = run.cases
        .filter((one) => (chosen === "" ? groupOf(one.case) === group : one.case === chosen))
        .flatMap((one) => one.against.filter((against) => against.peer === peer));
      if (found.length === 0) return [];
      const mean = (index: 0 | 1 | 2) => Math.exp(found.reduce((sum, against) => sum + Math.log(against.ratio[index]), 0) / found.length);
      const value = mean(1);
      const [low, high] = chosen === "" ? [value, value] : [mean(0), mean(2)];
      return [{ run, peer: label.replace(/ v?[\d.]+.*$/, ""), value, low, high }];
    }),
  );
}

export function history(scene: Scene, found: Moment[]): Drawing {
  const runs = [...new Set(found.map((moment) => moment.run))];
  const looks = new Map([...scene.looks].map(([label, look]) => [label.replace(/ v?[\d.]+.*$/, ""), look]));
  const { y, low, lines: level } = times(found.flatMap((moment) => [moment.low, moment.high]), 240);
  const marks: Plot.Markish[] = [level, ground(scene.even, low)];
  const x = (moment: Moment) => moment.run.run;
  for (const peer of new Set(found.map((moment) => moment.peer))) {
    const own = found.filter((moment) => moment.peer === peer);
    const color = looks.get(peer)?.color ?? "var(--soft)";
    const symbol = looks.get(peer)?.sign ?? "circle";
    marks.push(
      Plot.line(own, { x, y: "value", stroke: color, strokeWidth: 1.6 }),
      Plot.ruleX(own, { x, y1: "low", y2: "high", stroke: color, strokeWidth: 2 }),
      Plot.dot(own, { x, y: "value", fill: color, symbol, r: 3.8, stroke: "var(--paper)" }),
    );
  }
  const every = Math.max(1, Math.ceil(runs.length / Math.max(1, Math.floor(scene.width / 96))));
  const tick = (name: string, index: number) => {
    const run = runs.find((run) => run.run === name);
    return run === undefined || index % every !== 0 ? "" : `${commit(run)}\n${day(name)}`;
  };
  const plot = Plot.plot({
    ...frame(scene.width, 280),
    marginBottom: 48,
    x: { type: "point", domain: runs.map((run) => run.run), padding: 0.5, tickFormat: tick, tickSize: 4, label: null },
    y,
    marks,
  });
  const scale = plot.scale("x");
  const stops = runs.map((run) => ({
    x: Number(scale?.apply(run.run)),
    name: run.run,
    title: `${commit(run)}, ${day(run.run)}`,
    lines: found
      .filter((moment) => moment.run === run)
      .map((moment) => ({
        ...sign(looks.get(moment.peer)),
        name: moment.peer,
        value: moment.low === moment.high ? `${ratio(moment.value)}×` : `${ratio(moment.value)}× (${ratio(moment.low)}–${ratio(moment.high)})`,
      })),
  }));
  return finish(plot, stops);
}

/** A commit's short name; a mark shows uncommitted changes. */
export function commit(run: Run): string {
  if (run.commit === "") return "no commit";
  return run.commit.slice(0, 7) + (run.dirty ? "+" : "");
}
