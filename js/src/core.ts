import type { Saved } from "./state.js";

/** The names of the cores, as in `kernel()` and `BULLA_BLAKE3_FORCE_KERNEL`. */
export type Kernel = "portable" | "wasm32/simd128";

/** The three modes, by their number in a saved state (`spec/blake3-state.md`). */
export type Mode = 0 | 1 | 2;
export const HASH = 0;
export const KEYED = 1;
export const DERIVE = 2;

/**
 * One implementation of BLAKE3 under the API. Its callers have checked the arguments: keys have 32
 * bytes (for {@link DERIVE} the context key), saved states are well-formed, views have memory.
 */
export interface Core {
  readonly kernel: Kernel;
  /** The plain hash. */
  hash(data: Uint8Array, length: number): Uint8Array<ArrayBuffer>;
  /** The keyed hash, or the second stage of key derivation. */
  hashKeyed(mode: 1 | 2, key: Uint8Array, data: Uint8Array, length: number): Uint8Array<ArrayBuffer>;
  /** The context key of key derivation with this context. */
  contextKey(context: Uint8Array): Uint8Array<ArrayBuffer>;
  /** The plain hashes of many inputs, 32 bytes each. */
  hashMany(inputs: readonly Uint8Array[]): Uint8Array<ArrayBuffer>[];
  /** A new incremental hash. `key` is given unless `mode` is {@link HASH}. */
  open(mode: Mode, key: Uint8Array | undefined): HasherState;
  /** An incremental hash from a saved state. */
  restore(saved: Saved): HasherState;
}

/** An incremental hash. */
export interface HasherState {
  update(data: Uint8Array): void;
  /** Fills `out` with output from the beginning on. More input may follow. */
  digest(out: Uint8Array): void;
  /** The root of everything absorbed so far, for its output. More input may follow. */
  root(): Root;
  /** Resets to no input, in the same mode and under the same key, at input offset 0. */
  reset(): void;
  clone(): HasherState;
  /** The bytes of `spec/blake3-state.md`. */
  save(): Uint8Array<ArrayBuffer>;
}

/** The source of output. */
export interface Root {
  /** Fills `out` with output from position `hi * 2^32 + lo` on. */
  read(lo: number, hi: number, out: Uint8Array): void;
}
