/**
 * The bytes that wasm/encode.mjs wrote as text. Its digits are the printable characters of ASCII
 * without the quote and the backslash, 93 in all: a byte below 91 is one digit, another is two.
 */
export function decode(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(text.length);
  let at = 0;
  let size = 0;
  const digit = () => {
    const code = text.charCodeAt(at++);
    return code - 32 - Number(code > 34) - Number(code > 92);
  };
  while (at < text.length) {
    const first = digit();
    bytes[size++] = first < 91 ? first : 91 + (first - 91) * 93 + digit();
  }
  return bytes.subarray(0, size);
}
