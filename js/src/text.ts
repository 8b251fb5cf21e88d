// Bytes as text.

import { rangeError, typeError } from "./errors.js";

/** The form in which a digest is returned. */
export type Encoding = "bytes" | "hex" | "base64";

/**
 * The number of bytes that are converted to text at once: a multiple of 3, and few enough to be the
 * arguments of one call.
 */
const PIECE_LEN = 12288;

/** The number of bytes whose text has 2^29 - 24 characters, which is the longest string of V8. */
const MAX_TEXT_BYTES = { bytes: Infinity, hex: 2 ** 28 - 12, base64: 3 * (2 ** 27 - 6) };

const decoder = /* @__PURE__ */ new TextDecoder();

/**
 * `bytes` in lower-case hexadecimal.
 *
 * @throws RangeError (`ERR_LENGTH`) for more than 2^28 - 12 bytes: their text is longer than the
 * longest string
 */
export function toHex(bytes: Uint8Array): string {
  return textOf("hex", bytes);
}

/**
 * `bytes` in lower-case hexadecimal, or in base64 with padding (RFC 4648, section 4).
 *
 * @throws RangeError (`ERR_LENGTH`) as {@link checkText} does
 */
export function textOf(encoding: "hex" | "base64", bytes: Uint8Array): string {
  const { length } = bytes;
  checkText(encoding, length);
  const encode = encoding === "hex" ? hexOf : base64Of;
  if (length <= PIECE_LEN) return encode(bytes);
  // Join the texts of the pieces: a string that grows by one byte at a time takes about 30 bytes of
  // memory for each.
  let text = "";
  for (let at = 0; at < length; at += PIECE_LEN) text += encode(bytes.subarray(at, at + PIECE_LEN));
  return text;
}

function hexOf(bytes: Uint8Array): string {
  const digits = new Uint8Array(2 * bytes.length);
  for (let i = 0; i < digits.length; i++) {
    const digit = (bytes[i >> 1]! >> (i & 1 ? 0 : 4)) & 15;
    digits[i] = digit + (digit < 10 ? 48 : 87);
  }
  return decoder.decode(digits);
}

function base64Of(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

/**
 * Refuses unknown encodings, and more bytes than fit into a string.
 *
 * @throws TypeError (`ERR_ENCODING`), RangeError (`ERR_LENGTH`)
 */
export function checkText(encoding: Encoding, length: number): void {
  if (!Object.hasOwn(MAX_TEXT_BYTES, encoding)) {
    throw typeError("ERR_ENCODING", `an encoding is bytes, hex or base64, not ${String(encoding)}`);
  }
  if (length > MAX_TEXT_BYTES[encoding]) throw rangeError("ERR_LENGTH", `${length} bytes are too many for one string`);
}
