// What a worker does, whatever the platform.

import { createHasher, forceKernel, kernel as used } from "../index.js";
import type { Answer, Job } from "./protocol.js";

/** Does a job. */
export function answer({ id, kernel, start, bytes }: Job): Answer {
  try {
    if (used() !== kernel) forceKernel(kernel);
    return { id, saved: createHasher().restore(start).update(bytes).save() };
  } catch (error) {
    return { id, message: String(error) };
  }
}
