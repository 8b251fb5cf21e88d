import { kindError, rangeError, typeError } from "./errors.js";

/** How long the output is to be. */
export interface OutputOptions {
  /** Bytes of output: 32 unless said otherwise. */
  length?: number | undefined;
}

/** Bytes of a digest. */
export const OUT_LEN = 32;

/**
 * A copy of the options given, which inherits nothing: what a program put on `Object.prototype` is not an option.
 *
 * @param names - the options that the call takes
 * @throws TypeError (`ERR_OPTIONS`) for any other option, since a mistyped `key` must not leave a hash without its key; and for an object
 *   that inherits from anything but the `Object.prototype` of some realm, since the copy would lack what it inherits
 */
export function optionsOf<T extends object>(options: T | undefined, ...names: (keyof T)[]): Partial<T> {
  const own = Object.create(null) as Partial<T>;
  if (options === undefined) return own;
  // Numbers, strings and functions inherit from something else; null is asked as a number.
  const prototype = Object.getPrototypeOf(options ?? 0);
  if (prototype !== null && !Object.hasOwn(prototype, "isPrototypeOf")) {
    throw typeError("ERR_OPTIONS", "options must be a plain object");
  }
  for (const name of Reflect.ownKeys(options) as (keyof T)[]) {
    if (!names.includes(name)) {
      throw typeError("ERR_OPTIONS", `unknown option "${String(name)}": this call takes ${names.join(", ")}`);
    }
    own[name] = options[name];
  }
  return own;
}

/** The length that `options` ask for. */
export function outputLength(options: OutputOptions | undefined): number {
  return lengthOf(optionsOf(options, "length"));
}

/** The length that checked options ask for. */
export function lengthOf({ length = OUT_LEN }: OutputOptions): number {
  return checkLength(length);
}

/** `length` if output can be that long. */
export function checkLength(length: number): number {
  if (typeof length !== "number") {
    throw kindError("ERR_LENGTH", "length must be a number", length);
  }
  if (!Number.isSafeInteger(length) || length < 0) {
    throw rangeError("ERR_LENGTH", `length must be a whole number, 0 or more, not ${length}`);
  }
  return length;
}

/** Memory for output. */
export function allocate(length: number): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(length);
  } catch {
    throw rangeError("ERR_LENGTH", `no memory for ${length} bytes: see xof()`);
  }
}
