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
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

const ENCODERS = { bytes: (bytes: Uint8Array<ArrayBuffer>) => bytes, hex: toHex, base64: toBase64 };

/** What turns bytes into `encoding`. */
export function encoderOf(encoding: Encoding): (bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer> | string {
  if (Object.hasOwn(ENCODERS, encoding)) return ENCODERS[encoding];
  throw typeError("ERR_ENCODING", `an encoding is bytes, hex or base64, not ${String(encoding)}`);
}
