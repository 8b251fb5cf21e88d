// The README's chart: the throughput by size on each machine of the newest runs, as one SVG that
// needs no style sheet. `pictures.js` runs it in a browser.

import * as Plot from "@observablehq/plot";
import { groupOf, machineName, type Page, type Run } from "./data.js";
import { axisOf, oursOf, points, quantityOf } from "./series.js";

/** The colors of the page's style sheet, by theme: a picture in a document cannot read it. */
const THEMES = {
  light: { ink: "#1a2230", soft: "#566072", line: "#dfe3e8", series: ["#2459a9", "#c2570c", "#15803d", "#7c3aa8"] },
  dark: { ink: "#e7ebf1", soft: "#a0abbb", line: "#2d3542", series: ["#84b4ff", "#ffa05c", "#6fd08c", "#cf9df2"] },
};
const SUITE = "oneshot";
const GROUP = "hash";
const MAX_MACHINES = 3;
const MIN_SIZE = 64;
const SIGNS = ["circle", "square", "triangle", "diamond2"] as const;

/** The newest run of each lane that has the chart's cases and no forced kernel. */
export function chartRuns(page: Page): Run[] {
  const newest = new Map<string, Run>();
  for (const run of page.runs) {
    if (run.suite === SUITE && run.forced === "" && run.cases.some((found) => groupOf(found.case) === GROUP)) newest.set(run.lane, run);
  }
  return [...newest.values()].reverse().slice(0, MAX_MACHINES);
}

/** An implementation's name without its version, which may differ between the runs. */
const nameWithoutVersion = (label: string) => label.replace(/ [\d.]+.*$/, "");

/** Powers of two: the sizes between them have a table of their own. */
const isShown = (size: number) => size >= MIN_SIZE && Number.isInteger(Math.log2(size));

/** The chart as the text of an SVG file. */
export function throughputPicture(page: Page, theme: keyof typeof THEMES): string {
  const { ink, soft, line, series } = THEMES[theme];
  const runs = chartRuns(page);
  const rows = runs.flatMap((run) => {
    const axis = axisOf(run, GROUP);
    const machine = machineName(page, run.lane, [run.cpu]);
    return points(run, axis, quantityOf(axis)).filter((point) => isShown(Number(point.x))).map((point) => ({ ...point, machine, who: nameWithoutVersion(point.who) }));
  });
  const [first] = runs;
  if (first === undefined) throw new Error(`no run of the suite ${SUITE} has the cases ${GROUP}`);
  const names = [...new Set([nameWithoutVersion(oursOf(first)), ...rows.map((row) => row.who)])];
  const at = (name: string) => names.indexOf(name);
  const axis = axisOf(first, GROUP);
  const largest = Math.max(...rows.map((row) => Number(row.x)));
  const ticks = [64, 1024, 32768, 1048576, 67108864].filter((size) => size <= largest);
  const plot = Plot.plot({
    document,
    width: 880,
    height: 380,
    marginLeft: 44,
    marginRight: 8,
    marginTop: 64,
    marginBottom: 44,
    insetLeft: 8,
    insetRight: 8,
    style: { background: "none", color: soft, fontFamily: "system-ui, 'Segoe UI', 'Noto Sans', sans-serif", fontSize: "13px" },
    fx: { label: null, padding: 0.08, axis: null },
    x: { type: "log", base: 2, label: null, ticks, tickFormat: (size: number) => axis.tick(size), tickSize: 4 },
    y: { label: null, grid: false, nice: true, zero: true },
    symbol: { domain: names, range: SIGNS.slice(0, names.length) },
    marks: [
      Plot.gridY({ stroke: line, strokeOpacity: 1 }),
      Plot.line(rows, {
        x: "x", y: "y", fx: "machine", z: "who", sort: "x",
        stroke: (row: { who: string }) => series[at(row.who)] ?? soft,
        strokeWidth: 2.2,
      }),
      Plot.dot(rows, {
        x: "x", y: "y", fx: "machine", r: 3, symbol: "who",
        fill: (row: { who: string }) => series[at(row.who)] ?? soft,
      }),
      Plot.text([...new Set(rows.map((row) => row.machine))], {
        fx: (machine: string) => machine, text: (machine: string) => machine, frameAnchor: "top-left", dy: -24, fill: ink, fontWeight: 600,
      }),
    ],
  });
  if (!(plot instanceof SVGSVGElement)) throw new Error("the chart is not one drawing");
  title(plot, ink, names, (name) => series[at(name)] ?? soft);
  return `${clean(new XMLSerializer().serializeToString(plot))}\n`;
}

/** The heading and the legend, above the panels. */
function title(plot: SVGSVGElement, ink: string, names: string[], color: (name: string) => string) {
  const text = (x: number, content: string, fill: string, weight: string) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", "text");
    for (const [name, value] of Object.entries({ x: String(x), y: "18", fill, "font-weight": weight, "font-size": "14", "text-anchor": "start" })) node.setAttribute(name, value);
    node.textContent = content;
    plot.append(node);
  };
  text(8, "BLAKE3 on one thread: GB/s by input size", ink, "600");
  const marks = ["●", "■", "▲", "◆"];
  names.forEach((name, index) => text(520 + index * 125, `${marks[index] ?? "●"} ${name}`, color(name), "600"));
}

/** Without the class names that the library numbers anew with each drawing. */
function clean(svg: string): string {
  return svg.replace(/plot-[0-9a-f]+/g, "plot").replace(/ {2,}/g, " ");
}
