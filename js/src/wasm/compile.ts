// The package's WebAssembly module, and its cores.

import type { Core } from "../core.js";
import { plainError } from "../errors.js";
import { LITTLE_ENDIAN } from "../pure/words.js";
import { coreOf } from "./core.js";
import { decode } from "./decode.js";
import { MODULE } from "./module.js";

/**
 * Compiles the module, at once.
 *
 * @throws the platform's error if it has no WebAssembly with SIMD, or forbids it
 */
export function createWasmCore(): Core {
  // The module's words are little-endian; our views of them have the machine's byte order.
  if (!LITTLE_ENDIAN) throw plainError("ERR_KERNEL", "not on a big-endian machine");
  return coreOf(new WebAssembly.Instance(new WebAssembly.Module(moduleBytes())));
}

/**
 * The same, in the background, for platforms that do not compile a module of this size
 * synchronously.
 */
export async function createWasmCoreLater(): Promise<Core> {
  return coreOf((await WebAssembly.instantiate(moduleBytes())).instance);
}

/** The bytes of the module. */
export function moduleBytes(): Uint8Array<ArrayBuffer> {
  return decode(MODULE);
}
