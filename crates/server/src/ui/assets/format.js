// Figures and times as people read them.

const STEPS = [["year", 31_557_600], ["month", 2_629_800], ["day", 86_400], ["hour", 3600], ["minute", 60], ["second", 1]];

/** A number of seconds in its largest unit: `3 days`. */
export function duration(seconds) {
  const [unit, length] = STEPS.find(([, length]) => seconds >= length) ?? STEPS.at(-1);
  const count = Math.max(0, Math.floor(seconds / length));
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

/** A number of seconds exactly, if whole days or hours make it up. */
export function exactDuration(seconds) {
  const [unit, length] = STEPS.slice(2).find(([, length]) => seconds % length === 0) ?? ["second", 1];
  const count = seconds / length;
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

/** A time of the API as text in UTC, to the second. */
export const time = (text) => (text ? `${text.slice(0, 10)} ${text.slice(11, 19)} UTC` : "–");

export const ageOf = (text) => (Date.now() - Date.parse(text)) / 1000;

/** A number with at most three digits that count, and thousands apart. */
export function figure(value) {
  if (value === null || !Number.isFinite(value)) return "–";
  if (value >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en-US");
  return value.toLocaleString("en-US", { maximumSignificantDigits: 3 });
}

/** Seconds in the unit that suits them: `12.5 µs`. */
export function latency(seconds) {
  if (seconds === null) return "–";
  if (seconds === Infinity) return "> 1 s";
  const [unit, scale] = seconds < 1e-3 ? ["µs", 1e6] : seconds < 1 ? ["ms", 1e3] : ["s", 1];
  return `${figure(seconds * scale)} ${unit}`;
}

/** Words of the API, as people write them. */
export const words = (text) => String(text).replaceAll("_", " ");
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** What people call a key: its label, or else the last part of its name. */
export const nameOf = (key) => key.label ?? key.key.split("/").at(-1);
