// BLAKE3 in JavaScript alone. It runs where WebAssembly may not, and it is what the other core is tested against.

import { DERIVE, HASH, KEYED } from "../core.js";
import type { Core, Mode, Root, State } from "../core.js";
import { part, sizeOf } from "../input.js";
import { allocate } from "../options.js";
import { formatState } from "../state.js";
import type { Saved } from "../state.js";
import { compress } from "./compress.js";
import { digestOf, order, wordsInPlace } from "./words.js";

// Flags of the compression function.
const CHUNK_START = 1;
const CHUNK_END = 2;
const PARENT = 4;
const ROOT = 8;
const KEYED_HASH = 16;
const DERIVE_KEY_CONTEXT = 32;
const DERIVE_KEY_MATERIAL = 64;

const CHUNK_LEN = 1024;
const BLOCK_WORDS = 16;
const CV_WORDS = 8;

// The words of one state: the chunk that is not finished, the key, and the chaining values of the finished subtrees. The
// longest input has 2^54 chunks; while one is finished, one more value is on the stack.
const KEY = CHUNK_LEN / 4;
const STACK = KEY + CV_WORDS;
const STATE_WORDS = STACK + 56 * CV_WORDS;

const IV = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
const MODE_FLAGS = { [HASH]: 0, [KEYED]: KEYED_HASH, [DERIVE]: DERIVE_KEY_MATERIAL } as const;

/** What the last compression of a tree takes. */
interface Node {
  words: Int32Array;
  at: number;
  length: number;
  cv: Int32Array;
  cvAt: number;
  flags: number;
}

/** Builds the core: its scratch memory belongs to it, not to the module, so that importing allocates nothing. */
export function createPureCore(): Core {
  const scratch = new Int32Array(4 * CHUNK_LEN);
  const scratchBytes = new Uint8Array(scratch.buffer);
  const digest = new Int32Array(4 * CHUNK_LEN);
  const digestBytes = new Uint8Array(digest.buffer);
  // A parent's two chaining values, and the chaining value of the last chunk but for its last block.
  const node = new Int32Array(BLOCK_WORDS + CV_WORDS);
  const ivWords = Int32Array.from(IV);
  /** The root of the call that is running. */
  const root: Node = { words: node, at: 0, length: 64, cv: ivWords, cvAt: 0, flags: 0 };

  /** Writes output from position `hi * 2^32 + lo` on, from the root's compressions with a rising counter. */
  function output({ words, at, length, cv, cvAt, flags }: Node, lo: number, hi: number, out: Uint8Array): void {
    const size = sizeOf(out);
    let skip = lo & 63;
    let low = (lo >>> 6) | (hi << 26);
    let high = hi >>> 6;
    for (let done = 0; done < size; ) {
      const wanted = Math.min(size - done + skip, digestBytes.length);
      const blocks = (wanted + 63) >>> 6;
      for (let i = 0; i < blocks; i++) {
        compress(words, at, 1, length, cv, cvAt, flags, 0, 0, low, high, digest, i * BLOCK_WORDS, 16);
        low = (low + 1) | 0;
        if (low === 0) high++;
      }
      order(digest, 0, blocks * BLOCK_WORDS);
      out.set(digestBytes.subarray(skip, wanted), done);
      done += wanted - skip;
      skip = 0;
    }
  }

  /** Sets the root to the last block of a chunk that is all there is. */
  function rootOfChunk(words: Int32Array, size: number, key: Int32Array, keyAt: number, flags: number): void {
    const before = size <= 64 ? 0 : (size - 1) >>> 6;
    if (before > 0) compress(words, 0, before, 64, key, keyAt, flags, CHUNK_START, 0, 0, 0, node, BLOCK_WORDS, 8);
    root.words = words;
    root.at = before * BLOCK_WORDS;
    root.length = size - before * 64;
    root.cv = before > 0 ? node : key;
    root.cvAt = before > 0 ? BLOCK_WORDS : keyAt;
    root.flags = flags | CHUNK_END | ROOT | (before > 0 ? 0 : CHUNK_START);
  }

  /** Zeroes what stands in `words` behind `size` bytes, to the end of the block. Words are in little-endian order. */
  function pad(words: Int32Array, size: number): void {
    const end = size === 0 ? BLOCK_WORDS : ((size + 63) >>> 6) * BLOCK_WORDS;
    let i = size >>> 2;
    if ((size & 3) !== 0) words[i++]! &= (1 << ((size & 3) * 8)) - 1;
    while (i < end) words[i++] = 0;
  }

  /** At most one chunk, in one call of the compression function where 32 bytes are wanted. */
  function hashChunk(data: Uint8Array, size: number, key: Int32Array, flags: number, length: number): Uint8Array {
    scratchBytes.set(data);
    order(scratch, 0, (size + 3) >>> 2);
    pad(scratch, size);
    if (length !== 32) {
      rootOfChunk(scratch, size, key, 0, flags);
      const out = allocate(length);
      output(root, 0, 0, out);
      return out;
    }
    const blocks = size <= 64 ? 1 : (size + 63) >>> 6;
    const last = size - (blocks - 1) * 64;
    compress(scratch, 0, blocks, last, key, 0, flags, CHUNK_START, CHUNK_END | ROOT, 0, 0, digest, 0, 8);
    return digestOf(digest, 0);
  }

  class PureState implements State {
    readonly #words = new Int32Array(STATE_WORDS);
    /** The unfinished chunk: its bytes as they came, which on a big-endian machine are not yet words. */
    readonly #bytes = new Uint8Array(this.#words.buffer, 0, CHUNK_LEN);
    #mode: Mode = HASH;
    #flags = 0;
    /** Bytes of the unfinished chunk. */
    #held = 0;
    /** Chaining values on the stack. */
    #depth = 0;
    // Finished chunks, and the chunks before the first one, as halves of 64-bit numbers.
    #chunksLo = 0;
    #chunksHi = 0;
    #offsetLo = 0;
    #offsetHi = 0;

    begin(mode: Mode, key: Int32Array): this {
      this.#mode = mode;
      this.#flags = MODE_FLAGS[mode];
      this.#words.set(key, KEY);
      this.reset();
      return this;
    }

    restore({ mode, offset, count, key, values, tail }: Saved): this {
      this.begin(mode, keyWords(key));
      const chunks = values.length === 0 ? 0n : count >> 10n;
      this.#chunksLo = Number(BigInt.asIntN(32, chunks));
      this.#chunksHi = Number(chunks >> 32n);
      this.#offsetLo = Number(BigInt.asIntN(32, offset >> 10n));
      this.#offsetHi = Number(offset >> 42n);
      this.#depth = values.length / 32;
      new Uint8Array(this.#words.buffer, STACK * 4).set(values);
      order(this.#words, STACK, STACK + this.#depth * CV_WORDS);
      this.#bytes.set(tail);
      this.#held = tail.length;
      return this;
    }

    reset(): void {
      this.#held = this.#depth = this.#chunksLo = this.#chunksHi = this.#offsetLo = this.#offsetHi = 0;
    }

    clone(): PureState {
      const copy = new PureState();
      copy.#words.set(this.#words);
      copy.#mode = this.#mode;
      copy.#flags = this.#flags;
      copy.#held = this.#held;
      copy.#depth = this.#depth;
      copy.#chunksLo = this.#chunksLo;
      copy.#chunksHi = this.#chunksHi;
      copy.#offsetLo = this.#offsetLo;
      copy.#offsetHi = this.#offsetHi;
      return copy;
    }

    /** Forgets everything, the key too. */
    wipe(): void {
      this.#words.fill(0);
      this.reset();
    }

    update(data: Uint8Array): void {
      const size = sizeOf(data);
      if (size === 0) return;
      // A restored stack may end with the two halves of a subtree that, as more input follows, is not the root.
      if (this.#held === 0 && this.#depth > 1 && (this.#chunksLo & 1) === 0) this.#merge();
      // A full chunk waits for more input: it may be the root.
      const room = CHUNK_LEN - this.#held;
      if (size <= room) {
        this.#bytes.set(data, this.#held);
        this.#held += size;
        return;
      }
      let at = 0;
      if (this.#held > 0) {
        this.#bytes.set(part(data, 0, room), this.#held);
        at = room;
        order(this.#words, 0, KEY);
        this.#absorb(this.#words, 1);
      }
      at = this.#absorbChunks(data, at, (size - at - 1) >>> 10);
      this.#bytes.set(at === 0 ? data : part(data, at, size));
      this.#held = size - at;
    }

    /** Absorbs `count` whole chunks, which more input follows; returns where they end. */
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
        for (let c = this.#chunksLo, above = this.#chunksHi; (c & 1) === 0; ) {
          this.#merge();
          c = (c >>> 1) | (above << 31);
          above >>>= 1;
        }
      }
    }

    /** Puts the chaining value of a whole chunk on the stack. */
    #push(words: Int32Array, at: number): void {
      this.#value(words, at, CHUNK_LEN, this.#words, STACK + this.#depth * CV_WORDS);
      this.#depth++;
      this.#chunksLo = (this.#chunksLo + 1) | 0;
      if (this.#chunksLo === 0) this.#chunksHi++;
    }

    /** The chaining value of the next chunk, which has `size` bytes. */
    #value(words: Int32Array, at: number, size: number, out: Int32Array, outAt: number): void {
      const lo = (this.#offsetLo + this.#chunksLo) | 0;
      const hi = this.#offsetHi + this.#chunksHi + (lo >>> 0 < this.#offsetLo >>> 0 ? 1 : 0);
      const blocks = (size + 63) >>> 6;
      const last = size - (blocks - 1) * 64;
      compress(words, at, blocks, last, this.#words, KEY, this.#flags, CHUNK_START, CHUNK_END, lo, hi, out, outAt, 8);
    }

    /** Replaces the two highest chaining values of the stack by their parent's. */
    #merge(): void {
      const own = this.#words;
      const to = STACK + (this.#depth - 2) * CV_WORDS;
      compress(own, to, 1, 64, own, KEY, this.#flags | PARENT, 0, 0, 0, 0, own, to, 8);
      this.#depth--;
    }

    digest(out: Uint8Array): void {
      this.#findRoot();
      output(root, 0, 0, out);
    }

    root(): Root {
      this.#findRoot();
      const own = new Int32Array(BLOCK_WORDS + CV_WORDS);
      own.set(root.words.subarray(root.at, root.at + BLOCK_WORDS));
      own.set(root.cv.subarray(root.cvAt, root.cvAt + CV_WORDS), BLOCK_WORDS);
      const kept: Node = { ...root, words: own, at: 0, cv: own, cvAt: BLOCK_WORDS };
      return { read: (lo, hi, out) => output(kept, lo, hi, out) };
    }

    #findRoot(): void {
      if (this.#depth > 0) return this.#rootOfStack();
      this.#unfinished();
      rootOfChunk(scratch, this.#held, this.#words, KEY, this.#flags);
    }

    /** Puts the unfinished chunk into the scratch memory as words, followed by zeros. */
    #unfinished(): void {
      scratchBytes.set(this.#bytes);
      order(scratch, 0, KEY);
      pad(scratch, this.#held);
    }

    /** Sets the root to the parent of all that is on the stack, and of the unfinished chunk if there is one. */
    #rootOfStack(): void {
      const own = this.#words;
      const copy = (value: number, to: number) => {
        const from = STACK + value * CV_WORDS;
        node.set(own.subarray(from, from + CV_WORDS), to);
      };
      let next = this.#depth;
      if (this.#held > 0) {
        this.#unfinished();
        this.#value(scratch, 0, this.#held, node, CV_WORDS);
      } else {
        copy(--next, CV_WORDS);
      }
      copy(--next, 0);
      while (next > 0) {
        compress(node, 0, 1, 64, own, KEY, this.#flags | PARENT, 0, 0, 0, 0, node, CV_WORDS, 8);
        copy(--next, 0);
      }
      Object.assign(root, { words: node, at: 0, length: 64, cv: own, cvAt: KEY, flags: this.#flags | PARENT | ROOT });
    }

    save(): Uint8Array {
      if (this.#held === CHUNK_LEN && this.#depth > 0) return this.clone().#settle().save();
      const values = Int32Array.from(this.#words.subarray(STACK, STACK + this.#depth * CV_WORDS));
      const key = Int32Array.from(this.#words.subarray(KEY, STACK));
      order(values, 0, values.length);
      order(key, 0, CV_WORDS);
      const wide = (lo: number, hi: number) => (BigInt(hi) << 42n) | (BigInt(lo >>> 0) << 10n);
      return formatState({
        mode: this.#mode,
        offset: wide(this.#offsetLo, this.#offsetHi),
        count: wide(this.#chunksLo, this.#chunksHi) + BigInt(this.#held),
        key: new Uint8Array(key.buffer),
        values: new Uint8Array(values.buffer),
        tail: this.#bytes.subarray(0, this.#held),
      });
    }

    /** Finishes a full chunk that may be the last one: the highest subtree stays as its two halves. */
    #settle(): this {
      order(this.#words, 0, KEY);
      this.#push(this.#words, 0);
      this.#held = 0;
      for (let c = this.#chunksLo, above = this.#chunksHi; (c & 3) === 0; ) {
        this.#merge();
        c = (c >>> 1) | (above << 31);
        above >>>= 1;
      }
      return this;
    }
  }

  // Long inputs of one-shot calls.
  const whole = new PureState();

  function hashWhole(mode: Mode, key: Int32Array, data: Uint8Array, length: number): Uint8Array {
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
    hash: (data, length) => hashWhole(HASH, ivWords, data, length),
    hashKeyed: (mode, key, data, length) => hashWhole(mode, keyWords(key), data, length),
    contextKey(context) {
      const size = sizeOf(context);
      if (size <= CHUNK_LEN) return hashChunk(context, size, ivWords, DERIVE_KEY_CONTEXT, 32);
      const out = new Uint8Array(32);
      const state = new PureState().begin(HASH, ivWords);
      state.update(context);
      state.digest(out);
      return out;
    },
    hashMany: (inputs) => inputs.map((input) => hashWhole(HASH, ivWords, input, 32)),
    open: (mode, key) => new PureState().begin(mode, key === undefined ? ivWords : keyWords(key)),
    restore: (saved) => new PureState().restore(saved),
  };
}

/** A key of 32 bytes as words. */
function keyWords(key: Uint8Array): Int32Array {
  const words = new Int32Array(CV_WORDS);
  new Uint8Array(words.buffer).set(key);
  order(words, 0, CV_WORDS);
  return words;
}
