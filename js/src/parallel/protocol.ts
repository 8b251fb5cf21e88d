import type { Kernel } from "../core.js";

/** What a worker is asked: to absorb `bytes` into the hasher of the state `start` on `kernel`, and to say its state then. */
export interface Job {
  id: number;
  kernel: Kernel;
  start: Uint8Array;
  bytes: Uint8Array;
}

/** What it answers. */
export type Answer = { id: number; saved: Uint8Array } | { id: number; message: string };

/** A worker, whatever the platform. */
export interface WorkerPort {
  post(job: Job, transfer: ArrayBuffer[]): void;
  onAnswer(take: (answer: Answer) => void): void;
  /** The worker cannot start, or has died. */
  onFailure(take: (error: Error) => void): void;
  /** Whether the process waits for this worker before it ends, where that is a question. */
  hold(isBusy: boolean): void;
  terminate(): void;
}
