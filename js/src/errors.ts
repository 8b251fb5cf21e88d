/** The property `code` of this package's errors. */
export type ErrorCode =
  | "ERR_DATA_TYPE"
  | "ERR_DETACHED"
  | "ERR_KEY"
  | "ERR_CONTEXT"
  | "ERR_LENGTH"
  | "ERR_POSITION"
  | "ERR_OPTIONS"
  | "ERR_ENCODING"
  | "ERR_KERNEL"
  | "ERR_INPUT_TOO_LONG"
  | "ERR_FINISHED"
  | "ERR_SUBTREE"
  | "ERR_WORKER"
  | StateErrorCode;

/**
 * The problem of bytes that are not a saved state (`spec/blake3-state.md`). "count" does not match
 * the length, "range" is beyond the longest input, and "subtree" has absorbed more than there is
 * below its offset.
 */
export type StateField =
  | "magic"
  | "version"
  | "mode"
  | "reserved"
  | "length"
  | "count"
  | "key"
  | "offset"
  | "range"
  | "subtree";

/** The code of a {@link StateError}, such as `ERR_STATE_MAGIC`. */
export type StateErrorCode = `ERR_STATE_${Uppercase<StateField>}`;

/** The bytes given to `restore` are not a saved state. */
export class StateError extends Error {
  override readonly name = "StateError";
  readonly code: StateErrorCode;

  constructor(field: StateField) {
    super(`not a saved state: wrong ${field}`);
    this.code = `ERR_STATE_${field.toUpperCase() as Uppercase<StateField>}`;
  }
}

/** A `TypeError` with a code: the argument has the wrong type. */
export function typeError(code: ErrorCode, message: string): TypeError & { code: ErrorCode } {
  return Object.assign(new TypeError(message), { code });
}

/**
 * The same, for a value that is not of the `expected` type. The message ends with the value's type.
 */
export function kindError(code: ErrorCode, expected: string, value: unknown): TypeError & { code: ErrorCode } {
  return typeError(code, `${expected}, not ${typeof value}`);
}

/** A `RangeError` with a code: the argument has the right type, but is out of range. */
export function rangeError(code: ErrorCode, message: string): RangeError & { code: ErrorCode } {
  return Object.assign(new RangeError(message), { code });
}

/** An `Error` with a code: the call is not possible in the current state. */
export function plainError(code: ErrorCode, message: string): Error & { code: ErrorCode } {
  return Object.assign(new Error(message), { code });
}
