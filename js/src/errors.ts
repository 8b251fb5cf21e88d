/** What an error of this package is about: the property `code` of each. */
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

/** Why bytes are no saved state (`spec/blake3-state.md`). */
export type StateErrorCode =
  | "ERR_STATE_MAGIC"
  | "ERR_STATE_VERSION"
  | "ERR_STATE_MODE"
  | "ERR_STATE_RESERVED"
  | "ERR_STATE_LENGTH"
  | "ERR_STATE_COUNT"
  | "ERR_STATE_KEY"
  | "ERR_STATE_OFFSET"
  | "ERR_STATE_RANGE"
  | "ERR_STATE_SUBTREE";

/** The bytes given to {@link restoreHasher} are no saved state. */
export class StateError extends Error {
  override readonly name = "StateError";
  readonly code: StateErrorCode;

  constructor(code: StateErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** A `TypeError` with a code: the argument is of a wrong kind. */
export function typeError(code: ErrorCode, message: string): TypeError & { code: ErrorCode } {
  return Object.assign(new TypeError(message), { code });
}

/** A `RangeError` with a code: the argument is of the right kind and out of bounds. */
export function rangeError(code: ErrorCode, message: string): RangeError & { code: ErrorCode } {
  return Object.assign(new RangeError(message), { code });
}

/** An `Error` with a code: the call does not fit the state of things. */
export function plainError(code: ErrorCode, message: string): Error & { code: ErrorCode } {
  return Object.assign(new Error(message), { code });
}
