// The peers, each by its fastest calls.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/**
 * @typedef {object} Peer
 * @property {string} name
 * @property {string} version
 * @property {(data: Uint8Array) => Uint8Array} hash
 * @property {(data: Uint8Array) => Uint8Array} hash64 64 bytes of output
 * @property {(data: Uint8Array, piece: number) => Uint8Array} stream the hash by updates of `piece`
 * bytes
 */

/** @param {string} name */
function versionOf(name) {
  return JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), "utf8")).version;
}

/**
 * Feeds `data` to `update` piece by piece.
 * @param {Uint8Array} data
 * @param {number} piece
 * @param {(piece: Uint8Array) => void} update
 */
export function feed(data, piece, update) {
  for (let at = 0; at < data.length; at += piece) update(data.subarray(at, at + piece));
}

/** @returns {Promise<Peer>} */
export async function noble() {
  const { blake3 } = await import("@noble/hashes/blake3.js");
  return {
    name: "@noble/hashes",
    version: versionOf("@noble/hashes"),
    hash: (data) => blake3(data),
    hash64: (data) => blake3(data, { dkLen: 64 }),
    stream(data, piece) {
      const hasher = blake3.create();
      feed(data, piece, (part) => hasher.update(part));
      return hasher.digest();
    },
  };
}

/** @returns {Promise<Peer>} */
async function hashWasm() {
  const { createBLAKE3 } = await import("hash-wasm");
  const hasher = await createBLAKE3();
  const wide = await createBLAKE3(512);
  return {
    name: "hash-wasm",
    version: versionOf("hash-wasm"),
    hash: (data) => hasher.init().update(data).digest("binary"),
    hash64: (data) => wide.init().update(data).digest("binary"),
    stream(data, piece) {
      hasher.init();
      feed(data, piece, (part) => hasher.update(part));
      return hasher.digest("binary");
    },
  };
}

/**
 * The packages `blake3` and `blake3-wasm`, which have one API.
 * @param {string} name
 * @returns {Peer}
 */
function connor(name) {
  const { hash, createHash } = require(name);
  return {
    name,
    version: versionOf(name),
    hash: (data) => hash(data),
    hash64: (data) => hash(data, { length: 64 }),
    stream(data, piece) {
      const hasher = createHash();
      feed(data, piece, (part) => hasher.update(part));
      return hasher.digest();
    },
  };
}

/** @returns {Promise<Peer>} */
async function jit() {
  const { createHasher, hash, warmupSimd } = await import("blake3-jit");
  await warmupSimd();
  const hasher = createHasher();
  return {
    name: "blake3-jit",
    version: versionOf("blake3-jit"),
    hash: (data) => hash(data),
    hash64: (data) => hash(data, 64),
    stream(data, piece) {
      hasher.reset();
      feed(data, piece, (part) => hasher.update(part));
      return hasher.finalize();
    },
  };
}

/**
 * The official crate in WebAssembly, behind the thinnest interface: official-wasm/.
 * @returns {Peer}
 */
function official() {
  const path = process.env.BULLA_BENCH_OFFICIAL_WASM ?? defaultModule();
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(path)));
  const { memory, buffer, out_ptr, hash, hash64, begin, update, finalize } = /** @type {any} */ (exports);
  const at = buffer(1 << 24);
  const input = new Uint8Array(memory.buffer, at, 1 << 24);
  const out = new Uint8Array(memory.buffer, out_ptr(), 64);
  return {
    name: "blake3 crate",
    version: "1.8.7",
    hash(data) {
      input.set(data);
      hash(data.length);
      return out.slice(0, 32);
    },
    hash64(data) {
      input.set(data);
      hash64(data.length);
      return out.slice(0, 64);
    },
    stream(data, piece) {
      begin();
      feed(data, piece, (part) => {
        input.set(part);
        update(part.length);
      });
      finalize();
      return out.slice(0, 32);
    },
  };
}

function defaultModule() {
  return new URL("official-wasm/target/wasm32-unknown-unknown/release/official_wasm.wasm", import.meta.url);
}

/** All peers that contain WebAssembly. */
export async function wasmPeers() {
  return [official(), await hashWasm(), connor("blake3"), connor("blake3-wasm"), await jit()];
}
