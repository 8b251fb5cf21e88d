// Words and bytes. BLAKE3 is little-endian; typed arrays have the machine's byte order.

import { placeOf, sizeOf } from "../input.js";

/**
 * The key of a plain hash: the fractional parts of the square roots of the first eight primes, 32
 * bits each (section 2.1 of the paper).
 */
export const IV = /* @__PURE__ */ Int32Array.from([2, 3, 5, 7, 11, 13, 17, 19], (prime) => Math.sqrt(prime) * 2 ** 32);

/** Whether the machine's byte order is BLAKE3's. */
export const LITTLE_ENDIAN = /* @__PURE__ */ new Uint8Array(/* @__PURE__ */ new Uint32Array([1]).buffer)[0] === 1;

/** Converts `words[from..to]` between the machine's byte order and little-endian. */
export function order(words: Int32Array, from: number, to: number): void {
  if (LITTLE_ENDIAN) return;
  for (let i = from; i < to; i++) {
    const w = words[i]!;
    words[i] = (w << 24) | ((w & 0xff00) << 8) | ((w >>> 8) & 0xff00) | (w >>> 24);
  }
}

/** `bytes` from `at` on as words, if they are aligned, so that they can be read in place. */
export function wordsInPlace(bytes: Uint8Array, at: number): Int32Array | undefined {
  if (!LITTLE_ENDIAN) return undefined;
  const { buffer, byteOffset } = placeOf(bytes);
  // The compiler treats views of resizable memory as another kind, which would slow down all
  // others.
  const { resizable, growable } = buffer as { resizable?: boolean; growable?: boolean };
  if (((byteOffset + at) & 3) !== 0 || resizable || growable) return undefined;
  return new Int32Array(buffer, byteOffset + at, (sizeOf(bytes) - at) >>> 2);
}

/**
 * The 32 bytes of the eight words from `at` on. The words are numbers, independent of byte order.
 */
export function digestOf(words: Int32Array, at: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(32);
  // Storing bytes in a loop costs a third of `slice` and `set`.
  for (let i = 0; i < 32; i += 4) {
    const word = words[at + (i >> 2)]!;
    out[i] = word;
    out[i + 1] = word >> 8;
    out[i + 2] = word >> 16;
    out[i + 3] = word >> 24;
  }
  return out;
}

/** Little-endian bytes as words. */
export function wordsOfBytes(bytes: Uint8Array): Int32Array<ArrayBuffer> {
  const words = new Int32Array(bytes.length / 4);
  new Uint8Array(words.buffer).set(bytes);
  order(words, 0, words.length);
  return words;
}

/** Words as little-endian bytes. */
export function bytesOfWords(words: Int32Array): Uint8Array<ArrayBuffer> {
  const copy = Int32Array.from(words);
  order(copy, 0, copy.length);
  return new Uint8Array(copy.buffer);
}
