import type { WorkerPort } from "./protocol.js";

/** How many threads the machine runs at once. */
export function parallelism(): number {
  return globalThis.navigator?.hardwareConcurrency ?? 2;
}

/** Starts a web worker. */
export function startWorker(): WorkerPort {
  const worker = new Worker(new URL("./worker-web.js", import.meta.url), { type: "module" });
  return {
    post: (job, transfer) => worker.postMessage(job, transfer),
    onAnswer: (take) => worker.addEventListener("message", (event) => take(event.data)),
    onFailure: (take) => worker.addEventListener("error", (event) => take(new Error(event.message || "a worker cannot start"))),
    hold: () => {},
    terminate: () => worker.terminate(),
  };
}
