// Metrics in the text form of OpenMetrics, and what two readings of them say about the time
// between.

const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g;
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([^ ]+)(?: .*)?$/;
const ESCAPES = { "\\n": "\n", '\\"': '"', "\\\\": "\\" };

const unescape = (text) => text.replace(/\\[n"\\]/g, (escape) => ESCAPES[escape]);

function number(text) {
  if (text === "+Inf") return Infinity;
  return Number(text);
}

/**
 * The samples of a text: their names, labels and values. Lines that say something else are left
 * out.
 */
export function parse(text) {
  const samples = [];
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const found = SAMPLE.exec(line);
    if (found === null) continue;
    // The last of the labels may have a brace in its value: the pattern takes the longest.
    const labels = new Map([...(found[2] ?? "").matchAll(LABEL)].map(([, name, value]) => [name, unescape(value)]));
    const value = number(found[3]);
    if (!Number.isNaN(value)) samples.push({ name: found[1], labels, value });
  }
  return samples;
}

/** A histogram: what was counted up to each bound, and in all. */
class Histogram {
  bounds = new Map();
  sum = 0;
  count = 0;
}

/** One reading: counters by operation and algorithm, histograms by operation. */
export function reading(text, at) {
  const [ops, failures, latencies] = [new Map(), new Map(), new Map()];
  const batches = new Histogram();
  for (const { name, labels, value } of parse(text)) {
    const [op, alg] = [labels.get("op") ?? "", labels.get("alg") ?? ""];
    if (name === "kms_ops_total") ops.set(`${op} ${alg}`, { op, alg, value });
    else if (name === "kms_failures_total") failures.set(op, (failures.get(op) ?? 0) + value);
    else if (name.startsWith("kms_op_latency_seconds_")) {
      if (!latencies.has(op)) latencies.set(op, new Histogram());
      take(latencies.get(op), name.slice("kms_op_latency_seconds_".length), labels, value);
    } else if (name.startsWith("kms_batch_len_")) take(batches, name.slice("kms_batch_len_".length), labels, value);
  }
  return { at, ops, failures, latencies, batches };
}

function take(histogram, part, labels, value) {
  if (part === "bucket") histogram.bounds.set(number(labels.get("le") ?? ""), value);
  else if (part === "sum") histogram.sum = value;
  else if (part === "count") histogram.count = value;
}

/**
 * How much a counter grew. One that is smaller than before began anew: the service was restarted.
 */
const grown = (now, before = 0) => (now < before ? now : now - before);

/** What happened between two readings. */
export function between(before, now) {
  const seconds = (now.at - before.at) / 1000;
  const rates = new Map();
  let all = 0;
  for (const [name, { op, value }] of now.ops) {
    const rate = grown(value, before.ops.get(name)?.value) / seconds;
    rates.set(name, rate);
    rates.set(op, (rates.get(op) ?? 0) + rate);
    all += rate;
  }
  const failures = new Map([...now.failures].map(([op, value]) => [op, grown(value, before.failures.get(op)) / seconds]));
  const latencies = new Map([...now.latencies].map(([op, histogram]) => [op, quantiles(before.latencies.get(op), histogram)]));
  const batches = grown(now.batches.count, before.batches.count);
  const batch = batches === 0 ? null : grown(now.batches.sum, before.batches.sum) / batches;
  return { at: now.at, seconds, all, rates, failures, latencies, batch };
}

function quantiles(before, now) {
  const isNew = before === undefined || now.count < before.count;
  const counts = [...now.bounds].map(([bound, count]) => [bound, count - (isNew ? 0 : before.bounds.get(bound) ?? 0)]).sort((a, b) => a[0] - b[0]);
  return { p50: quantile(counts, 0.5), p99: quantile(counts, 0.99) };
}

/**
 * A quantile of cumulative counts by their upper bounds; null where nothing was counted, and
 * infinite above the last bound.
 *
 * Within a bucket the values are taken to be spread evenly. */
export function quantile(counts, share) {
  const all = counts.at(-1)?.[1] ?? 0;
  if (all <= 0) return null;
  const wanted = share * all;
  let [bottom, below] = [0, 0];
  for (const [bound, count] of counts) {
    if (count >= wanted) {
      if (bound === Infinity) return Infinity;
      return count === below ? bound : bottom + (bound - bottom) * (wanted - below) / (count - below);
    }
    [bottom, below] = [bound, count];
  }
  return Infinity;
}
