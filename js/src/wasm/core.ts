// BLAKE3 by the WebAssembly module of crates/wasm, which computes four lanes at a time.

import { HASH } from "../core.js";
import type { Core, Mode, Root, HasherState } from "../core.js";
import { plainError } from "../errors.js";
import { part, sizeOf } from "../input.js";
import { allocate } from "../options.js";
import { createPureCore } from "../pure/core.js";
import { digestOf } from "../pure/words.js";
import { formatState } from "../state.js";
import type { Saved } from "../state.js";
import type { Exports } from "./exports.js";

/** The number of bytes up to which storing them one by one is faster than a call of `set`. */
const MAX_BYTES_STORED_SINGLY = 32;

/**
 * If a hasher that must make room holds more bytes than this, it absorbs them instead of copying
 * them.
 */
const WORTH_COPYING = 8192;

/** Bytes of a chunk: a leaf of the tree. */
const CHUNK = 1024;

/** The core of an instance of the module. */
export function coreOf({ exports }: WebAssembly.Instance): Core {
  const wasm = exports as unknown as Exports;
  // A variable for the function that short inputs call: the compiler calls it directly, but not
  // through the object.
  const { hash: hashOnce } = wasm;
  const memory = wasm.memory.buffer;
  const area = (at: number, length: number) => new Uint8Array(memory, at, length);
  const input = area(wasm.input(), wasm.input_len());
  const buffer = area(wasm.buffer(), wasm.buffer_len());
  const key = area(wasm.key_ptr(), 32);
  const out = area(wasm.out_ptr(), wasm.out_len());
  const outWords = new Int32Array(memory, wasm.out_ptr(), wasm.out_len() >> 2);
  const stateArea = area(wasm.state_ptr(), wasm.state_len());
  const readerArea = area(wasm.reader_ptr(), wasm.reader_len());
  const INPUT = input.length;
  const BUFFER = buffer.length;
  const OUT = out.length;

  /** The hasher, and the reader, that are currently in the module. */
  let here: WasmState | undefined;
  let reading: WasmRoot | undefined;

  class WasmState implements HasherState {
    readonly #mode: Mode;
    readonly #key: Uint8Array | undefined;
    /** The number of bytes in the buffer that are not absorbed yet. */
    #held = 0;
    /** Whether the module has a state of it. Until then, all its input is in the buffer. */
    #begun = false;
    // The hasher's content of the module, while another hasher is there.
    #heldAway: Uint8Array | undefined;
    #stateAway: Uint8Array | undefined;

    constructor(mode: Mode, key: Uint8Array | undefined) {
      this.#mode = mode;
      this.#key = key;
    }

    static restored(saved: Saved): WasmState {
      const state = new WasmState(saved.mode, saved.mode === HASH ? undefined : saved.key);
      const bytes = formatState(saved);
      state.#enter();
      input.set(bytes);
      const held = wasm.restore(bytes.length);
      if (held < 0) throw plainError("ERR_STATE_LENGTH", `the module refuses the saved state (${held})`);
      input.fill(0, 0, bytes.length);
      state.#begun = true;
      state.#held = held;
      return state;
    }

    update(data: Uint8Array): void {
      if (here !== this) this.#enter();
      const size = sizeOf(data);
      let room = BUFFER - this.#held;
      if (size <= room) {
        buffer.set(data, this.#held);
        this.#held += size;
        return;
      }
      let at = 0;
      for (; size - at > room; room = BUFFER) {
        buffer.set(part(data, at, at + room), this.#held);
        at += room;
        this.#absorb(BUFFER);
        this.#held = 0;
      }
      buffer.set(part(data, at, size));
      this.#held = size - at;
    }

    digest(to: Uint8Array): void {
      if (sizeOf(to) > OUT) return this.root().read(0, 0, to);
      if (here !== this) this.#enter();
      if (this.#begun) {
        wasm.finalize(this.#held, sizeOf(to));
      } else {
        this.#withKey(() => wasm.hash_of(this.#mode, this.#held, sizeOf(to)));
      }
      to.set(out.subarray(0, sizeOf(to)));
      if (this.#mode !== HASH) out.fill(0, 0, sizeOf(to));
    }

    root(): Root {
      if (here !== this) this.#enter();
      if (this.#begun) {
        wasm.root(this.#held);
      } else {
        this.#withKey(() => wasm.root_of(this.#mode, this.#held));
      }
      return new WasmRoot();
    }

    reset(): void {
      this.#held = 0;
      this.#begun = false;
      this.#heldAway = this.#stateAway = undefined;
    }

    clone(): HasherState {
      const copy = new WasmState(this.#mode, this.#key);
      if (here === this) this.#leave();
      copy.#begun = this.#begun;
      copy.#held = this.#held;
      copy.#heldAway = this.#heldAway?.slice();
      copy.#stateAway = this.#stateAway?.slice();
      return copy;
    }

    save(): Uint8Array<ArrayBuffer> {
      if (here !== this) this.#enter();
      let size = 0;
      if (this.#begun) {
        size = wasm.save(this.#held);
      } else {
        this.#withKey(() => (size = wasm.save_of(this.#mode, this.#held)));
      }
      const saved = out.slice(0, size);
      out.fill(0, 0, size);
      return saved;
    }

    /** Leaves the module for good, without leaving secrets in it. */
    close(): void {
      if (here !== this) return;
      here = undefined;
      if (this.#mode === HASH) return;
      stateArea.fill(0);
      buffer.fill(0);
    }

    /** Absorbs the first bytes of the buffer: whole chunks, and not the only one. */
    #absorb(size: number): void {
      if (!this.#begun) {
        this.#withKey(() => wasm.begin(this.#mode));
        this.#begun = true;
      }
      wasm.update(size);
    }

    #withKey(call: () => void): void {
      if (this.#key === undefined) return call();
      key.set(this.#key);
      call();
      key.fill(0);
    }

    /** Makes this the hasher in the module. */
    #enter(): void {
      if (here !== undefined) here.#leave();
      here = this;
      if (this.#stateAway !== undefined) stateArea.set(this.#stateAway);
      if (this.#heldAway !== undefined) buffer.set(this.#heldAway);
      this.#stateAway = this.#heldAway = undefined;
    }

    /** Copies this one's content out of the module. */
    #leave(): void {
      if (this.#held > WORTH_COPYING) {
        const whole = this.#held - (this.#held % CHUNK);
        this.#absorb(whole);
        buffer.copyWithin(0, whole, this.#held);
        this.#held -= whole;
      }
      if (this.#begun) this.#stateAway = stateArea.slice();
      if (this.#held > 0) this.#heldAway = buffer.slice(0, this.#held);
      here = undefined;
    }
  }

  /** The reader that was made last, and its bytes. */
  class WasmRoot implements Root {
    readonly #bytes = readerArea.slice();

    constructor() {
      reading = this;
    }

    read(lo: number, hi: number, to: Uint8Array): void {
      if (reading !== this) {
        readerArea.set(this.#bytes);
        reading = this;
      }
      const size = sizeOf(to);
      for (let done = 0; done < size; ) {
        const now = Math.min(OUT, size - done);
        wasm.read(lo, hi, now);
        to.set(out.subarray(0, now), done);
        done += now;
        const next = (lo >>> 0) + now;
        lo = next | 0;
        hi = (hi + Math.floor(next / 2 ** 32)) | 0;
      }
    }
  }

  /** Puts an input of at most `INPUT` bytes at `at` of the area for it. */
  function put(data: Uint8Array, size: number, at: number): void {
    if (size > MAX_BYTES_STORED_SINGLY) return input.set(data, at);
    for (let i = 0; i < size; i++) input[at + i] = data[i]!;
  }

  /** The module's output: `length` <= `OUT` bytes. */
  function take(length: number): Uint8Array<ArrayBuffer> {
    return length === 32 ? digestOf(outWords, 0) : out.slice(0, length);
  }

  /** Hashes any input to any length of output, by a separate hasher. */
  function hashWhole(state: WasmState, data: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
    const whole = allocate(length);
    state.update(data);
    state.digest(whole);
    state.close();
    return whole;
  }

  function hash(data: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
    const size = sizeOf(data);
    if (size > INPUT || length > OUT) return hashWhole(new WasmState(HASH, undefined), data, length);
    put(data, size, 0);
    hashOnce(size, length);
    return take(length);
  }

  function hashKeyed(mode: 1 | 2, secret: Uint8Array, data: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
    const size = sizeOf(data);
    if (size > INPUT || length > OUT) return hashWhole(new WasmState(mode, secret), data, length);
    key.set(secret);
    put(data, size, 0);
    wasm.hash_keyed(mode, size, length);
    const digest = take(length);
    key.fill(0);
    input.fill(0, 0, size);
    out.fill(0, 0, length);
    return digest;
  }

  function contextKey(context: Uint8Array): Uint8Array<ArrayBuffer> {
    const size = sizeOf(context);
    // Such a long context is a misuse of key derivation, so the pure core may take its time.
    if (size > INPUT) return createPureCore().contextKey(context);
    put(context, size, 0);
    wasm.context_key(size);
    const derived = key.slice();
    key.fill(0);
    return derived;
  }

  /**
   * Hashes as many inputs of one length from the `from`-th on as fit into the module at once;
   * returns where it stopped.
   */
  function hashSome(inputs: readonly Uint8Array[], from: number, digests: Uint8Array<ArrayBuffer>[]): number {
    const size = sizeOf(inputs[from]!);
    const fit = size > CHUNK ? 1 : Math.min(OUT >> 5, Math.floor(INPUT / Math.max(size, 1)));
    const most = Math.min(inputs.length, from + fit);
    let to = from + 1;
    while (to < most && sizeOf(inputs[to]!) === size) to++;
    if (to === from + 1) {
      digests.push(hash(inputs[from]!, 32));
      return to;
    }
    for (let i = from; i < to; i++) put(inputs[i]!, size, size * (i - from));
    wasm.many(to - from, size);
    for (let i = from; i < to; i++) digests.push(digestOf(outWords, 8 * (i - from)));
    return to;
  }

  return {
    kernel: "wasm32/simd128",
    hash,
    hashKeyed,
    contextKey,
    hashMany(inputs) {
      const digests: Uint8Array<ArrayBuffer>[] = [];
      for (let next = 0; next < inputs.length; ) next = hashSome(inputs, next, digests);
      return digests;
    },
    open: (mode, secret) => new WasmState(mode, secret),
    restore: (saved) => WasmState.restored(saved),
  };
}
