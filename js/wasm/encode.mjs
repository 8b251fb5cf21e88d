// Bytes as printable characters that gzip makes small: a common byte stays one character, and equal
// runs of bytes stay equal runs of characters, which base64 breaks. The reader is
// ../src/wasm/decode.ts.

/** The digits: printable ASCII without the quote and the backslash. */
const DIGITS = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).filter((c) => c !== '"' && c !== '\\');

/**
 * Bytes below this are a digit each; the others are one of the two digits from it on, and another.
 */
const SINGLE = DIGITS.length - 2;

/** @param {Uint8Array} bytes */
export function encode(bytes) {
  let text = '';
  for (const byte of bytes) {
    const rest = byte - SINGLE;
    text += rest < 0 ? DIGITS[byte] : DIGITS[SINGLE + Math.floor(rest / DIGITS.length)] + DIGITS[rest % DIGITS.length];
  }
  return text;
}
