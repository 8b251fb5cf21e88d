// Chooses the core that hashes.

import type { Core, Kernel } from "./core.js";
import { plainError, typeError } from "./errors.js";
import { createPureCore } from "./pure/core.js";
import { createWasmCore, createWasmCoreLater } from "./wasm/compile.js";

/** In Node, Deno and Bun: forces a kernel for the whole process. */
const FORCE = "BULLA_BLAKE3_FORCE_KERNEL";

/** All possible kernels, the best one first. */
const KERNELS = { "wasm32/simd128": createWasmCore, portable: createPureCore } as const;
const NAMES = Object.keys(KERNELS) as Kernel[];

/**
 * The kernels that were tried so far. An error is the reason why the platform does not have one.
 */
const tried = new Map<Kernel, Core | Error>();
let chosen: Core | undefined;

/** The core in use. The first call decides: importing the package compiles nothing. */
export function core(): Core {
  return (chosen ??= choose());
}

/** The names of the kernels that this platform runs, the best one first. */
export function kernels(): Kernel[] {
  return NAMES.filter((name) => !(attempt(name) instanceof Error));
}

/** The name of the kernel in use. */
export function kernel(): Kernel {
  return core().kernel;
}

/**
 * Uses this kernel from now on, instead of the best one. Open hashers keep theirs.
 *
 * @throws TypeError (`ERR_KERNEL`) for an unknown name; Error (`ERR_KERNEL`) for a kernel that this
 * platform does not run
 */
export function forceKernel(name: Kernel): void {
  chosen = demand(name);
}

function choose(): Core {
  const forced = fromEnvironment();
  if (forced !== undefined && forced !== "") return demand(forced);
  const best = demand(kernels()[0]!);
  // An old browser compiles large modules only in the background, and reports this error. Until
  // then, the pure core hashes.
  if (tried.get("wasm32/simd128") instanceof RangeError) {
    createWasmCoreLater().then(
      (core) => {
        tried.set(core.kernel, core);
        if (chosen === best) chosen = core;
      },
      () => {},
    );
  }
  return best;
}

function demand(name: string): Core {
  if (!Object.hasOwn(KERNELS, name)) {
    throw typeError("ERR_KERNEL", `no kernel ${JSON.stringify(name)}: there are ${kernels().join(", ")}`);
  }
  const core = attempt(name as Kernel);
  if (!(core instanceof Error)) return core;
  const error = plainError("ERR_KERNEL", `${name} does not run here: there are ${kernels().join(", ")}`);
  throw Object.assign(error, { cause: core });
}

function attempt(name: Kernel): Core | Error {
  let core = tried.get(name);
  if (core === undefined) {
    try {
      core = KERNELS[name]();
    } catch (error) {
      core = error instanceof Error ? error : new Error(String(error));
    }
    tried.set(name, core);
  }
  return core;
}

function fromEnvironment(): string | undefined {
  try {
    return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[FORCE];
  } catch {
    // Deno, without permission to read the variable.
    return undefined;
  }
}
