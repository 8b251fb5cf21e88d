// Saved states: spec/blake3-state.md, version 1.

import type { Mode } from "./core.js";
import { StateError } from "./errors.js";
import type { StateField } from "./errors.js";
import { part, sizeOf } from "./input.js";
import { IV } from "./pure/words.js";

/** "bullab3s". */
const MAGIC = 0x62756c6c61623373n;
const VERSION = 1;
/** The maximum length of the input and of the output in bytes. */
export const END = (1n << 64n) - 1n;
const HEAD = 64;
/** The longest state: 54 chaining values and a chunk less one byte. */
const MAX = HEAD + 54 * 32 + 1023;

/** The content of a saved state. */
export interface Saved {
  mode: Mode;
  /** The number of bytes before the subtree; a multiple of 1024. */
  offset: bigint;
  /** The number of bytes absorbed since `offset`. */
  count: bigint;
  /** 32 bytes. */
  key: Uint8Array;
  /** Chaining values of finished subtrees, 32 bytes each, the leftmost first. */
  values: Uint8Array;
  /** The bytes of the unfinished chunk. */
  tail: Uint8Array;
}

/** The bytes of a state. */
export function formatState({ mode, offset, count, key, values, tail }: Saved): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(HEAD + values.length + tail.length);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, MAGIC);
  bytes[8] = VERSION;
  bytes[9] = mode;
  view.setUint32(12, bytes.length, true);
  view.setBigUint64(16, offset, true);
  view.setBigUint64(24, count, true);
  bytes.set(key, 32);
  bytes.set(values, HEAD);
  bytes.set(tail, HEAD + values.length);
  return bytes;
}

/** Reads a saved state. The result has a copy of everything that it needs.
 *
 * @throws StateError for anything that is not exactly one saved state
 */
export function parseState(given: Uint8Array): Saved {
  const size = sizeOf(given);
  const kept = Math.min(size, MAX);
  const bytes = new Uint8Array(Math.max(HEAD, kept));
  bytes.set(part(given, 0, kept));
  const view = new DataView(bytes.buffer);
  const require = (holds: boolean, field: StateField) => {
    if (!holds) throw new StateError(field);
  };
  require(view.getBigUint64(0) === MAGIC, "magic");
  require(size >= HEAD, "length");
  require(bytes[8] === VERSION, "version");
  const mode = bytes[9]!;
  require(mode <= 2, "mode");
  require(view.getUint16(10) === 0, "reserved");
  require(view.getUint32(12, true) === size, "length");
  const offset = view.getBigUint64(16, true);
  const count = view.getBigUint64(24, true);
  require((offset & 1023n) === 0n, "offset");
  require(offset + count <= END, "range");
  require(roomOf(offset, count) >= 0n, "subtree");
  const isLong = count > 1024n;
  const stack = HEAD + (isLong ? stackLength(count) : 0);
  require(size === stack + Number(isLong ? count & 1023n : count), "count");
  require(mode > 0 || IV.every((word, i) => view.getInt32(32 + 4 * i, true) === word), "key");
  return {
    mode: mode as Mode,
    offset,
    count,
    key: bytes.subarray(32, HEAD),
    values: bytes.subarray(HEAD, stack),
    tail: bytes.subarray(stack),
  };
}

/**
 * How many more bytes a hasher with this offset may absorb after `count`: to the end of its
 * subtree, or to 2^64 - 1 in all.
 */
export function roomOf(offset: bigint, count: bigint): bigint {
  const longest = END - offset;
  const subtree = offset & -offset;
  return (offset === 0n || longest < subtree ? longest : subtree) - count;
}

/**
 * Bytes of chaining values after `count` > 1024 bytes: one value for each one bit of the number of
 * finished chunks.
 */
function stackLength(count: bigint): number {
  const chunks = count >> 10n;
  let values = 0;
  for (let c = chunks; c > 0n; c >>= 1n) values += Number(c & 1n);
  // At the end of a chunk, if the last subtree has more than one chunk, its two halves are stored.
  return 32 * (values + Number((count & 1023n) === 0n && (chunks & 1n) === 0n));
}
