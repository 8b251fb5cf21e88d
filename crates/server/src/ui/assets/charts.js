// Small charts of a few lines over the last minutes, drawn as SVG for the width that they have.

import { h, svg } from "./dom.js";

const HEIGHT = 168;
const [LEFT, RIGHT, TOP, BOTTOM] = [58, 12, 10, 24];
/** The lines are told apart by dashes, too. */
const DASHES = ["", "6 3", "2 3", "9 3 2 3", "1 4", "12 4"];

/** A round number that is not below the value. */
function roof(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.9999) ?? value;
}

/** The scale from a value to its height. */
function scaleOf(values, logarithmic) {
  const known = values.filter((value) => value !== null && Number.isFinite(value));
  const inner = HEIGHT - TOP - BOTTOM;
  if (logarithmic) {
    const positive = known.filter((value) => value > 0);
    const low = 10 ** Math.floor(Math.log10(Math.min(...positive, 1e-5)));
    const high = 10 ** Math.ceil(Math.log10(Math.max(...positive, 1e-4)) - 1e-9);
    const span = Math.log10(high / low);
    const ticks = Array.from({ length: Math.round(span) + 1 }, (_, power) => low * 10 ** power);
    const at = (value) => TOP + inner * (1 - Math.log10(Math.min(Math.max(value, low), high) / low) / span);
    return { at, ticks };
  }
  const top = roof(Math.max(1, ...known));
  return { at: (value) => TOP + inner * (1 - value / top), ticks: [0, top / 2, top] };
}

/** The path of a line. Where a value is missing, the line has a gap. */
function path(points) {
  let text = "";
  let down = false;
  for (const [x, y] of points) {
    if (y === null) down = false;
    else {
      text += `${down ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
      // A single value between two gaps is a dot.
      if (!down) text += "h0.01";
      down = true;
    }
  }
  return text;
}

/**
 * A chart of lines `{ name, values }`, each with a value for each of `times` (milliseconds; the
 * last is now).
 *
 * `minutes` is the span that it shows, `say` writes a value, `tick` one beside the axis, `summary`
 * says in words what there is to see.
 */
export function lineChart({ title, lines, times, minutes, say, tick: beside = say, summary, logarithmic = false }) {
  const holder = h("div", { class: "plot" });
  const legend = h("ul", { class: "legend" }, lines.map(({ name, values }, place) => h("li", {},
    svg("svg", { width: 22, height: 10, "aria-hidden": "true", class: `line-${place % DASHES.length}` },
      svg("path", { d: "M1 5H21", "stroke-dasharray": DASHES[place % DASHES.length] })),
    `${name} `, h("b", {}, say(values.at(-1) ?? null)))));
  const figure = h("figure", {}, h("figcaption", {}, h("b", {}, title)), legend, holder);
  const draw = () => holder.replaceChildren(drawing(Math.max(220, holder.clientWidth)));

  function drawing(width) {
    const end = times.at(-1) ?? Date.now();
    const span = minutes * 60_000;
    const x = (time) => LEFT + (width - LEFT - RIGHT) * (1 - (end - time) / span);
    const scale = scaleOf(lines.flatMap(({ values }) => values), logarithmic);
    const grid = scale.ticks.map((tick) => [
      svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: scale.at(tick), y2: scale.at(tick) }),
      svg("text", { x: LEFT - 8, y: scale.at(tick) + 4, "text-anchor": "end" }, beside(tick)),
    ]);
    // On a narrow screen every second one has room.
    const every = width < 400 ? 2 : 1;
    const marks = Array.from({ length: Math.floor(minutes / every) + 1 }, (_, mark) => mark * every).map((minute) => svg("text",
      { x: x(end - minute * 60_000), y: HEIGHT - 6, "text-anchor": minute === 0 ? "end" : minute === minutes ? "start" : "middle" },
      minute === 0 ? "now" : `−${minute} min`));
    const paths = lines.map(({ values }, place) => svg("path", {
      class: `line line-${place % DASHES.length}`,
      "stroke-dasharray": DASHES[place % DASHES.length],
      d: path(values.map((value, index) => [x(times[index]), value === null || !Number.isFinite(value) ? null : scale.at(value)])),
    }));
    return svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": summary }, grid, marks, paths);
  }
  return { figure, draw };
}
