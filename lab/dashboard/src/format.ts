// Figures as words.

import type { Case } from "./data.js";

const KIB = 1024;

/** A number of bytes: 64, 1 KiB, 1.5 KiB, 16 MiB. */
export function bytes(value: number): string {
  if (value < KIB) return String(value);
  if (value < KIB * KIB) return `${trim(value / KIB)} KiB`;
  return `${trim(value / KIB / KIB)} MiB`;
}

/** The same for the axis of a chart. */
export const shortBytes = (value: number) => bytes(value).replace(" KiB", "K").replace(" MiB", "M");

const trim = (value: number) => String(Number(value.toFixed(2)));

/** Three significant digits, without powers of ten. */
export function three(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString("en-US");
  return value.toLocaleString("en-US", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });
}

export function nanoseconds(ns: number): string {
  if (ns < 1e4) return `${three(ns)} ns`;
  if (ns < 1e7) return `${three(ns / 1e3)} µs`;
  return `${three(ns / 1e6)} ms`;
}

/** The work per second, in the case's unit. */
export function rate(unit: Case["unit"], count: number, ns: number): string {
  const second = (count * 1e9) / ns;
  if (unit === "byte") return second >= 1e8 ? `${three(second / 1e9)} GB/s` : `${three(second / 1e6)} MB/s`;
  if (second >= 1e6) return `${three(second / 1e6)} M/s`;
  return second >= 1e3 ? `${three(second / 1e3)} k/s` : `${three(second)} /s`;
}

/** The cost of one unit: cycles if the clock is known, otherwise time. */
export function cost({ unit, count, ghz }: Pick<Case, "unit" | "count" | "ghz">, ns: number): string {
  if (ghz === 0 || unit === "call") return nanoseconds(ns);
  const cycles = (ns * ghz) / count;
  if (unit === "byte") return `${three(cycles)} c/B`;
  return cycles >= 1e4 ? `${three(cycles / 1e3)} k cycles` : `${three(cycles)} cycles`;
}

/** A ratio of speeds, for a first look. */
export const times = (value: number) => `${value.toFixed(2)}×`;

/** How many times as long ours takes. */
export const slower = (value: number) => `${1 / value >= 10 ? (1 / value).toFixed(1) : (1 / value).toFixed(2)}×`;

/** A ratio of speeds. */
export const ratio = (value: number) => value.toFixed(3);

/** How much longer ours takes than the peer: positive, we are behind. */
export function need(value: number): string {
  const percent = (1 / value - 1) * 100;
  return `${percent > 0 ? "+" : percent < 0 ? "−" : ""}${Math.abs(percent).toFixed(1)} %`;
}

/** A share of one, as percent. */
export const percent = (share: number) => `${(share * 100).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %`;

/** The beginning of a run's name is its time. */
export const day = (run: string) => run.slice(0, 10);
export const minute = (run: string) => run.slice(0, 16).replace("T", " ");

export const plural = (count: number, one: string, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;
