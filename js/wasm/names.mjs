// Sections that a program runs without.

/** Bytes before the first section: magic and version. */
const HEADER = 8;

/** The module without its custom sections: names of functions, names of tools. */
export function withoutNames(module) {
  const kept = [module.subarray(0, HEADER)];
  for (let at = HEADER; at < module.length; ) {
    const { value: size, end: start } = leb128(module, at + 1);
    if (module[at] !== 0) kept.push(module.subarray(at, start + size));
    at = start + size;
  }
  return new Uint8Array(Buffer.concat(kept));
}

/** The unsigned number at `at`, and where it ends. */
function leb128(bytes, at) {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return { value, end: at };
  }
}
