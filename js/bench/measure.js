// Times the contenders of a case, interleaved.

import { cpus, loadavg } from "node:os";

/**
 * @typedef {object} Contender
 * @property {string} name
 * @property {string} version
 * @property {"ours" | "peer" | "control"} role
 * @property {string} kernel of ours only
 * @property {() => any} run one operation; returns the result, or a promise of it
 */

/**
 * @typedef {object} Case
 * @property {string} name
 * @property {number} bytes of one operation
 * @property {boolean} isAsync
 * @property {Contender[]} contenders ours first
 */

/** The minimum duration of a sample. */
const SAMPLE_NS = 1e6;
/** The maximum number of rounds of a case, and the minimum if an operation is long. */
const ROUNDS = [25, 5];
/** The approximate maximum duration of a case. */
const CASE_NS = 4e9;

/** Measures a case: one record for each contender. @param {Case} test */
export async function measure({ name, bytes, isAsync, contenders }) {
  const honest = await agreeing(name, contenders);
  const time = isAsync ? timeAsync : timeSync;
  const iterations = [];
  for (const { run } of honest) iterations.push(await calibrate(time, run));
  let round = 0;
  for (let i = 0; i < honest.length; i++) round += await time(honest[i].run, iterations[i]);
  const rounds = Math.max(ROUNDS[1], Math.min(ROUNDS[0], Math.floor(CASE_NS / round)));
  /** @type {number[][]} */
  const samples = honest.map(() => []);
  for (let i = 0; i < rounds; i++) {
    for (const which of shuffled(honest.length)) {
      samples[which].push((await time(honest[which].run, iterations[which])) / iterations[which]);
    }
  }
  return honest.map((contender, i) => record(name, bytes, contender, iterations[i], samples[i]));
}

/**
 * The contenders that give our result; others are reported on standard error.
 * @param {string} name
 * @param {Contender[]} contenders
 */
async function agreeing(name, contenders) {
  const expected = hexOf(await contenders[0].run());
  const honest = [];
  for (const contender of contenders) {
    let found;
    try {
      found = hexOf(await contender.run());
    } catch (error) {
      found = String(error);
    }
    if (found === expected) honest.push(contender);
    else console.error(`${name}: ${contender.name} ${contender.version} is left out: its result is ${found.slice(0, 60)}`);
  }
  return honest;
}

/** @param {any} result */
function hexOf(result) {
  return Array.isArray(result) ? result.map(hexOf).join() : Buffer.from(result).toString("hex");
}

/**
 * The number of operations that fill a sample, after the compiler has warmed up.
 * @param {any} time
 * @param {() => any} run
 */
async function calibrate(time, run) {
  let iterations = 1;
  while ((await time(run, iterations)) < 30 * SAMPLE_NS && iterations < 2 ** 22) iterations *= 2;
  const one = (await time(run, iterations)) / iterations;
  return Math.max(1, Math.ceil(SAMPLE_NS / one));
}

let sink;

/** @param {() => any} run @param {number} iterations */
function timeSync(run, iterations) {
  const start = process.hrtime.bigint();
  for (let i = 0; i < iterations; i++) sink = run();
  return Number(process.hrtime.bigint() - start);
}

/** @param {() => Promise<any>} run @param {number} iterations */
async function timeAsync(run, iterations) {
  const start = process.hrtime.bigint();
  for (let i = 0; i < iterations; i++) sink = await run();
  return Number(process.hrtime.bigint() - start);
}

/** The numbers below `count` in a random order. @param {number} count */
function shuffled(count) {
  const order = [...Array(count).keys()];
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

/**
 * @param {string} name
 * @param {number} bytes
 * @param {Contender} contender
 * @param {number} iterations
 * @param {number[]} samples
 */
function record(name, bytes, { name: implementation, version, role, kernel }, iterations, samples) {
  return {
    schema: 2,
    run: "",
    time: new Date().toISOString().replace(/\.\d+Z/, "Z"),
    suite: "js",
    case: name,
    bytes,
    implementation,
    version,
    role,
    kernel,
    forced: (process.env.BULLA_BLAKE3_FORCE_KERNEL ?? "") !== "",
    held_to: "",
    lane: "",
    cpu: cpus()[0]?.model ?? "",
    features: [],
    ghz: 0,
    toolchain: `node ${process.version}`,
    flags: process.execArgv.join(" "),
    commit: "",
    dirty: false,
    launch: Number(process.env.BULLA_BENCH_LAUNCH ?? 1),
    iterations,
    samples_ns: samples.map((sample) => Math.round(sample * 10) / 10),
    load: loadavg()[0],
  };
}
