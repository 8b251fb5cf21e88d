// Every figure of a run: sortable by any column, searchable, and available as CSV.

import { type Row, type Run, rowsOf, standing } from "./data.js";
import { element, fill } from "./dom.js";
import { bytes, nanoseconds, need, percent, ratio } from "./format.js";

interface Column {
  head: string;
  /** Sorts by this. */
  value: (row: Row) => number | string;
  show: (row: Row) => string;
  figure: boolean;
}

const figure = (head: string, value: (row: Row) => number, show: (row: Row) => string): Column => ({ head, value, show, figure: true });
const word = (head: string, value: (row: Row) => string): Column => ({ head, value, show: value, figure: false });

const COLUMNS: Column[] = [
  word("Case", (row) => row.case.case),
  figure("Bytes", (row) => row.case.bytes, (row) => bytes(row.case.bytes)),
  word("Peer", (row) => row.peer),
  figure("Ours", (row) => row.case.ns, (row) => nanoseconds(row.case.ns)),
  figure("Peer’s", (row) => row.against.ns, (row) => nanoseconds(row.against.ns)),
  figure("Times as fast", (row) => row.against.ratio[1], (row) => ratio(row.against.ratio[1])),
  figure("Interval", (row) => row.against.ratio[2] - row.against.ratio[0], (row) => `${ratio(row.against.ratio[0])}–${ratio(row.against.ratio[2])}`),
  figure("Need", (row) => 1 / row.against.ratio[1], (row) => need(row.against.ratio[1])),
  figure("Two equals", (row) => row.case.control?.[1] ?? 0, (row) => (row.case.control === null ? "–" : ratio(row.case.control[1]))),
  figure("Shared", (row) => row.case.disturbed, (row) => percent(row.case.disturbed)),
  figure("At least", (row) => row.against.limit ?? 0, (row) => (row.against.limit === null ? "–" : ratio(row.against.limit))),
  word("Gate", (row) => row.against.verdict),
];

/** Need: the greatest losses come first. */
const FIRST = COLUMNS.findIndex((column) => column.head === "Need");

export class Table {
  private rows: Row[] = [];
  private run: Run | undefined;
  private sorted = FIRST;
  private direction: 1 | -1 = -1;
  private search = "";
  private readonly even: number;

  constructor(even: number) {
    this.even = even;
    const input = document.getElementById("search") as HTMLInputElement;
    input.addEventListener("input", () => {
      this.search = input.value.trim().toLowerCase();
      this.draw();
    });
    document.getElementById("csv")?.addEventListener("click", () => this.download());
  }

  show(run: Run): void {
    this.run = run;
    this.rows = rowsOf(run);
    this.draw();
  }

  private shown(): Row[] {
    const words = this.search.split(/\s+/);
    const text = (row: Row) => COLUMNS.filter((column) => !column.figure).map((column) => column.show(row)).join(" ").toLowerCase();
    const found = this.rows.filter((row) => words.every((word) => text(row).includes(word)));
    const column = COLUMNS[this.sorted];
    if (column === undefined) return found;
    found.sort((a, b) => compare(column.value(a), column.value(b)));
    return this.direction > 0 ? found : found.reverse();
  }

  private draw(): void {
    const rows = this.shown();
    const heads = COLUMNS.map((column, index) => this.head(column, index));
    const body = rows.map((row) =>
      element(
        "tr",
        { "data-standing": standing(row.against, this.even) },
        ...COLUMNS.map((column, index) =>
          index === 0
            ? element("th", { scope: "row" }, column.show(row))
            : element("td", column.figure ? { class: "figure" } : {}, column.show(row)),
        ),
      ),
    );
    fill("table-head", element("tr", {}, ...heads));
    fill("table-body", ...body);
    fill("table-count", rows.length === this.rows.length ? `${rows.length} comparisons` : `${rows.length} of ${this.rows.length} comparisons`);
  }

  private head(column: Column, index: number): HTMLElement {
    const order = index !== this.sorted ? "none" : this.direction > 0 ? "ascending" : "descending";
    const sort = () => {
      this.direction = index === this.sorted ? (this.direction > 0 ? -1 : 1) : column.figure ? -1 : 1;
      this.sorted = index;
      this.draw();
      document.querySelectorAll<HTMLElement>("#table-head button")[index]?.focus();
    };
    const arrow = element("span", { class: "arrow", "aria-hidden": "true" }, order === "ascending" ? "↑" : order === "descending" ? "↓" : "");
    const button = element("button", { type: "button", onclick: sort }, column.head, arrow);
    return element("th", { scope: "col", "aria-sort": order, ...(column.figure ? { class: "figure" } : {}) }, button);
  }

  private download(): void {
    const quote = (value: string | number) => `"${String(value).replaceAll('"', '""')}"`;
    const line = (row: Row) => [
      row.case.case, row.case.bytes, row.peer, row.case.ns, row.against.ns, ...row.against.ratio,
      row.case.control?.[1] ?? "", row.case.disturbed, row.against.limit ?? "", row.against.verdict,
    ];
    const heads = ["case", "bytes", "peer", "ours_ns", "peer_ns", "ratio_low", "ratio", "ratio_high", "control", "disturbed", "at_least", "gate"];
    const text = [heads, ...this.shown().map(line)].map((cells) => cells.map(quote).join(",")).join("\r\n");
    const address = URL.createObjectURL(new Blob([text, "\r\n"], { type: "text/csv" }));
    const name = `${this.run?.run.replaceAll(":", "")}-${this.run?.suite}.csv`;
    element("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }
}

function compare(a: number | string, b: number | string): number {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}
