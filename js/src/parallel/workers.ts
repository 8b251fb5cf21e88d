// Starts a worker, on any platform, and in any bundle of this package.

import { READY } from "./protocol.js";
import type { WorkerPort } from "./protocol.js";
import { WORKER } from "./worker-text.js";

/** The code that Node's worker runs before the worker's own text. */
const PORT = `globalThis.bullaPort = (process.getBuiltinModule ?? require)("node:worker_threads").parentPort;\n`;

/** The number of threads that the machine runs at once. */
export async function parallelism(): Promise<number> {
  if (isNode()) return (await builtin<typeof import("node:os")>("node:os")).availableParallelism();
  return globalThis.navigator?.hardwareConcurrency ?? 2;
}

/**
 * Starts a worker and waits until it runs.
 *
 * @throws the platform's error if it forbids workers
 */
export async function startWorker(): Promise<WorkerPort> {
  if (isNode()) return started(threadPort(await builtin<typeof import("node:worker_threads")>("node:worker_threads")));
  // The text needs no request, and no file that a bundler must publish.
  const url = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
  try {
    return await started(webPort(new Worker(url)));
  } catch (error) {
    // A content policy without `worker-src blob:` may allow the file, if it is published beside
    // this one.
    try {
      return await started(webPort(new Worker(new URL("./worker.js", import.meta.url), { type: "module" })));
    } catch {
      throw error;
    }
  } finally {
    URL.revokeObjectURL(url);
  }
}

/**
 * Whether workers are Node threads, as in Deno and Bun too. They are not in an Electron window,
 * where Node's workers do not run.
 */
function isNode(): boolean {
  const { process } = globalThis as { process?: { versions?: { node?: string }; type?: string } };
  return process?.versions?.node !== undefined && process.type !== "renderer";
}

/** A Node module. No import names it, so that a bundler for browsers does not look for it. */
async function builtin<T>(name: string): Promise<T> {
  return (process.getBuiltinModule?.(name) as T | undefined) ?? import(/* webpackIgnore: true */ /* @vite-ignore */ name);
}

/** The port, once its worker has said that it runs. */
function started(port: WorkerPort): Promise<WorkerPort> {
  return new Promise((resolve, reject) => {
    port.onMessage = (message) => message === READY && resolve(port);
    port.onFailure = (error) => {
      port.terminate();
      reject(error);
    };
  });
}

/** A Node thread. */
function threadPort({ Worker }: typeof import("node:worker_threads")): WorkerPort {
  // The process may have flags that a worker must not have, such as --input-type.
  const worker = new Worker(PORT + WORKER, { eval: true, execArgv: [] });
  const port: WorkerPort = {
    post: (message, transfer) => worker.postMessage(message, transfer),
    onMessage: () => {},
    onFailure: () => {},
    hold: (isBusy) => (isBusy ? worker.ref() : worker.unref()),
    terminate: () => void worker.terminate(),
  };
  worker.on("message", (message) => port.onMessage(message));
  worker.on("error", (error) => port.onFailure(error as Error));
  worker.on("exit", (code) => port.onFailure(new Error(`a worker ended with status ${code}`)));
  return port;
}

function webPort(worker: Worker): WorkerPort {
  const port: WorkerPort = {
    post: (message, transfer) => worker.postMessage(message, transfer),
    onMessage: () => {},
    onFailure: () => {},
    hold: () => {},
    terminate: () => worker.terminate(),
  };
  worker.addEventListener("message", ({ data }) => port.onMessage(data));
  worker.addEventListener("error", ({ message }) => port.onFailure(new Error(message || "it cannot start; a content policy must allow it by worker-src blob:")));
  return port;
}
