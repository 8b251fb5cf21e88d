import type { Kernel } from "../core.js";

/**
 * The first message to a worker, after it has sent {@link READY}: the bytes of the WebAssembly
 * module.
 */
export interface Setup {
  code: Uint8Array;
}

/**
 * A job: absorb `bytes` into the hasher with the state `start` on `kernel`, and answer with its new
 * state.
 */
export interface Job {
  kernel: Kernel;
  start: Uint8Array;
  bytes: Uint8Array;
}

/** The worker's message as soon as it runs. */
export const READY = "ready";

/** The worker's answer to a job. */
export type Answer = { saved: Uint8Array } | { message: string };

/** A worker on any platform. */
export interface WorkerPort {
  post(message: Setup | Job, transfer: ArrayBuffer[]): void;
  onMessage: (message: typeof READY | Answer) => void;
  /** The worker cannot start, or has died. */
  onFailure: (error: Error) => void;
  /**
   * Sets whether the process waits for this worker before it ends, on platforms with this choice.
   */
  hold(isBusy: boolean): void;
  terminate(): void;
}
