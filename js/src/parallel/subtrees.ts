// Cuts an input into subtrees, and combines their chaining values.

import { compress } from "../pure/compress.js";
import { bytesOfWords, wordsOfBytes } from "../pure/words.js";
import type { Mode } from "../core.js";
import { formatState } from "../state.js";
import type { Saved } from "../state.js";

/**
 * A part of the input that is a whole subtree: a power of two of chunks, at least two, at a
 * multiple of its own length.
 */
export interface Part {
  from: number;
  length: number;
}

/** The minimum size of a part: for smaller ones, messaging a worker takes longer than hashing. */
export const MIN_PART_LEN = 64 * 1024;

const PARENT = 4;
const FLAGS = { 0: PARENT, 1: PARENT | 16, 2: PARENT | 64 } as const;

/**
 * Cuts `length` bytes into parts for `workers`, from left to right: equal ones, several for each
 * worker, so that a slow worker does not delay the others, and then smaller and smaller ones. The
 * rest after the last part is less than {@link MIN_PART_LEN}.
 */
export function partsOf(length: number, workers: number): Part[] {
  let size = MIN_PART_LEN;
  while (size * 2 * workers * 4 <= length) size *= 2;
  const parts: Part[] = [];
  let from = 0;
  for (; size >= MIN_PART_LEN; size /= 2) {
    for (; length - from >= size; from += size) parts.push({ from, length: size });
  }
  return parts;
}

/** Builds the saved state of a hasher that has absorbed all parts, from the parts' states. */
export class Join {
  readonly #mode: Mode;
  readonly #key: Uint8Array;
  /** Finished subtrees, the leftmost first: eight words each, and their bytes. */
  readonly #stack: { words: Int32Array; length: number }[] = [];
  #count = 0;

  constructor({ mode, key }: Saved) {
    this.#mode = mode;
    this.#key = key;
  }

  /** Adds the next part. It has exactly two chaining values: those of its halves. */
  add({ count, values }: Saved): void {
    const length = Number(count);
    while (this.#canMerge()) this.#merge();
    for (const half of [values.subarray(0, 32), values.subarray(32, 64)]) {
      this.#stack.push({ words: wordsOfBytes(half), length: length / 2 });
    }
    this.#count += length;
  }

  /**
   * The saved state. Its last subtree is stored as its halves, because their parent may be the
   * root.
   */
  state(): Uint8Array {
    while (this.#canMerge() && this.#stack.at(-3)?.length === 2 * this.#stack.at(-1)!.length) this.#merge();
    const words = new Int32Array(8 * this.#stack.length);
    this.#stack.forEach((subtree, i) => words.set(subtree.words, 8 * i));
    return formatState({
      mode: this.#mode,
      offset: 0n,
      count: BigInt(this.#count),
      key: this.#key,
      values: bytesOfWords(words),
      tail: new Uint8Array(0),
    });
  }

  #canMerge(): boolean {
    return this.#stack.length > 1 && this.#stack.at(-1)!.length === this.#stack.at(-2)!.length;
  }

  #merge(): void {
    const right = this.#stack.pop()!;
    const left = this.#stack.pop()!;
    const node = new Int32Array(16);
    node.set(left.words);
    node.set(right.words, 8);
    const words = new Int32Array(8);
    compress(node, 0, 1, 64, wordsOfBytes(this.#key), 0, FLAGS[this.#mode], 0, 0, 0, 0, words, 0, 8);
    this.#stack.push({ words, length: left.length + right.length });
  }
}

/** The initial state of a part's hasher. */
export function startOf({ mode, key }: Saved, part: Part): Uint8Array {
  const none = new Uint8Array(0);
  return formatState({ mode, offset: BigInt(part.from), count: 0n, key, values: none, tail: none });
}
