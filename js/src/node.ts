/**
 * BLAKE3 for Node's files and streams.
 *
 * @module
 */

import { open } from "node:fs/promises";
import type { PathLike } from "node:fs";
import { Transform } from "node:stream";
import type { TransformCallback, TransformOptions } from "node:stream";

import { openHasher } from "./hasher.js";
import type { Hasher, HasherOptions } from "./hasher.js";
import { core } from "./kernel.js";
import { lengthOf, optionsOf } from "./options.js";
import type { StreamOptions } from "./index.js";

export type { StreamOptions } from "./index.js";

/**
 * The number of bytes of one read. Larger reads would leave the processor's cache before they are
 * hashed.
 */
const READ = 256 * 1024;

/**
 * The hash of a file's content. It starts the next read while it hashes the previous one.
 *
 * @param path - anything that can be read to its end, even a pipe
 * @throws the system's error, such as `ENOENT` or `EISDIR`; the reason of `options.signal`
 */
export async function hashFile(path: PathLike, options?: StreamOptions): Promise<Uint8Array<ArrayBuffer>> {
  const [key, context, size, onProgress, signal] = optionsOf(options, "key", "context", "length", "onProgress", "signal");
  const length = lengthOf(size);
  const hasher = openHasher(core(), key, context);
  signal?.throwIfAborted();
  const file = await open(path);
  try {
    const status = await file.stat();
    const total = status.isFile() ? status.size : undefined;
    const buffers = [new Uint8Array(READ), new Uint8Array(READ)] as const;
    let pending = file.read(buffers[0], 0, READ, null);
    for (let bytes = 0, turn = 0; ; turn ^= 1) {
      const { bytesRead } = await pending;
      signal?.throwIfAborted();
      if (bytesRead === 0) return hasher.digest("bytes", { length });
      pending = file.read(buffers[turn === 0 ? 1 : 0], 0, READ, null);
      // An error below leaves this read pending.
      pending.catch(() => {});
      hasher.update(buffers[turn === 0 ? 0 : 1].subarray(0, bytesRead));
      bytes += bytesRead;
      onProgress?.(bytes, total);
    }
  } finally {
    await file.close();
  }
}

/** The options of Node's streams, except those whose functions would replace the hashing. */
const STREAM_OPTIONS = [
  "allowHalfOpen", "autoDestroy", "construct", "decodeStrings", "defaultEncoding", "destroy", "emitClose", "encoding", "flush",
  "highWaterMark", "objectMode", "readableHighWaterMark", "readableObjectMode", "signal", "writableCorked", "writableHighWaterMark",
  "writableObjectMode",
] as const;

/** The mode of the hasher, and options of Node's streams. */
export interface HashTransformOptions extends HasherOptions, Pick<TransformOptions, (typeof STREAM_OPTIONS)[number]> {}

/** A Node stream that passes its input on, and hashes it on the way. */
export class HashTransform extends Transform {
  /** Has absorbed all input so far: take its digest when the stream has ended. */
  readonly hasher: Hasher;

  constructor(options?: HashTransformOptions) {
    const [key, context] = optionsOf(options, "key", "context", ...STREAM_OPTIONS);
    super({ ...options });
    this.hasher = openHasher(core(), key, context);
  }

  /** For Node's streams: not for callers. */
  override _transform(chunk: Uint8Array | string, encoding: BufferEncoding, done: TransformCallback): void {
    try {
      this.hasher.update(typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk);
      done(null, chunk);
    } catch (error) {
      done(error as Error);
    }
  }
}

/** Makes a {@link HashTransform}. */
export function createTransform(options?: HashTransformOptions): HashTransform {
  return new HashTransform(options);
}
