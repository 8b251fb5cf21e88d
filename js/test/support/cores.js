// The two cores under their entries. A test of both runs against each of these.
import * as full from "bulla";
import * as pure from "bulla/pure";

// Where WebAssembly is forbidden, whoever runs the tests says so: a core that should run and does
// not must fail them.
const isForbidden = globalThis.BULLA_TEST_NO_WASM === true;
if (!isForbidden) full.forceKernel("wasm32/simd128");

/** @type {{ name: string, api: typeof pure }[]} */
export const cores = [
  { name: "pure entry, portable", api: pure },
  { name: `main entry, ${full.kernel()}`, api: full },
];

/** The kernel that the main entry must be on. */
export const expectedKernel = isForbidden ? "portable" : "wasm32/simd128";
