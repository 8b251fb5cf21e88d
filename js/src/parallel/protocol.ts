import type { Kernel } from "../core.js";

/** What a worker is sent first, once it has said {@link READY}: the bytes of the WebAssembly module. */
export interface Setup {
  code: Uint8Array;
}

/** What it is asked: to absorb `bytes` into the hasher of the state `start` on `kernel`, and to say its state then. */
export interface Job {
  kernel: Kernel;
  start: Uint8Array;
  bytes: Uint8Array;
}

/** What it says as soon as it runs. */
export const READY = "ready";

/** What it answers to a job. */
export type Answer = { saved: Uint8Array } | { message: string };

/** A worker, whatever the platform. */
export interface WorkerPort {
  post(message: Setup | Job, transfer: ArrayBuffer[]): void;
  onMessage: (message: typeof READY | Answer) => void;
  /** The worker cannot start, or has died. */
  onFailure: (error: Error) => void;
  /** Whether the process waits for this worker before it ends, where that is a question. */
  hold(isBusy: boolean): void;
  terminate(): void;
}
