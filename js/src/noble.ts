/**
 * The call shapes of `@noble/hashes/blake3.js`, over the cores of this package: change the import
 * and nothing else.
 *
 * @module
 */

import { kindError, plainError, rangeError, typeError } from "./errors.js";
import { openHasher } from "./hasher.js";
import type { Hasher, OutputReader } from "./hasher.js";
import { bytesOf, isBytes, sizeOf } from "./input.js";
import { core } from "./kernel.js";
import { allocate, checkLength } from "./options.js";

/** Mode and length of the output. */
export interface Blake3Opts {
  /** Bytes of output; 32 by default. */
  dkLen?: number | undefined;
  /** 32 bytes: a keyed hash. */
  key?: Uint8Array | undefined;
  /** Key derivation: the purpose of the key. */
  context?: Uint8Array | string | undefined;
}

/** An incremental hash that ends with its digest, like noble's. */
export class BLAKE3 {
  readonly blockLen = 64;
  readonly canXOF = true;
  outputLen: number;
  #hasher: Hasher | undefined;
  #reader: OutputReader | undefined;
  #hasDigest = false;

  constructor(opts?: Blake3Opts) {
    const { dkLen = 32, key, context } = ownOptions(opts);
    this.outputLen = checkLength(dkLen);
    if (key !== undefined && context !== undefined) throw plainError("ERR_OPTIONS", 'cannot use both "key" and "context"');
    if (key !== undefined) requireBytes("key", key);
    if (context !== undefined) requireBytesOrText("context", context);
    this.#hasher = openHasher(core(), key, context);
  }

  /** Absorbs bytes, or text as UTF-8, which noble's version 1 accepts and version 2 does not. */
  update(data: Uint8Array | string): this {
    const hasher = this.#live();
    if (this.#reader !== undefined) throw ended();
    hasher.update(requireBytesOrText("data", data));
    return this;
  }

  /** The digest. Only `clone` and `destroy` may follow. */
  digest(): Uint8Array<ArrayBuffer> {
    const out = allocate(this.outputLen);
    this.digestInto(out);
    return out;
  }

  /** Writes the digest to the beginning of `out`. */
  digestInto(out: Uint8Array): void {
    const target = bytesOf(requireBytes("output", out));
    if (sizeOf(target) < this.outputLen) {
      throw rangeError("ERR_LENGTH", `"output" expected length >= ${this.outputLen}`);
    }
    const hasher = this.#live();
    if (this.#reader !== undefined) throw ended();
    target.set(hasher.digest("bytes", { length: this.outputLen }));
    this.#hasDigest = true;
    this.destroy();
  }

  /** The next bytes of output. More output may follow, but no more input. */
  xof(bytes: number): Uint8Array<ArrayBuffer> {
    return this.xofInto(allocate(checkLength(bytes)));
  }

  /** Fills `out` with the next bytes of output. */
  xofInto<T extends Uint8Array>(out: T): T {
    return this.#output().readInto(requireBytes("output", out));
  }

  /** Ends this hash. */
  destroy(): void {
    this.#hasher = this.#reader = undefined;
  }

  clone(): BLAKE3 {
    return this._cloneInto();
  }

  /** Copies this hash into `to`, or into a new one. */
  _cloneInto(to?: BLAKE3): BLAKE3 {
    to ||= new BLAKE3();
    if (!(to instanceof BLAKE3)) throw kindError("ERR_DATA_TYPE", '"to" expected BLAKE3', to);
    to.outputLen = this.outputLen;
    to.#hasher = this.#hasher?.clone();
    to.#reader = undefined;
    to.#hasDigest = this.#hasDigest;
    if (this.#reader !== undefined && this.#hasher !== undefined) {
      to.#reader = to.#hasher!.xof().seek(this.#reader.position);
    }
    return to;
  }

  #output(): OutputReader {
    if (this.#hasDigest) throw plainError("ERR_FINISHED", "no XOF after digest()");
    return (this.#reader ??= this.#live().xof());
  }

  #live(): Hasher {
    if (this.#hasher !== undefined) return this.#hasher;
    throw this.#hasDigest ? ended() : plainError("ERR_FINISHED", "hash was destroyed");
  }
}

function ended() {
  return plainError("ERR_FINISHED", "digest() was already called");
}

/**
 * The options as noble reads them: it ignores unknown ones and inherited ones, and refuses an
 * object that is not plain.
 */
function ownOptions(opts: Blake3Opts | undefined): Blake3Opts {
  if (opts !== undefined) {
    const prototype = Object.getPrototypeOf(opts ?? 0);
    if (prototype !== null && prototype !== Object.prototype) throw typeError("ERR_OPTIONS", '"opts" expected plain object');
    if (Object.hasOwn(opts, "__proto__")) throw typeError("ERR_OPTIONS", '"opts.__proto__" is not allowed');
  }
  return Object.assign(Object.create(null), opts);
}

/** `value`, if it is a `Uint8Array` of any realm: noble takes no other view. */
function requireBytes<T>(name: string, value: T): T {
  if (isBytes(value)) return value;
  throw kindError(name === "key" ? "ERR_KEY" : "ERR_DATA_TYPE", `"${name}" expected Uint8Array`, value);
}

function requireBytesOrText<T>(name: string, value: T): T {
  return typeof value === "string" ? value : requireBytes(name, value);
}

/** noble's `blake3`: a hash function with properties. */
export interface Blake3 {
  (msg: Uint8Array | string, opts?: Blake3Opts): Uint8Array<ArrayBuffer>;
  create(opts?: Blake3Opts): BLAKE3;
  outputLen: number;
  blockLen: number;
  canXOF: boolean;
}

/** BLAKE3: hash, keyed hash with `key`, key derivation with `context`. */
export const blake3: Blake3 = /* @__PURE__ */ Object.freeze(
  /* @__PURE__ */ Object.assign((msg: Uint8Array | string, opts?: Blake3Opts) => digestOf(msg, opts), {
    create: (opts?: Blake3Opts) => new BLAKE3(opts),
    outputLen: 32,
    blockLen: 64,
    canXOF: true,
  }),
);

function digestOf(msg: Uint8Array | string, opts: Blake3Opts | undefined): Uint8Array<ArrayBuffer> {
  if (opts === undefined) return core().hash(bytesOf(requireBytesOrText("data", msg)), 32);
  return new BLAKE3(opts).update(msg).digest();
}

export { BLAKE3 as _BLAKE3 };
