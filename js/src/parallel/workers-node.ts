import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";

import type { WorkerPort } from "./protocol.js";

/** How many threads the machine runs at once. */
export function parallelism(): number {
  return availableParallelism();
}

/** Starts a worker thread. */
export function startWorker(): WorkerPort {
  // The process's own flags may be such as a file must not have, like --input-type.
  const worker = new Worker(new URL("./worker-node.js", import.meta.url), { execArgv: [] });
  worker.unref();
  return {
    post: (job, transfer) => worker.postMessage(job, transfer),
    onAnswer: (take) => worker.on("message", take),
    onFailure(take) {
      worker.on("error", take);
      worker.on("exit", (code) => take(new Error(`a worker ended with status ${code}`)));
    },
    hold: (isBusy) => (isBusy ? worker.ref() : worker.unref()),
    terminate: () => void worker.terminate(),
  };
}
