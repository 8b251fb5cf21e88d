// A worker. scripts/build.js also makes one text of it and all its imports: see worker-text.d.ts.

import type { Core } from "../core.js";
import { createPureCore } from "../pure/core.js";
import { parseState } from "../state.js";
import { coreOf } from "../wasm/core.js";
import { READY } from "./protocol.js";
import type { Answer, Job, Setup } from "./protocol.js";

/**
 * The worker's own side: the global object, or Node's port, which the text gets under this name.
 */
const port = (globalThis as { bullaPort?: typeof globalThis }).bullaPort ?? globalThis;
let code: Uint8Array<ArrayBuffer>;

const cores = {
  portable: once(createPureCore),
  "wasm32/simd128": once(() => coreOf(new WebAssembly.Instance(new WebAssembly.Module(code)))),
};

port.addEventListener("message", ({ data }: MessageEvent<(Setup & { code: Uint8Array<ArrayBuffer> }) | Job>) => {
  if ("code" in data) ({ code } = data);
  else port.postMessage(answer(data));
});
port.postMessage(READY);

/** Does a job. */
function answer({ kernel, start, bytes }: Job): Answer {
  try {
    const state = cores[kernel]().restore(parseState(start));
    state.update(bytes);
    return { saved: state.save() };
  } catch (error) {
    return { message: String(error) };
  }
}

/** The core that `create` makes the first time. */
function once(create: () => Core): () => Core {
  let core: Core | undefined;
  return () => (core ??= create());
}
