// What the service does now: rates and latencies from its metrics, read every two seconds while
// somebody looks.

import * as api from "./api.js";
import { lineChart } from "./charts.js";
import { announce, button, h, notice, section, table } from "./dom.js";
import { figure, latency, words } from "./format.js";
import { between, reading } from "./metrics.js";

const EVERY = 2000;
const MINUTES = 5;
const KEPT = MINUTES * 60_000 / EVERY;
/** A chart with more lines than these is hard to read. The table has all operations. */
const LINES = 4;

/**
 * The readings of this sign-in. They outlive the view, so that coming back shows a chart without a
 * gap in its beginning.
 */
let last = null;
let steps = [];

export function forget() {
  last = null;
  steps = [];
}

async function read() {
  const now = reading(await api.text("metrics"), Date.now());
  if (last !== null && now.at > last.at) steps.push(between(last, now));
  steps = steps.filter((step) => now.at - step.at <= MINUTES * 60_000).slice(-KEPT);
  last = now;
}

/** The view, and what stops its reading. */
export function activityView() {
  const body = h("div", {}, h("p", { class: "about" }, "Reading the metrics…"));
  let [timer, stopped, paused] = [null, false, false];
  let charts = [];

  async function step() {
    try {
      if (!document.hidden) {
        await read();
        if (!stopped && !paused) charts = show(body);
        draw();
      }
    } catch (error) {
      if (stopped) return;
      body.replaceChildren(refusal(error));
      // What the caller may not read now, it may not read in two seconds either.
      if (error.isRefused || error.isAbsent) return;
    }
    if (!stopped) timer = setTimeout(step, EVERY);
  }
  const draw = () => charts.forEach((chart) => chart.draw());
  const watch = new ResizeObserver(draw);
  watch.observe(body);
  const pause = button("Pause", () => {
    paused = !paused;
    pause.textContent = paused ? "Continue" : "Pause";
    announce(paused ? "The figures stand still" : "The figures move again");
  });
  step();
  const view = h("div", {}, h("div", { class: "title" }, h("h1", { tabindex: -1 }, "Activity"), pause), body);
  return { view, stop: () => {
    stopped = true;
    clearTimeout(timer);
    watch.disconnect();
  } };
}

function refusal(error) {
  if (error.isRefused) {
    return notice("info", h("p", { role: "alert" }, "You may not read the metrics. They concern the whole service: a credential of the operators' tenant that permits ",
      h("code", {}, "read"), " can read them."));
  }
  if (error.isAbsent) return notice("info", h("p", { role: "alert" }, "This service offers no metrics."));
  return notice("bad", h("p", { role: "alert" }, `${error.message} Trying again…`));
}

/** The newest value of a line, for each step, of what `of` finds in it. */
const series = (of) => steps.map(of);

function busiest() {
  const sums = new Map();
  for (const step of steps) {
    for (const [op] of step.latencies) sums.set(op, (sums.get(op) ?? 0) + (step.rates.get(op) ?? 0));
  }
  return [...sums].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).slice(0, LINES).map(([op]) => op);
}

function show(body) {
  const now = steps.at(-1);
  if (now === undefined) {
    body.replaceChildren(h("p", { class: "about" }, "The first figures come in two seconds…"));
    return [];
  }
  const ops = busiest();
  const times = steps.map((step) => step.at);
  const common = { times, minutes: MINUTES };
  const rate = (value) => `${figure(value)}/s`;
  const charts = [lineChart({ ...common, title: "Operations per second", say: rate, tick: figure,
    summary: `Operations per second over the last ${MINUTES} minutes: now ${figure(now.all)}`,
    lines: [{ name: "all", values: series((step) => step.all) }, ...ops.map((op) => ({ name: words(op), values: series((step) => step.rates.get(op) ?? 0) }))] })];
  // Latencies of what keys do most; without any use yet, of nothing.
  if (ops.length > 0) {
    const value = (op, part) => series((step) => step.latencies.get(op)?.[part] ?? null);
    const lines = ops.slice(0, 2).flatMap((op) => ["p50", "p99"].map((part) => ({ name: `${words(op)} ${part}`, values: value(op, part) })));
    charts.push(lineChart({ ...common, title: "Latency", say: latency, logarithmic: true, lines,
      summary: `Latency over the last ${MINUTES} minutes: ${lines.map(({ name, values }) => `${name} ${latency(values.at(-1) ?? null)}`).join(", ")}` }));
  }
  charts.push(lineChart({ ...common, title: "Calls in a batch, on average", say: figure, lines: [{ name: "calls", values: series((step) => step.batch) }],
    summary: `Calls in a batch over the last ${MINUTES} minutes: now ${figure(now.batch)}` }));
  body.replaceChildren(h("div", { class: "charts" }, charts.map(({ figure }) => figure)), section("Now", tableOf(now)));
  return charts;
}

const COLUMNS = [{ name: "Operation" }, { name: "Algorithm" }, { name: "Rate", figure: true }, { name: "Failures", figure: true },
  { name: "p50", figure: true }, { name: "p99", figure: true }, { name: "Total", figure: true }];

function tableOf(now) {
  const rows = [...last.ops.values()].sort((a, b) => a.op.localeCompare(b.op) || a.alg.localeCompare(b.alg)).map(({ op, alg, value }) => {
    const took = now.latencies.get(op);
    return [words(op), alg === "none" ? "–" : h("code", {}, alg), `${figure(now.rates.get(`${op} ${alg}`) ?? 0)}/s`, `${figure(now.failures.get(op) ?? 0)}/s`,
      latency(took?.p50 ?? null), latency(took?.p99 ?? null), value.toLocaleString("en-US")];
  });
  if (rows.length === 0) return h("p", { class: "nothing" }, "No operation yet since the service started.");
  return h("div", {}, table("Operations now", COLUMNS, rows),
    h("p", { class: "about" }, "Rates and latencies of the last two seconds. Failures and latencies count all algorithms of an operation. A batch counts as one latency."));
}
