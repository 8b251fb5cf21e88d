/**
 * BLAKE3. The first call chooses the fastest core that the platform runs: WebAssembly with SIMD, or
 * JavaScript if WebAssembly is forbidden. All calls are synchronous, except those for streams.
 *
 * ```js
 * import { createHasher, hash, toHex } from "bulla";
 *
 * const digest = toHex(hash("abc"));
 * const same = createHasher().update("a").update("bc").digest("hex") === digest;
 * ```
 *
 * Wrong arguments throw a `TypeError` or a `RangeError` with a `code` ({@link ErrorCode}), and
 * change nothing.
 *
 * @module
 */

import { createHasherWith, deriveKeyWith, hashManyWith, hashWith, keyedHashWith, openHasher } from "./hasher.js";
import type { Hasher, HasherOptions } from "./hasher.js";
import type { Data } from "./input.js";
import { lengthOf, optionsOf } from "./options.js";
import type { OutputOptions } from "./options.js";
import { core } from "./kernel.js";
import { transformThrough, updateFrom } from "./stream.js";
import type { HashTransformStream, Source, StreamOptions as ReadOptions } from "./stream.js";

export type { Kernel } from "./core.js";
export { StateError } from "./errors.js";
export { forceKernel, kernel, kernels } from "./kernel.js";
export type { ErrorCode, StateErrorCode } from "./errors.js";
export type { Hasher, HasherOptions, OutputReader } from "./hasher.js";
export type { Data } from "./input.js";
export type { OutputOptions } from "./options.js";
export type { HashTransformStream, Source } from "./stream.js";
export { toHex } from "./text.js";
export type { Encoding } from "./text.js";

/** The hash of `data`: 32 bytes, or `options.length` bytes. */
export function hash(data: Data, options?: OutputOptions): Uint8Array<ArrayBuffer> {
  return hashWith(core(), data, options);
}

/** The hash of `data` under a key of 32 bytes. */
export function keyedHash(key: ArrayBufferView | ArrayBufferLike, data: Data, options?: OutputOptions): Uint8Array<ArrayBuffer> {
  return keyedHashWith(core(), key, data, options);
}

/**
 * A key for the purpose that `context` names, from key material. The context should be a constant
 * of the program, globally unique, such as `example.com 2026-01-01 session tokens`, and contain no
 * user input. The key material must not be a password.
 */
export function deriveKey(context: string | ArrayBufferView, material: Data, options?: OutputOptions): Uint8Array<ArrayBuffer> {
  return deriveKeyWith(core(), context, material, options);
}

/** The hash of each input, 32 bytes each. Many short inputs are hashed side by side. */
export function hashMany(inputs: Iterable<Data>): Uint8Array<ArrayBuffer>[] {
  return hashManyWith(core(), inputs);
}

/** A hasher for input in pieces. */
export function createHasher(options?: HasherOptions): Hasher {
  return createHasherWith(core(), options);
}

/** Options for hashing a stream. */
export interface StreamOptions extends HasherOptions, OutputOptions, ReadOptions {}

/** The hash of a stream: a `ReadableStream`, or any sync or async iterable. */
export async function hashStream(source: Source, options?: StreamOptions): Promise<Uint8Array<ArrayBuffer>> {
  const [key, context, size, onProgress, signal] = optionsOf(options, "key", "context", "length", "onProgress", "signal");
  const length = lengthOf(size);
  const hasher = await updateFrom(openHasher(core(), key, context), source, { onProgress, signal });
  return hasher.digest("bytes", { length });
}

/** A `TransformStream` that passes its input on and hashes it: see its `hasher`. */
export function createTransformStream(options?: HasherOptions): HashTransformStream {
  return transformThrough(createHasherWith(core(), options));
}
