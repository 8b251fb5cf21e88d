import { kindError, rangeError, typeError } from "./errors.js";

/** The length of the output. */
export interface OutputOptions {
  /** Bytes of output; 32 by default. */
  length?: number | undefined;
}

/** Bytes of a digest. */
export const OUT_LEN = 32;

/** The values of some options, in the order of their names. */
type Values<T, Names extends readonly (keyof T)[]> = { [I in keyof Names]: T[Names[I]] | undefined };

/**
 * The values of the given options. Only the object's own properties count, because a property of
 * `Object.prototype` is not an option.
 *
 * @param names - the options that the call takes
 * @returns their values in a list: an object would inherit too, or take longer to make than hashing
 * a short input
 * @throws TypeError (`ERR_OPTIONS`) for any other option, because a mistyped `key` must not result
 * in a hash without its key; and for an
 *   object that inherits from anything except the `Object.prototype` of some realm, because an
 * inherited key would be lost
 */
export function optionsOf<T extends object, const Names extends readonly (keyof T)[]>(
  options: T | undefined,
  ...names: Names
): Values<T, Names> {
  if (options === undefined) return [] as unknown as Values<T, Names>;
  // Numbers, strings and functions inherit from something else. For null, ask a number instead.
  const prototype = Object.getPrototypeOf(options ?? 0);
  if (prototype !== null && !Object.hasOwn(prototype, "isPrototypeOf")) {
    throw typeError("ERR_OPTIONS", "options must be a plain object");
  }
  for (const name of Object.keys(options)) {
    if (!names.includes(name as keyof T)) {
      throw typeError("ERR_OPTIONS", `unknown option "${name}": this call takes ${names.join(", ")}`);
    }
  }
  return names.map((name) => (Object.hasOwn(options, name) ? options[name] : undefined)) as Values<T, Names>;
}

/** The length in `options`. */
export function outputLength(options: OutputOptions | undefined): number {
  const [length] = optionsOf(options, "length");
  return lengthOf(length);
}

/** The length of the output, which an option may set. */
export function lengthOf(length: number | undefined = OUT_LEN): number {
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
