import type { Saved } from "./state.js";

/** The names of the cores, as `kernel()` and `BULLA_BLAKE3_FORCE_KERNEL` have them. */
export type Kernel = "portable" | "wasm32/simd128";

/** The three modes, by their number in a saved state (`spec/blake3-state.md`). */
export type Mode = 0 | 1 | 2;
export const HASH = 0;
export const KEYED = 1;
export const DERIVE = 2;

/**
 * One implementation of BLAKE3 under the API. Arguments are checked before they come here: keys have 32 bytes (for
 * {@link DERIVE} the context key), saved states are well-formed, views have memory.
 */
export interface Core {
  readonly kernel: Kernel;
  /** The plain hash. */
  hash(data: Uint8Array, length: number): Uint8Array<ArrayBuffer>;
  /** The keyed hash, or the second stage of key derivation. */
  hashKeyed(mode: 1 | 2, key: Uint8Array, data: Uint8Array, length: number): Uint8Array<ArrayBuffer>;
  /** The key that key derivation with this context begins from. */
  contextKey(context: Uint8Array): Uint8Array<ArrayBuffer>;
  /** The plain hashes of many inputs, 32 bytes each. */
  hashMany(inputs: readonly Uint8Array[]): Uint8Array<ArrayBuffer>[];
  /** A new incremental hash; `key` is there unless `mode` is {@link HASH}. */
  open(mode: Mode, key: Uint8Array | undefined): State;
  /** A saved state taken up again. */
  restore(saved: Saved): State;
}

/** An incremental hash. */
export interface State {
  update(data: Uint8Array): void;
  /** Fills `out` with output from the beginning on; absorbing may go on. */
  digest(out: Uint8Array): void;
  /** The root of all that was absorbed so far, for its output; absorbing may go on. */
  root(): Root;
  /** Back to no input in the same mode under the same key, at input offset 0. */
  reset(): void;
  clone(): State;
  /** The bytes of `spec/blake3-state.md`. */
  save(): Uint8Array<ArrayBuffer>;
}

/** What output is computed from. */
export interface Root {
  /** Fills `out` with output from position `hi * 2^32 + lo` on. */
  read(lo: number, hi: number, out: Uint8Array): void;
}
