/**
 * The exports of the module of `crates/wasm`. Its memory has a fixed size. It has two areas for
 * input: `input` for one-shot calls, `buffer` for the one hasher that is in the module, so that
 * neither disturbs the other. All positions are byte offsets in the memory; a mode is its number in
 * a saved state, and modes 1 and 2 take 32 bytes of key at `key_ptr`.
 */
export interface Exports {
  memory: WebAssembly.Memory;
  input(): number;
  input_len(): number;
  buffer(): number;
  buffer_len(): number;
  key_ptr(): number;
  out_ptr(): number;
  out_len(): number;

  /** Plain hash of the first bytes of `input`. */
  hash(length: number, outLength: number): void;
  /** The same in any mode. */
  hash_keyed(mode: number, length: number, outLength: number): void;
  /** The same for the first bytes of `buffer`. */
  hash_of(mode: number, length: number, outLength: number): void;
  /** Writes the key of the context in `input` to `key_ptr`. */
  context_key(length: number): void;
  /** 32-byte hashes of `count` inputs of one length, at most 1024 bytes, end to end in `input`. */
  many(count: number, length: number): void;

  /** Makes the hasher in the module a new one. */
  begin(mode: number): void;
  /**
   * The hasher absorbs the first bytes of `buffer`: whole chunks. A single chunk must not be the
   * whole input.
   */
  update(length: number): void;
  /**
   * Its digest, with the first `held` bytes of `buffer` after the absorbed input. Neither changes.
   */
  finalize(held: number, outLength: number): void;
  /** The hasher's position: opaque bytes that may be copied out and back. */
  state_ptr(): number;
  state_len(): number;
  /**
   * Writes its saved state, with the first `held` bytes of `buffer`, to `out_ptr`; returns the
   * length.
   */
  save(held: number): number;
  /** The same for a hasher that has absorbed nothing. */
  save_of(mode: number, held: number): number;
  /**
   * Restores the hasher from the saved state in the first bytes of `input`. Returns how many bytes
   * of input it put into `buffer`, or a negative error code.
   */
  restore(length: number): number;

  /** Makes a reader of the hasher's output with the first `held` bytes of `buffer`. */
  root(held: number): void;
  /** Makes a reader of the output of the first bytes of `buffer`. */
  root_of(mode: number, length: number): void;
  /** Output from a position on. */
  read(lo: number, hi: number, length: number): void;
  /** The reader's position: opaque bytes that may be copied out and back. */
  reader_ptr(): number;
  reader_len(): number;
}
