/** The input of the shared vectors: byte i is i mod 251.
 * @param {number} length */
export function pattern(length) {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) bytes[i] = i % 251;
  return bytes;
}

/** A generator of numbers from 0 to below `bound`, the same in each run (xorshift, 32 bits).
 * @param {number} seed */
export function random(seed) {
  let x = seed | 1;
  return (/** @type {number} */ bound) => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) % bound;
  };
}

/** @param {string} hex */
export function fromHex(hex) {
  return Uint8Array.from({ length: hex.length / 2 }, (_, i) => parseInt(hex.slice(2 * i, 2 * i + 2), 16));
}
