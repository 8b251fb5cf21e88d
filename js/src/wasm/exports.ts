/**
 * What the module of `crates/wasm` exports. Its memory has a fixed size. It has two areas for input: `input` for calls that do it
 * all at once, `buffer` for the one hasher that is in the module, so that neither disturbs the other. All positions are byte
 * offsets in the memory; a mode is its number in a saved state, and modes 1 and 2 take 32 bytes of key at `key_ptr`.
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
  /** The same of the first bytes of `buffer`. */
  hash_of(mode: number, length: number, outLength: number): void;
  /** The key of the context in `input`, to `key_ptr`. */
  context_key(length: number): void;
  /** 32-byte hashes of `count` inputs of one length, end to end in `input`. */
  many(count: number, length: number): void;
  /** The same for inputs of any lengths: `input` begins with `count` lengths as 32-bit words. */
  many_mixed(count: number): void;

  /** Makes the hasher in the module a new one. */
  begin(mode: number): void;
  /** It absorbs the first bytes of `buffer`. */
  update(length: number): void;
  /** Its digest; it stays as it is. */
  finalize(outLength: number): void;
  /** Where it lies: opaque bytes that may be taken out and put back. */
  state_ptr(): number;
  state_len(): number;
  /** Writes its saved state to `out_ptr`; returns the length. */
  save(): number;
  /** Makes it the one whose saved state is the first bytes of `input`; returns 0, or what is wrong. */
  restore(length: number): number;

  /** Makes a reader of the hasher's output. */
  root(): void;
  /** Makes a reader of the output of the first bytes of `buffer`. */
  root_of(mode: number, length: number): void;
  /** Output from a position on. */
  read(lo: number, hi: number, length: number): void;
  /** Where the reader lies: opaque bytes that may be taken out and put back. */
  reader_ptr(): number;
  reader_len(): number;
}
