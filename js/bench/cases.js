// The cases of the benchmark.

import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

import { feed, noble, wasmPeers } from "./peers.js";

/** @typedef {import("./measure.js").Case} Case */
/** @typedef {import("./peers.js").Peer} Peer */

const K = 1024;
const SIZES = [11, 64, 256, K, 3 * K, 4 * K, 5 * K, 6 * K, 7 * K, 16 * K, 100 * K, K * K, 16 * K * K];

/** Each group of cases runs in a separate process. */
export const GROUPS = {
  pure: async () => cases("pure", await import("../dist/pure.js"), [await noble()]),
  wasm: async () => cases("wasm", await import("../dist/index.js"), await wasmPeers()),
  many,
  parallel,
};

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

/** @param {string} group @param {any} api @param {Peer[]} peers @returns {Generator<Case>} */
function* cases(group, api, peers) {
  const { createHasher, hash } = api;
  const ours = (/** @type {() => any} */ run) => us(api, run);
  for (const size of SIZES) {
    const data = pattern(size);
    const run = () => hash(data);
    yield { name: `${group}/hash/${size}`, bytes: size, isAsync: false, contenders: [ours(run), ...each(peers, (peer) => peer.hash(data))] };
  }
  const long = pattern(K * K);
  const stream = () => {
    const hasher = createHasher();
    feed(long, 4 * K, (part) => hasher.update(part));
    return hasher.digest();
  };
  const streams = each(peers, (peer) => peer.stream(long, 4 * K));
  yield { name: `${group}/stream/4096`, bytes: K * K, isAsync: false, contenders: [ours(stream), ...streams] };
  const short = pattern(11);
  const wide = () => hash(short, { length: 64 });
  const wides = each(peers, (peer) => peer.hash64(short));
  yield { name: `${group}/output64/11`, bytes: 64, isAsync: false, contenders: [ours(wide), ...wides] };
}

/** Many inputs in one call, against one call for each. @returns {Promise<Case[]>} */
async function many() {
  const api = await import("../dist/index.js");
  return [64, K].map((size) => {
    const inputs = Array.from({ length: 64 }, () => pattern(size));
    const one = peer("bulla, one call each", () => inputs.map((input) => api.hash(input)));
    return {
      name: `many/64x${size}`,
      bytes: 64 * size,
      isAsync: false,
      contenders: [us(api, () => api.hashMany(inputs)), one, { ...one, role: "control" }],
    };
  });
}

/**
 * Several workers against one and none: 2, 4, ... up to the number of processors. From four on,
 * the input is larger.
 * @returns {AsyncGenerator<Case>}
 */
async function* parallel() {
  const api = await import("../dist/index.js");
  const { hashParallel } = await import("../dist/parallel.js");
  for (let workers = 2; workers === 2 || workers <= availableParallelism(); workers *= 2) {
    const mebibytes = workers === 2 ? 64 : 1024;
    const size = mebibytes * K * K;
    const data = new Uint8Array(new SharedArrayBuffer(size));
    data.set(pattern(size));
    const one = peer("bulla, one worker", () => hashParallel(data, { workers: 1 }));
    const none = peer("bulla, no worker", async () => api.hash(data));
    const contenders = [us(api, () => hashParallel(data, { workers })), one, none];
    yield { name: `parallel/${workers}x${mebibytes}MiB`, bytes: size, isAsync: true, contenders };
  }
}

/** @param {any} api @param {() => any} run */
function us(api, run) {
  return { name: "bulla", version, role: /** @type {const} */ ("ours"), kernel: api.kernel(), run };
}

/** @param {string} name @param {() => any} run */
function peer(name, run) {
  return { name, version, role: /** @type {const} */ ("peer"), kernel: "", run };
}

/**
 * The peers as contenders, and a second instance of the first as the control.
 * @param {Peer[]} peers
 * @param {(peer: Peer) => any} use
 */
function each(peers, use) {
  const contenders = peers.map((one) => ({ ...peer(one.name, () => use(one)), version: one.version }));
  return [...contenders, { ...contenders[0], role: /** @type {const} */ ("control") }];
}

/** Byte i is i mod 251. @param {number} length */
function pattern(length) {
  return new Uint8Array(length).map((_, i) => i % 251);
}
