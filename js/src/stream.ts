/**
 * Hashing of streams, with a hasher of any entry.
 *
 * @module
 */

import { kindError } from "./errors.js";
import type { Hasher } from "./hasher.js";
import { bytesOf, sizeOf } from "./input.js";
import type { Data } from "./input.js";
import { optionsOf } from "./options.js";

/** Options for reading a stream. */
export interface StreamOptions {
  /**
   * Called after each piece, with the number of bytes absorbed so far, and with the total if that
   * is known.
   */
  onProgress?: ((bytes: number, total?: number) => void) | undefined;
  /** Stops: the promise is rejected with the signal's reason, and the source is closed. */
  signal?: AbortSignal | undefined;
}

/** The pieces of a stream. */
export type Source = ReadableStream<Data> | AsyncIterable<Data> | Iterable<Data>;

/**
 * Absorbs a whole stream.
 *
 * @returns the hasher itself
 * @throws the errors of the source, `onProgress` and the hasher, or the signal's reason. After an
 * error, the hasher has absorbed a part
 */
export async function updateFrom(hasher: Hasher, source: Source, options?: StreamOptions): Promise<Hasher> {
  const [onProgress, signal] = optionsOf(options, "onProgress", "signal");
  let bytes = 0;
  await eachPiece(piecesOf(source), signal, (piece) => {
    const view = bytesOf(piece);
    hasher.update(view);
    bytes += sizeOf(view);
    onProgress?.(bytes);
  });
  return hasher;
}

interface Pieces {
  next(): Promise<IteratorResult<Data, unknown>> | IteratorResult<Data, unknown>;
  /** Ends the source early. */
  close(reason: unknown): unknown;
}

/**
 * The pieces of a source. Streams are read by their reader, because not every browser can iterate
 * over them.
 */
function piecesOf(source: Source): Pieces {
  const { getReader } = (source ?? {}) as Partial<ReadableStream<Data>>;
  if (typeof getReader === "function") {
    const reader = (source as ReadableStream<Data>).getReader();
    return {
      next: () => reader.read() as Promise<IteratorResult<Data, unknown>>,
      close: (reason) => reader.cancel(reason),
    };
  }
  const iterate =
    (source as AsyncIterable<Data> | null)?.[Symbol.asyncIterator] ?? (source as Iterable<Data> | null)?.[Symbol.iterator];
  if (typeof source !== "object" || ArrayBuffer.isView(source) || typeof iterate !== "function") {
    throw kindError("ERR_DATA_TYPE", "a source must be a stream or iterable", source);
  }
  const iterator = (iterate as (this: Source) => AsyncIterator<Data> | Iterator<Data>).call(source);
  return { next: () => iterator.next(), close: () => iterator.return?.() };
}

/**
 * Passes each piece to `take`, until the source ends or fails, `take` throws, or `signal` aborts.
 */
async function eachPiece(pieces: Pieces, signal: AbortSignal | undefined, take: (piece: Data) => void): Promise<void> {
  // One listener for the whole stream: a promise that lives that long would collect one reaction
  // for each piece.
  let stop: (reason: unknown) => void = () => {};
  const onAbort = () => stop(signal!.reason);
  signal?.addEventListener("abort", onAbort);
  try {
    for (;;) {
      signal?.throwIfAborted();
      const { done, value } = await new Promise<IteratorResult<Data, unknown>>((resolve, reject) => {
        stop = reject;
        Promise.resolve(pieces.next()).then(resolve, reject);
      });
      if (done) return;
      take(value as Data);
    }
  } catch (error) {
    // A waiting source may never answer: tell it to stop, but do not wait for it.
    Promise.resolve(pieces.close(error)).catch(() => {});
    throw error;
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}

/** A stream that passes its input on, and hashes it on the way. */
export interface HashTransformStream extends TransformStream<Data, Data> {
  /** Has absorbed all input so far: take its digest when the stream has ended. */
  readonly hasher: Hasher;
}

/** Makes a stream that passes its input on, and hashes it with `hasher`. */
export function transformThrough(hasher: Hasher): HashTransformStream {
  const stream = new TransformStream<Data, Data>({
    transform(piece, controller) {
      hasher.update(piece);
      controller.enqueue(piece);
    },
  });
  return Object.assign(stream, { hasher });
}
