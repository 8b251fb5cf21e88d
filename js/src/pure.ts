/**
 * BLAKE3 in pure JavaScript, for places where WebAssembly is forbidden or the download must be
 * small. It has the same functions as the main entry, on the core `portable`. For streams, see the
 * entry `bulla/stream`.
 *
 * @module
 */

import type { Core, Kernel } from "./core.js";
import { createHasherWith, deriveKeyWith, hashManyWith, hashWith, keyedHashWith } from "./hasher.js";
import type { Hasher, HasherOptions } from "./hasher.js";
import type { Data } from "./input.js";
import type { OutputOptions } from "./options.js";
import { createPureCore } from "./pure/core.js";

export type { Kernel } from "./core.js";
export { StateError } from "./errors.js";
export type { ErrorCode, StateErrorCode } from "./errors.js";
export type { Hasher, HasherOptions, OutputReader } from "./hasher.js";
export type { Data } from "./input.js";
export type { OutputOptions } from "./options.js";
export { toHex } from "./text.js";
export type { Encoding } from "./text.js";

const core: Core = /* @__PURE__ */ createPureCore();

/** The hash of `data`: 32 bytes, or `options.length` bytes. */
export function hash(data: Data, options?: OutputOptions): Uint8Array<ArrayBuffer> {
  return hashWith(core, data, options);
}

/** The hash of `data` under a key of 32 bytes. */
export function keyedHash(key: ArrayBufferView | ArrayBufferLike, data: Data, options?: OutputOptions): Uint8Array<ArrayBuffer> {
  return keyedHashWith(core, key, data, options);
}

/** A key for the purpose that `context` names, from key material. */
export function deriveKey(context: string | ArrayBufferView, material: Data, options?: OutputOptions): Uint8Array<ArrayBuffer> {
  return deriveKeyWith(core, context, material, options);
}

/** The hash of each input, 32 bytes each. */
export function hashMany(inputs: Iterable<Data>): Uint8Array<ArrayBuffer>[] {
  return hashManyWith(core, inputs);
}

/** A hasher for input in pieces. */
export function createHasher(options?: HasherOptions): Hasher {
  return createHasherWith(core, options);
}

/** The name of the kernel in use: always `portable` here. */
export function kernel(): Kernel {
  return core.kernel;
}
