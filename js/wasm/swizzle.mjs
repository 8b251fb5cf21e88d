// Rotations by whole bytes as swizzles.
//
// LLVM writes a shuffle of the bytes of one vector, also where the source asks for a swizzle by a
// constant. V8 on x86-64 builds the mask of such a shuffle anew at every use, in four instructions,
// but keeps the constant of a swizzle in a register: see docs/decisions/0065-webassembly-kernel.md
// for what that is worth.

const SHUFFLE = [0xfd, 0x0d];
const CONSTANT = [0xfd, 0x0c];
const SWIZZLE = [0xfd, 0x0e];
const LOCAL_GET = 0x20;
const NOP = 0x01;

/** The bytes that a rotation of every 32-bit word right by so many bytes takes. */
const rotation = (bytes) => Array.from({ length: 16 }, (_, i) => (i & ~3) | ((i + bytes) & 3));

/**
 * The module with `local.get x; i8x16.shuffle mask` replaced by `v128.const mask; i8x16.swizzle`,
 * which is as long (a byte less, if x takes two), for the masks of rotations by 8 and 16 bits. Such
 * a shuffle takes no byte of its second operand.
 */
export function swizzle(module) {
  const bytes = module.slice();
  for (const mask of [rotation(1), rotation(2)]) {
    const shuffle = [...SHUFFLE, ...mask];
    for (let at = find(bytes, shuffle, 0); at !== -1; at = find(bytes, shuffle, at + 1)) {
      const swizzled = [...CONSTANT, ...mask, ...SWIZZLE];
      if (bytes[at - 2] === LOCAL_GET) {
        bytes.set(swizzled, at - 2);
      } else if (bytes[at - 3] === LOCAL_GET && bytes[at - 2] >= 0x80) {
        bytes.set([...swizzled, NOP], at - 3);
      } else {
        throw new Error(`no plain operand before the shuffle at ${at}`);
      }
    }
  }
  return bytes;
}

/** Where `part` is in `bytes`, from `from` on; -1 where it is not. */
function find(bytes, part, from) {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).indexOf(Buffer.from(part), from);
}
