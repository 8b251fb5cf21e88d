import { rangeError, typeError } from "./errors.js";

/** How long the output is to be. */
export interface OutputOptions {
  /** Bytes of output: 32 unless said otherwise. */
  length?: number | undefined;
}

/** Bytes of a digest. */
export const OUT_LEN = 32;

/** The options given, or none. */
export function optionsOf<T extends object>(options: T | undefined): Partial<T> {
  if (options === undefined) return {};
  if (typeof options !== "object" || options === null) {
    throw typeError("ERR_OPTIONS", `options must be an object, not ${typeof options}`);
  }
  return options;
}

/** The length that `options` ask for. */
export function outputLength(options: OutputOptions | undefined): number {
  const { length } = optionsOf(options);
  return length === undefined ? OUT_LEN : checkLength(length);
}

/** `length` if output can be that long. */
export function checkLength(length: number): number {
  if (typeof length !== "number") {
    throw typeError("ERR_LENGTH", `length must be a number, not ${typeof length}`);
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
