/**
 * What a pasted text says about a digest. The text may be the digest alone, in either case, or a
 * line as `b3sum` writes it.
 *
 * @param {string} text
 * @param {string | undefined} digest 64 lower-case hexadecimal digits, once there is one
 * @returns {{ text: string, kind: "" | "matches" | "differs" }}
 */
export function verdict(text, digest) {
  const trimmed = text.trim();
  if (trimmed === "") return { text: "", kind: "" };
  const expected = /(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/i.exec(trimmed)?.[0].toLowerCase();
  if (expected === undefined) {
    return { text: `That is no digest: 64 hexadecimal digits are expected, these are ${trimmed.length} characters.`, kind: "differs" };
  }
  if (digest === undefined) return { text: "Compared as soon as a file has been hashed.", kind: "" };
  if (expected === digest) return { text: "✓ The digests match.", kind: "matches" };
  return { text: "✗ The digests differ: this is not the file that the digest was made of.", kind: "differs" };
}

const UNITS = ["bytes", "kB", "MB", "GB", "TB"];

/**
 * A number of bytes with three digits or so.
 *
 * @param {number} bytes
 */
export function amount(bytes) {
  const power = bytes < 1000 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), UNITS.length - 1);
  const value = bytes / 1000 ** power;
  return `${power === 0 ? value : value.toPrecision(3)} ${UNITS[power]}`;
}
