// The page: the reader's choices, and everything that is drawn from them.

import { losses, summary, titleOf } from "./answers.js";
import { type Drawing, history, moments, ratios, type Scene, spread, throughput } from "./charts.js";
import { groupOf, laneName, load, machineName, type ModeledCurve, type Page, type Run } from "./data.js";
import { byId, element, fill } from "./dom.js";
import { minute, percent, plural } from "./format.js";
import { grid } from "./grid.js";
import { type Look, Looks } from "./look.js";
import { machine, overview, standings } from "./panels.js";
import { readable } from "./reader.js";
import { axisOf, curvesOf, ofCurve, oursOf, quantityOf } from "./series.js";
import { type Choice, type Options, read, seen, type Seen, settle, write } from "./state.js";
import { Table } from "./table.js";
import { theme } from "./theme.js";
import { words } from "./words.js";

class View {
  private wish: Partial<Choice> = read();
  private readonly hidden = new Set<string>();
  private readonly looks: Looks;
  private readonly table: Table;
  /** For each chart, the function that opens the values of a case. */
  private readonly readers = new Map<string, (name: string) => void>();
  private width = 0;
  /** The run that the panels and the table show. */
  private drawn: Run | undefined;
  private readonly page: Page;

  constructor(page: Page) {
    this.page = page;
    this.looks = new Looks(page);
    this.table = new Table(page.even);
    addEventListener("hashchange", () => {
      this.wish = read();
      this.draw();
    });
    summary(page);
    losses(page);
    new ResizeObserver(() => {
      const width = byId("throughput").clientWidth;
      if (width !== this.width) this.charts();
    }).observe(byId("throughput"));
  }

  draw(): void {
    const part = seen();
    const { choice, options, run } = settle(this.page, this.wish);
    this.wish = choice;
    write(choice);
    this.filters(choice, options);
    if (run !== this.drawn) this.panels(run);
    this.charts();
    if (part !== undefined) this.lead(part, choice);
  }

  /** What shows all cases of a run, whichever of its groups is chosen: up to thousands of cells. */
  private panels(run: Run): void {
    this.drawn = run;
    standings(run, this.page.even);
    machine(this.page, run);
    overview(this.page, run, (other) => this.choose({ lane: other.lane, suite: other.suite, kernel: other.forced, run: other.run }));
    this.table.show(run);
  }

  /**
   * Goes to the part of the page that the address names. In the chart, the values of the chosen
   * case are open.
   */
  private lead(part: Seen, choice: Choice): void {
    const target = byId(part === "grid" ? "grid-title" : "ratio");
    target.focus({ preventScroll: true });
    if (part === "ratio") this.readers.get("ratio")?.(choice.case);
    (target.closest("figure") ?? target).scrollIntoView();
  }

  /** Later choices fall back to existing values. */
  private choose(wish: Partial<Choice>): void {
    this.wish = { ...this.wish, ...wish };
    this.draw();
  }

  private filters(choice: Choice, options: Options): void {
    const select = (key: keyof Choice, names: [string, string][]) => {
      const field = byId(`choose-${key}`) as HTMLSelectElement;
      field.replaceChildren(...names.map(([value, name]) => element("option", { value, selected: value === choice[key] }, name)));
      field.disabled = names.length < 2;
      field.onchange = () => this.choose({ [key]: field.value });
    };
    const same = (names: string[]): [string, string][] => names.map((name) => [name, name]);
    select("lane", options.lanes.map((lane) => [lane, machineName(this.page, lane, [])]));
    select("suite", options.suites.map((suite) => [suite, titleOf(this.page, suite)]));
    select("kernel", options.kernels.map((kernel) => [kernel, kernel === "" ? "as detected" : kernel]));
    select("run", options.runs.map((run) => [run.run, `${minute(run.run)}, ${plural(run.launches, "launch", "launches")}`]));
    select("group", same(options.groups));
    select("case", [["", "the whole group (mean)"], ...same(options.cases)]);
  }

  private charts(): void {
    const { choice, run, history: past } = settle(this.page, this.wish);
    this.width = byId("throughput").clientWidth;
    if (this.width === 0) return;
    const axis = axisOf(run, choice.group);
    const looks = new Map<string, Look>([[oursOf(run), this.looks.ours()], ...this.looks.ofRun(run.peers)]);
    const scene: Scene = { run, axis, quantity: quantityOf(axis), looks, hidden: this.hidden, even: this.page.even, width: this.width, chosen: choice.case };
    const subject = `${run.suite}, ${choice.group}, ${laneName(run.lane)}.`;
    this.legend(run, looks);
    this.grid(run, choice, looks);
    fill("throughput-unit", scene.quantity.label);
    fill("left-out", axis.left.length > 0 && `Not drawn, since a logarithmic axis has no zero: ${axis.left.map((found) => found.case).join(", ")}. See the table.`);
    this.modeled(scene);
    const by = axis.label === "Threads" ? "number of threads" : "size";
    this.chart("throughput", throughput(scene), `${scene.quantity.label} by ${by}: ${subject}`);
    this.chart("ratio", ratios(scene), `How many times as fast ours is as each peer: ${subject}`);
    if (run.launches > 1) this.chart("spread", spread({ ...scene, width: byId("spread").clientWidth }), `How far the launches lie apart: ${subject}`);
    else nothing("spread", "This run has a single launch: nothing lies beside it.");
    this.past(scene, past, choice);
  }

  /** Says that a part of the chart was not measured, and what the model says. */
  private modeled({ run, axis, quantity }: Scene): void {
    const [first] = axis.cases;
    const curves = first === undefined ? [] : curvesOf(run, groupOf(first.case)).filter(({ times }) => times.length > 0);
    if (first === undefined || curves.length === 0) return fill("modeled");
    const error = percent(Math.max(...curves.map((curve) => curve.error)));
    const times = (curve: ModeledCurve) => curve.times.map(([threads, ns]) => `${quantity.show(quantity.of(first, ns))} with ${threads}`);
    fill(
      "modeled",
      element("b", {}, "Modeled, not measured"),
      ` (dashed, hollow signs): what more threads would do by the universal scalability law, fitted to the measured numbers of threads, from which it differs by at most ${error}.`,
      ` It knows no limit of the memory. ${curves.map((curve) => `${ofCurve(run, curve)}: ${times(curve).join(", ")}`).join("; ")}.`,
    );
  }

  private grid(run: Run, choice: Choice, looks: Map<string, Look>): void {
    const suite = this.page.suites.find((known) => known.name === run.suite);
    fill(
      "grid-about",
      element("strong", {}, `${titleOf(this.page, run.suite)}, ${choice.group}, on ${machineName(this.page, run.lane, [run.cpu])}.`),
      ` ${suite?.about ?? ""}`,
    );
    grid(this.page, run, choice.group, looks, choice.sizes, (sizes) => this.choose({ sizes }));
  }

  private past(scene: Scene, runs: Run[], choice: Choice): void {
    const found = moments(runs, choice.group, choice.case);
    const count = new Set(found.map((moment) => moment.run)).size;
    if (count < 2) {
      nothing("history", `One run so far: a history begins with the second. cargo xtask bench ${scene.run.suite} --record`);
      return;
    }
    const what = choice.case === "" ? `the mean of ${choice.group}` : choice.case;
    this.chart("history", history({ ...scene, width: byId("history").clientWidth }, found), `Ours against each peer in ${count} runs: ${what}.`);
  }

  private chart(id: string, drawing: Drawing, label: string): void {
    const host = byId(id);
    host.tabIndex = 0;
    this.readers.set(id, readable(host, drawing.svg, drawing.stops, label));
  }

  private legend(run: Run, looks: Map<string, Look>): void {
    const entry = ([label, look]: [string, Look]) => {
      const shown = !this.hidden.has(label);
      const toggle = () => {
        if (shown) this.hidden.add(label);
        else this.hidden.delete(label);
        this.charts();
        byId("legend").querySelector<HTMLElement>(`[data-label="${CSS.escape(label)}"]`)?.focus();
      };
      return element(
        "button",
        { type: "button", "aria-pressed": String(shown), "data-label": label, onclick: toggle },
        element("span", { class: "glyph", style: `color: ${look.color}`, "aria-hidden": "true" }, look.glyph),
        label,
        label === oursOf(run) && element("span", { class: "ours" }, "ours"),
      );
    };
    fill("legend", ...[...looks].map(entry));
  }
}

/** A place for a drawing, with the reason why there is none. */
function nothing(id: string, why: string): void {
  const host = byId(id);
  host.removeAttribute("tabindex");
  host.removeAttribute("aria-label");
  host.replaceChildren(element("p", { class: "nothing" }, why));
}

function start(): void {
  theme();
  const page = load();
  if (typeof page === "string" || page.runs.length === 0) {
    const none = "There is no run yet. Measure one, and build the page again:";
    fill("problem-text", typeof page === "string" ? `${page} Build it again:` : none);
    fill("problem-command", typeof page === "string" ? "cargo xtask dashboard" : "cargo xtask bench oneshot --record && cargo xtask dashboard");
    byId("problem").hidden = false;
    return;
  }
  byId("content").hidden = false;
  words(page);
  new View(page).draw();
}

start();
