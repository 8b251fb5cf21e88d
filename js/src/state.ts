// Saved states: spec/blake3-state.md, version 1.

import type { Mode } from "./core.js";
import { StateError } from "./errors.js";
import { sizeOf } from "./input.js";

const MAGIC = "bullab3s";
const VERSION = 1;
const HEAD = 64;
/** The longest state: 54 chaining values and a chunk less one byte. */
const MAX = HEAD + 54 * 32 + 1023;
const IV = "67e6096a85ae67bb72f36e3c3af54fa57f520e518c68059babd9831f19cde05b";

/** What a saved state says. */
export interface Saved {
  mode: Mode;
  /** Bytes before the first one of a subtree; a multiple of 1024. */
  offset: bigint;
  /** Bytes absorbed since `offset`. */
  count: bigint;
  /** 32 bytes. */
  key: Uint8Array;
  /** Chaining values of finished subtrees, 32 bytes each, the leftmost first. */
  values: Uint8Array;
  /** The bytes of the unfinished chunk. */
  tail: Uint8Array;
}

/** The bytes of a state. */
export function formatState({ mode, offset, count, key, values, tail }: Saved): Uint8Array {
  const bytes = new Uint8Array(HEAD + values.length + tail.length);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < MAGIC.length; i++) bytes[i] = MAGIC.charCodeAt(i);
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

/**
 * Reads a saved state. The result has a copy of all that it needs.
 *
 * @throws StateError for anything that is not exactly one saved state
 */
export function parseState(given: Uint8Array): Saved {
  if (sizeOf(given) > MAX) throw wrongLength(sizeOf(given), `${MAX} or less`);
  const bytes = new Uint8Array(given);
  const view = new DataView(bytes.buffer);
  if (!MAGIC.split("").every((c, i) => bytes[i] === c.charCodeAt(0))) {
    throw new StateError("ERR_STATE_MAGIC", "these bytes are no saved BLAKE3 state");
  }
  if (bytes.length < HEAD) throw wrongLength(bytes.length, `${HEAD} or more`);
  if (bytes[8] !== VERSION) {
    throw new StateError("ERR_STATE_VERSION", `a saved state of version ${bytes[8]}: this package knows ${VERSION}`);
  }
  const mode = bytes[9]!;
  if (mode > 2) throw new StateError("ERR_STATE_MODE", `a saved state of the unknown mode ${mode}`);
  if (view.getUint16(10) !== 0) {
    throw new StateError("ERR_STATE_RESERVED", "a saved state with a reserved field that is not zero");
  }
  if (view.getUint32(12, true) !== bytes.length) throw wrongLength(bytes.length, String(view.getUint32(12, true)));
  const offset = view.getBigUint64(16, true);
  const count = view.getBigUint64(24, true);
  checkRange(offset, count);
  const stack = count > 1024n ? stackLength(count) : 0;
  const tail = Number(count > 1024n ? count & 1023n : count);
  if (HEAD + stack + tail !== bytes.length) {
    throw new StateError("ERR_STATE_COUNT", `a saved state of ${bytes.length} bytes does not fit its count of ${count}`);
  }
  const key = bytes.slice(32, HEAD);
  if (mode === 0 && Array.from(key, (byte) => byte.toString(16).padStart(2, "0")).join("") !== IV) {
    throw new StateError("ERR_STATE_KEY", "a saved state of plain hashing with a key");
  }
  const values = bytes.slice(HEAD, HEAD + stack);
  return { mode: mode as Mode, offset, count, key, values, tail: bytes.slice(HEAD + stack) };
}

/** How many more bytes a hasher with this offset may absorb after `count`. */
export function roomOf(offset: bigint, count: bigint): bigint {
  return subtreeLength(offset) - count;
}

/** The most bytes that a subtree at this offset has: the largest power of two that divides the offset; 2^64-1 in all. */
function subtreeLength(offset: bigint): bigint {
  const longest = (1n << 64n) - 1n - offset;
  const aligned = offset & -offset;
  return offset === 0n || longest < aligned ? longest : aligned;
}

function checkRange(offset: bigint, count: bigint): void {
  if ((offset & 1023n) !== 0n) {
    throw new StateError("ERR_STATE_OFFSET", "a saved state whose input offset is not a multiple of 1024");
  }
  if (offset + count >= 1n << 64n) throw new StateError("ERR_STATE_RANGE", "a saved state beyond the longest input");
  if (count > subtreeLength(offset)) {
    throw new StateError("ERR_STATE_SUBTREE", "a saved state that has absorbed more than its subtree holds");
  }
}

/** Bytes of chaining values after `count` > 1024 bytes: one value for each one bit of the number of finished chunks. */
function stackLength(count: bigint): number {
  const chunks = count >> 10n;
  let values = 0;
  for (let c = chunks; c > 0n; c >>= 1n) values += Number(c & 1n);
  // At the end of a chunk the last subtree, if it has more than one, stands as its two halves.
  return 32 * (values + ((count & 1023n) === 0n && (chunks & 1n) === 0n ? 1 : 0));
}

function wrongLength(length: number, stated: string) {
  return new StateError("ERR_STATE_LENGTH", `a saved state of ${length} bytes that should have ${stated}`);
}
