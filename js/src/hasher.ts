import { DERIVE, HASH, KEYED } from "./core.js";
import type { Core, Root, HasherState } from "./core.js";
import { kindError, plainError, rangeError, typeError } from "./errors.js";
import { bytesOf, contextOf, keyOf, part, sizeOf } from "./input.js";
import type { Data } from "./input.js";
import { OUT_LEN, allocate, checkLength, optionsOf, outputLength } from "./options.js";
import type { OutputOptions } from "./options.js";
import { END, parseState, roomOf } from "./state.js";
import { checkText, textOf } from "./text.js";
import type { Encoding } from "./text.js";

/** The mode of a hasher. Without these options, it is plain hashing. */
export interface HasherOptions {
  /** 32 bytes: a keyed hash. */
  key?: ArrayBufferView | ArrayBufferLike | undefined;
  /**
   * A string that names the key's purpose: key derivation, with the updates as key material. See
   * `deriveKey`.
   */
  context?: string | ArrayBufferView | undefined;
}

/**
 * An incremental BLAKE3 hash. `createHasher` makes it. A digest may be taken at any time, and more
 * input may follow.
 */
export class Hasher {
  readonly #core: Core;
  #state: HasherState;
  /** The number of bytes that may still follow; infinite if a number cannot count them. */
  #room: number;
  /** Whether this is a part of a larger input, and has no root. */
  #isPart: boolean;

  /** Not for callers: see `createHasher`. */
  constructor(core: Core, state: HasherState, room = Infinity, isPart = false) {
    this.#core = core;
    this.#state = state;
    this.#room = room;
    this.#isPart = isPart;
  }

  /**
   * Absorbs data: text as UTF-8, or bytes under any view or buffer.
   *
   * @returns the hasher itself
   * @throws TypeError (`ERR_DATA_TYPE`, `ERR_DETACHED`) for anything else; RangeError
   * (`ERR_INPUT_TOO_LONG`) beyond 2^64 - 1 bytes, or beyond the subtree of a restored state. An
   * error does not change the hasher.
   */
  update(data: Data): this {
    const bytes = bytesOf(data);
    const size = sizeOf(bytes);
    if (size > this.#room) {
      throw rangeError("ERR_INPUT_TOO_LONG", `${size} bytes are too many: ${this.#room} are left`);
    }
    this.#room -= size;
    this.#state.update(bytes);
    return this;
  }

  /**
   * The digest of everything absorbed so far.
   *
   * @throws Error (`ERR_SUBTREE`) if the hasher was restored from the state of a subtree;
   * RangeError (`ERR_LENGTH`) if that much output does not fit into memory or into a string
   */
  digest(encoding?: "bytes", options?: OutputOptions): Uint8Array<ArrayBuffer>;
  digest(encoding: "hex" | "base64", options?: OutputOptions): string;
  digest(encoding?: Encoding, options?: OutputOptions): Uint8Array<ArrayBuffer> | string;
  digest(encoding: Encoding = "bytes", options?: OutputOptions): Uint8Array<ArrayBuffer> | string {
    const length = outputLength(options);
    checkText(encoding, length);
    const out = allocate(length);
    this.#requireRoot();
    this.#state.digest(out);
    return encoding === "bytes" ? out : textOf(encoding, out);
  }

  /** A reader of 2^64 - 1 bytes of output of everything absorbed so far. More input may follow. */
  xof(): OutputReader {
    this.#requireRoot();
    return new OutputReader(this.#state.root());
  }

  /** Resets to no input, in the same mode and under the same key. */
  reset(): this {
    this.#state.reset();
    this.#room = Infinity;
    this.#isPart = false;
    return this;
  }

  /** Another hasher in the same state. */
  clone(): Hasher {
    return new Hasher(this.#core, this.#state.clone(), this.#room, this.#isPart);
  }

  /**
   * The state, for {@link restore} here or in the project's Rust and Go packages.
   *
   * **It contains the key of a keyed hash and the last bytes of the input**: keep it as secret as
   * those.
   */
  save(): Uint8Array<ArrayBuffer> {
    return this.#state.save();
  }

  /**
   * Replaces the hasher's state by a saved state, with its mode and key.
   *
   * @throws StateError if `saved` is not exactly one saved state. An error does not change the
   * hasher.
   */
  restore(saved: ArrayBufferView | ArrayBufferLike): this {
    if (typeof saved === "string") throw kindError("ERR_DATA_TYPE", "a saved state must be bytes", saved);
    const parsed = parseState(bytesOf(saved));
    this.#state = this.#core.restore(parsed);
    // Not exact above 2^53, which is more than any program absorbs.
    this.#room = Number(roomOf(parsed.offset, parsed.count));
    this.#isPart = parsed.offset > 0n;
    return this;
  }

  #requireRoot(): void {
    if (this.#isPart) {
      throw plainError("ERR_SUBTREE", "part of an input has no digest, only save()");
    }
  }
}

/** Reads the extended output of a hash from any position. */
export class OutputReader {
  readonly #root: Root;
  #position = 0n;

  /** Not for callers: see {@link Hasher.xof}. */
  constructor(root: Root) {
    this.#root = root;
  }

  /** The position of the next read in bytes. */
  get position(): bigint {
    return this.#position;
  }

  /**
   * Moves to a position from 0 to 2^64 - 1.
   *
   * @throws TypeError, RangeError (`ERR_POSITION`) for anything else. An error does not move the
   * reader.
   */
  seek(position: number | bigint): this {
    if (typeof position !== "number" && typeof position !== "bigint") {
      throw kindError("ERR_POSITION", "a position must be a number or bigint", position);
    }
    if (position < 0 || position > END || (typeof position === "number" && !Number.isSafeInteger(position))) {
      throw rangeError("ERR_POSITION", `a position must be exact, from 0 to 2^64 - 1, not ${position}`);
    }
    this.#position = BigInt(position);
    return this;
  }

  /**
   * The next `length` bytes.
   *
   * @throws RangeError (`ERR_LENGTH`, or `ERR_POSITION` if fewer are left before 2^64 - 1)
   */
  read(length: number): Uint8Array<ArrayBuffer> {
    return this.readInto(allocate(checkLength(length)));
  }

  /**
   * Fills `target` with the next bytes and returns it.
   *
   * @throws TypeError (`ERR_DATA_TYPE`, `ERR_DETACHED`), RangeError (`ERR_POSITION` if fewer are
   * left before 2^64 - 1). An error changes neither the reader nor the target.
   */
  readInto<T extends ArrayBufferView>(target: T): T {
    if (!ArrayBuffer.isView(target)) throw kindError("ERR_DATA_TYPE", "output must be a view", target);
    const bytes = bytesOf(target);
    const size = sizeOf(bytes);
    const position = this.#position;
    if (BigInt(size) > END - position) {
      throw rangeError("ERR_POSITION", `only ${END - position} bytes are left, not ${size}`);
    }
    this.#root.read(Number(BigInt.asIntN(32, position)), Number(position >> 32n) | 0, part(bytes, 0, size));
    this.#position += BigInt(size);
    return target;
  }
}

/** `createHasher` on a core. */
export function createHasherWith(core: Core, options: HasherOptions | undefined): Hasher {
  return openHasher(core, ...optionsOf(options, "key", "context"));
}

/** Opens a hasher on a core, in the mode of the given options. */
export function openHasher(core: Core, key: HasherOptions["key"], context: HasherOptions["context"]): Hasher {
  if (key !== undefined && context !== undefined) {
    throw typeError("ERR_OPTIONS", "a key or a context, not both");
  }
  if (key !== undefined) return new Hasher(core, core.open(KEYED, keyOf(key)));
  if (context !== undefined) return new Hasher(core, core.open(DERIVE, core.contextKey(contextOf(context))));
  return new Hasher(core, core.open(HASH, undefined));
}

/** `hash` on a core. */
export function hashWith(core: Core, data: Data, options: OutputOptions | undefined): Uint8Array<ArrayBuffer> {
  const length = options === undefined ? OUT_LEN : outputLength(options);
  return core.hash(bytesOf(data), length);
}

/** `keyedHash` on a core. */
export function keyedHashWith(
  core: Core,
  key: ArrayBufferView | ArrayBufferLike,
  data: Data,
  options: OutputOptions | undefined,
): Uint8Array<ArrayBuffer> {
  const length = outputLength(options);
  return core.hashKeyed(KEYED, keyOf(key), bytesOf(data), length);
}

/** `deriveKey` on a core. */
export function deriveKeyWith(
  core: Core,
  context: string | ArrayBufferView,
  material: Data,
  options: OutputOptions | undefined,
): Uint8Array<ArrayBuffer> {
  const length = outputLength(options);
  return core.hashKeyed(DERIVE, core.contextKey(contextOf(context)), bytesOf(material), length);
}

/** `hashMany` on a core. */
export function hashManyWith(core: Core, inputs: Iterable<Data>): Uint8Array<ArrayBuffer>[] {
  if (typeof inputs === "string" || typeof inputs?.[Symbol.iterator] !== "function") {
    throw kindError("ERR_DATA_TYPE", "inputs must be a list", inputs);
  }
  const list: Uint8Array[] = [];
  // A loop: Array.from with a function takes longer than hashing a short input.
  for (const input of inputs) list.push(bytesOf(input));
  return core.hashMany(list);
}
