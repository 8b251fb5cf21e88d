// Bytes as text.

import { typeError } from "./errors.js";

/** How a digest is returned. */
export type Encoding = "bytes" | "hex" | "base64";

const HEX = /* @__PURE__ */ Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** `bytes` in lower-case hexadecimal. */
export function toHex(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i++) text += HEX[bytes[i]!]!;
  return text;
}

/** `bytes` in base64 with padding (RFC 4648, section 4). */
export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i++) text += String.fromCharCode(bytes[i]!);
  return btoa(text);
}

/** Bytes that standard base64 stands for. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** `bytes` as `encoding` asks. */
export function encode(bytes: Uint8Array, encoding: Encoding): Uint8Array | string {
  return encoding === "hex" ? toHex(bytes) : encoding === "base64" ? toBase64(bytes) : bytes;
}

/** `encoding` if there is such a one. */
export function checkEncoding(encoding: unknown): Encoding {
  if (encoding === "bytes" || encoding === "hex" || encoding === "base64") return encoding;
  throw typeError("ERR_ENCODING", `a digest comes as "bytes", "hex" or "base64", not ${JSON.stringify(encoding)}`);
}
