// BLAKE3 in pure JavaScript. It runs where WebAssembly is not allowed, and the tests compare the
// other core with it.

import { HASH } from "../core.js";
import type { Core, Mode, Root, HasherState } from "../core.js";
import { part, sizeOf } from "../input.js";
import { allocate } from "../options.js";
import { formatState } from "../state.js";
import type { Saved } from "../state.js";
import { compress } from "./compress.js";
import { IV, bytesOfWords, digestOf, order, wordsInPlace, wordsOfBytes } from "./words.js";

// Flags of the compression function.
const CHUNK_START = 1;
const CHUNK_END = 2;
const PARENT = 4;
const ROOT = 8;

const CHUNK_LEN = 1024;
const BLOCK_WORDS = 16;
const CV_WORDS = 8;

// The words of one state: the chunk that is not finished, the key, the numbers, and the chaining
// values of the finished subtrees. The longest input has 2^54 chunks; while one is finished, one
// more value is on the stack.
const KEY = 256;
const NUMBERS = 264;
const STACK = 272;
const STATE_WORDS = 720;

// The numbers: bytes of the unfinished chunk, chaining values on the stack, finished chunks and the
// chunks before the first one as halves of 64-bit numbers, and the mode.
const HELD = 264;
const DEPTH = 265;
const CHUNKS = 266;
const OFFSET = 268;
const MODE = 270;

/** The first stage of key derivation, beside the modes that states have. */
const CONTEXT = 3;
/** By mode: none, KEYED_HASH, DERIVE_KEY_MATERIAL, DERIVE_KEY_CONTEXT. */
const MODE_FLAGS = [0, 16, 64, 32] as const;

// The input of a tree's last compression, in one array: the block, the chaining value, the length
// of the block, and the flags.
const CV = 16;
const LENGTH = 24;
const FLAGS = 25;
const NODE_WORDS = 26;

/**
 * Builds the core. Its scratch memory belongs to it, not to the module, so that importing allocates
 * nothing.
 */
export function createPureCore(): Core {
  const scratch = new Int32Array(4 * CHUNK_LEN);
  const scratchBytes = new Uint8Array(scratch.buffer);
  const digest = new Int32Array(4 * CHUNK_LEN);
  const digestBytes = new Uint8Array(digest.buffer);
  // The root of the running call; before that, the node above the stack.
  const node = new Int32Array(NODE_WORDS);

  /**
   * Writes output from position `hi * 2^32 + lo` on, from the root's compressions with a rising
   * counter.
   */
  function output(root: Int32Array, lo: number, hi: number, out: Uint8Array): void {
    const size = sizeOf(out);
    let skip = lo & 63;
    let low = (lo >>> 6) | (hi << 26);
    let high = hi >>> 6;
    for (let done = 0; done < size; ) {
      const wanted = Math.min(size - done + skip, digestBytes.length);
      const words = ((wanted + 63) >>> 6) * BLOCK_WORDS;
      for (let at = 0; at < words; at += BLOCK_WORDS) {
        compress(root, 0, 1, root[LENGTH]!, root, CV, root[FLAGS]!, 0, 0, low, high, digest, at, 16);
        for (let i = 0; i < CV_WORDS; i++) digest[at + CV_WORDS + i]! ^= root[CV + i]!;
        low = (low + 1) | 0;
        if (low === 0) high++;
      }
      order(digest, 0, words);
      out.set(digestBytes.subarray(skip, wanted), done);
      done += wanted - skip;
      skip = 0;
    }
  }

  /** Sets the node to the last block of the only chunk. */
  function rootOfChunk(words: Int32Array, size: number, key: Int32Array, keyAt: number, flags: number): void {
    const before = size <= 64 ? 0 : (size - 1) >>> 6;
    const at = before * BLOCK_WORDS;
    node.set(words.subarray(at, at + BLOCK_WORDS));
    node[LENGTH] = size - before * 64;
    node[FLAGS] = flags | CHUNK_END | ROOT | (before > 0 ? 0 : CHUNK_START);
    if (before > 0) compress(words, 0, before, 64, key, keyAt, flags, CHUNK_START, 0, 0, 0, node, CV, 8);
    else node.set(key.subarray(keyAt, keyAt + CV_WORDS), CV);
  }

  /**
   * Zeroes `words` after `size` bytes, to the end of the block. Words are in little-endian order.
   */
  function pad(words: Int32Array, size: number): void {
    const end = size === 0 ? BLOCK_WORDS : ((size + 63) >>> 6) * BLOCK_WORDS;
    let i = size >>> 2;
    if ((size & 3) !== 0) words[i++]! &= (1 << ((size & 3) * 8)) - 1;
    while (i < end) words[i++] = 0;
  }

  /** Hashes at most one chunk; for 32 bytes of output, in one call of the compression function. */
  function hashChunk(data: Uint8Array, size: number, key: Int32Array, flags: number, length: number): Uint8Array<ArrayBuffer> {
    scratchBytes.set(data);
    order(scratch, 0, (size + 3) >>> 2);
    pad(scratch, size);
    if (length !== 32) {
      rootOfChunk(scratch, size, key, 0, flags);
      const out = allocate(length);
      output(node, 0, 0, out);
      return out;
    }
    const blocks = size <= 64 ? 1 : (size + 63) >>> 6;
    const last = size - (blocks - 1) * 64;
    compress(scratch, 0, blocks, last, key, 0, flags, CHUNK_START, CHUNK_END | ROOT, 0, 0, digest, 0, 8);
    return digestOf(digest, 0);
  }

  class PureState implements HasherState {
    readonly #words = new Int32Array(STATE_WORDS);
    /**
     * The unfinished chunk: its bytes in input order, which are not yet words on a big-endian
     * machine.
     */
    readonly #bytes = new Uint8Array(this.#words.buffer, 0, CHUNK_LEN);

    begin(mode: Mode | typeof CONTEXT, key: Int32Array): this {
      this.#words.set(key, KEY);
      this.#words[MODE] = mode;
      this.reset();
      return this;
    }

    restore({ mode, offset, count, key, values, tail }: Saved): this {
      const own = this.begin(mode, wordsOfBytes(key)).#words;
      setWide(own, CHUNKS, values.length === 0 ? 0n : count);
      setWide(own, OFFSET, offset);
      own[DEPTH] = values.length / 32;
      own[HELD] = tail.length;
      own.set(wordsOfBytes(values), STACK);
      this.#bytes.set(tail);
      return this;
    }

    reset(): void {
      this.#words.fill(0, NUMBERS, MODE);
    }

    clone(): PureState {
      const copy = new PureState();
      copy.#words.set(this.#words);
      return copy;
    }

    /** Erases everything, including the key. */
    wipe(): void {
      this.#words.fill(0);
    }

    update(data: Uint8Array): void {
      const own = this.#words;
      const size = sizeOf(data);
      if (size === 0) return;
      const held = own[HELD]!;
      // A restored stack may end with the two halves of a subtree. More input follows, so it is not
      // the root.
      if (held === 0 && own[DEPTH]! > 1 && (own[CHUNKS]! & 1) === 0) this.#merge();
      // A full chunk waits for more input: it may be the root.
      const room = CHUNK_LEN - held;
      if (size <= room) {
        this.#bytes.set(data, held);
        own[HELD] = held + size;
        return;
      }
      let at = 0;
      if (held > 0) {
        this.#bytes.set(part(data, 0, room), held);
        at = room;
        order(own, 0, KEY);
        this.#absorb(own, 1);
      }
      at = this.#absorbChunks(data, at, (size - at - 1) >>> 10);
      this.#bytes.set(at === 0 ? data : part(data, at, size));
      own[HELD] = size - at;
    }

    /** Absorbs `count` whole chunks, after which more input follows. Returns their end. */
    #absorbChunks(data: Uint8Array, at: number, count: number): number {
      if (count === 0) return at;
      const words = wordsInPlace(data, at);
      if (words !== undefined) {
        this.#absorb(words, count);
        return at + count * CHUNK_LEN;
      }
      for (let left = count; left > 0; ) {
        const now = Math.min(left, scratchBytes.length / CHUNK_LEN);
        scratchBytes.set(part(data, at, at + now * CHUNK_LEN));
        order(scratch, 0, now * KEY);
        this.#absorb(scratch, now);
        at += now * CHUNK_LEN;
        left -= now;
      }
      return at;
    }

    #absorb(words: Int32Array, count: number): void {
      for (let i = 0; i < count; i++) {
        this.#push(words, i * KEY);
        this.#mergeEven(1);
      }
    }

    /** Pushes the chaining value of a whole chunk to the stack. */
    #push(words: Int32Array, at: number): void {
      const own = this.#words;
      this.#value(words, at, CHUNK_LEN, own, STACK + own[DEPTH]! * CV_WORDS);
      own[DEPTH]!++;
      if (++own[CHUNKS]! === 0) own[CHUNKS + 1]!++;
    }

    /** The chaining value of the next chunk, which has `size` bytes. */
    #value(words: Int32Array, at: number, size: number, out: Int32Array, outAt: number): void {
      const own = this.#words;
      const lo = (own[OFFSET]! + own[CHUNKS]!) | 0;
      const hi = own[OFFSET + 1]! + own[CHUNKS + 1]! + (lo >>> 0 < own[OFFSET]! >>> 0 ? 1 : 0);
      const blocks = (size + 63) >>> 6;
      const last = size - (blocks - 1) * 64;
      compress(words, at, blocks, last, own, KEY, this.#flags(), CHUNK_START, CHUNK_END, lo, hi, out, outAt, 8);
    }

    #flags(): number {
      return MODE_FLAGS[this.#words[MODE] as Mode];
    }

    /**
     * Merges the highest subtrees for as long as the number of chunks, without the lowest bits of
     * `mask`, is even.
     */
    #mergeEven(mask: 1 | 3): void {
      const own = this.#words;
      for (let c = own[CHUNKS]!, above = own[CHUNKS + 1]!; (c & mask) === 0; above >>>= 1) {
        this.#merge();
        c = (c >>> 1) | (above << 31);
      }
    }

    /** Replaces the two highest chaining values of the stack by their parent's. */
    #merge(): void {
      const own = this.#words;
      const to = STACK + --own[DEPTH]! * CV_WORDS - CV_WORDS;
      compress(own, to, 1, 64, own, KEY, this.#flags() | PARENT, 0, 0, 0, 0, own, to, 8);
    }

    digest(out: Uint8Array): void {
      this.#findRoot();
      output(node, 0, 0, out);
    }

    root(): Root {
      this.#findRoot();
      const own = node.slice();
      return { read: (lo, hi, out) => output(own, lo, hi, out) };
    }

    #findRoot(): void {
      const own = this.#words;
      const held = own[HELD]!;
      let next = own[DEPTH]!;
      if (held > 0 || next === 0) {
        // The unfinished chunk as words, followed by zeros.
        scratchBytes.set(this.#bytes);
        order(scratch, 0, KEY);
        pad(scratch, held);
        if (next === 0) return rootOfChunk(scratch, held, own, KEY, this.#flags());
        this.#value(scratch, 0, held, node, CV_WORDS);
      } else {
        this.#copyValue(--next, CV_WORDS);
      }
      this.#copyValue(--next, 0);
      while (next > 0) {
        compress(node, 0, 1, 64, own, KEY, this.#flags() | PARENT, 0, 0, 0, 0, node, CV_WORDS, 8);
        this.#copyValue(--next, 0);
      }
      node.set(own.subarray(KEY, NUMBERS), CV);
      node[LENGTH] = 64;
      node[FLAGS] = this.#flags() | PARENT | ROOT;
    }

    /** Copies a chaining value of the stack into the node. */
    #copyValue(index: number, to: number): void {
      const from = STACK + index * CV_WORDS;
      node.set(this.#words.subarray(from, from + CV_WORDS), to);
    }

    save(): Uint8Array<ArrayBuffer> {
      const own = this.#words;
      if (own[HELD] === CHUNK_LEN && own[DEPTH]! > 0) return this.clone().#settle().save();
      return formatState({
        mode: own[MODE] as Mode,
        offset: wide(own, OFFSET),
        count: wide(own, CHUNKS) + BigInt(own[HELD]!),
        key: bytesOfWords(own.subarray(KEY, NUMBERS)),
        values: bytesOfWords(own.subarray(STACK, STACK + own[DEPTH]! * CV_WORDS)),
        tail: this.#bytes.subarray(0, own[HELD]),
      });
    }

    /**
     * Finishes a full chunk that may be the last one: the highest subtree stays as its two halves.
     */
    #settle(): this {
      const own = this.#words;
      order(own, 0, KEY);
      this.#push(own, 0);
      own[HELD] = 0;
      this.#mergeEven(3);
      return this;
    }
  }

  // Long inputs of one-shot calls.
  const whole = new PureState();

  function hashWhole(mode: Mode | typeof CONTEXT, key: Int32Array, data: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
    const size = sizeOf(data);
    if (size <= CHUNK_LEN) return hashChunk(data, size, key, MODE_FLAGS[mode], length);
    const out = allocate(length);
    whole.begin(mode, key).update(data);
    whole.digest(out);
    if (mode !== HASH) whole.wipe();
    return out;
  }

  return {
    kernel: "portable",
    hash: (data, length) => hashWhole(HASH, IV, data, length),
    hashKeyed: (mode, key, data, length) => hashWhole(mode, wordsOfBytes(key), data, length),
    contextKey: (context) => hashWhole(CONTEXT, IV, context, 32),
    hashMany: (inputs) => inputs.map((input) => hashWhole(HASH, IV, input, 32)),
    open: (mode, key) => new PureState().begin(mode, key === undefined ? IV : wordsOfBytes(key)),
    restore: (saved) => new PureState().restore(saved),
  };
}

/** Sets the two words from `at` on to the number of chunks in a number of bytes. */
function setWide(words: Int32Array, at: number, bytes: bigint): void {
  words[at] = Number(BigInt.asIntN(32, bytes >> 10n));
  words[at + 1] = Number(bytes >> 42n);
}

/** The number of bytes of as many chunks as the two words from `at` on count. */
function wide(words: Int32Array, at: number): bigint {
  return (BigInt(words[at + 1]!) << 42n) | (BigInt(words[at]! >>> 0) << 10n);
}
