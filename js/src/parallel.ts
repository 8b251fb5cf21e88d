/**
 * BLAKE3 of large inputs over several workers.
 *
 * @module
 */

import { plainError, rangeError, typeError } from "./errors.js";
import { openHasher } from "./hasher.js";
import type { HasherOptions } from "./hasher.js";
import { bytesOf, part, sizeOf } from "./input.js";
import type { Data } from "./input.js";
import { core, kernel } from "./kernel.js";
import { lengthOf, optionsOf } from "./options.js";
import type { OutputOptions } from "./options.js";
import { Join, MIN_PART_LEN, partsOf, startOf } from "./parallel/subtrees.js";
import type { Part } from "./parallel/subtrees.js";
import { READY } from "./parallel/protocol.js";
import type { Answer, WorkerPort } from "./parallel/protocol.js";
import { parallelism, startWorker } from "./parallel/workers.js";
import { parseState } from "./state.js";
import type { Saved } from "./state.js";
import { moduleBytes } from "./wasm/compile.js";

/** Options for hashing with workers. */
export interface ParallelOptions extends HasherOptions, OutputOptions {
  /** The number of workers, from 1 to 64. The default is the machine's number of threads. */
  workers?: number | undefined;
  /** Stops the hashing: the promise is rejected with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/**
 * The hash of a large input, computed by workers. They read shared memory in place; other memory is
 * copied for them, piece by piece. The input must not change until the promise settles.
 *
 * @throws what `hash` throws; RangeError (`ERR_OPTIONS`); Error (`ERR_WORKER`) if a worker cannot
 * start or fails
 */
export async function hashParallel(data: Data, options?: ParallelOptions): Promise<Uint8Array<ArrayBuffer>> {
  const [key, context, size, signal, workers] = optionsOf(options, "key", "context", "length", "signal", "workers");
  if (workers !== undefined && (!Number.isInteger(workers) || workers < 1 || workers > 64)) {
    throw rangeError("ERR_OPTIONS", "workers must be a whole number from 1 to 64");
  }
  const length = lengthOf(size);
  const hasher = openHasher(core(), key, context);
  const bytes = bytesOf(data);
  const total = sizeOf(bytes);
  signal?.throwIfAborted();
  // With fewer than two parts, a worker gains nothing.
  if (total < 4 * MIN_PART_LEN) return hasher.update(bytes).digest("bytes", { length });
  const empty = parseState(hasher.save());
  const join = new Join(empty);
  let done = 0;
  for (const saved of await hashParts(bytes, empty, workers ?? Math.min(64, await parallelism()), signal)) {
    join.add(saved);
    done += Number(saved.count);
  }
  if (sizeOf(bytes) !== total) throw changed();
  return hasher.restore(join.state()).update(part(bytes, done, total)).digest("bytes", { length });
}

/** Ends the idle workers. The next {@link hashParallel} starts new ones. */
export function closeWorkers(): void {
  for (const worker of idle.splice(0)) worker.port.terminate();
}

/** A worker, and the promise that waits for its answer. */
interface Member {
  port: WorkerPort;
  resolve: (answer: Answer) => void;
  reject: (error: Error) => void;
  isDead: boolean;
}

/** The idle workers. */
const idle: Member[] = [];

/**
 * Hashes the parts of `bytes`, each worker one after the other, and returns their states in order.
 */
async function hashParts(
  bytes: Uint8Array,
  empty: Saved,
  workers: number,
  signal: AbortSignal | undefined,
): Promise<Saved[]> {
  const parts = partsOf(sizeOf(bytes), workers);
  const states: Saved[] = [];
  let next = 0;
  const work = async () => {
    const member = idle.pop() ?? (await start());
    member.port.hold(true);
    try {
      for (let id = next++; id < parts.length; id = next++) {
        signal?.throwIfAborted();
        states[id] = await ask(member, bytes, parts[id]!, empty);
      }
    } catch (error) {
      // The others take no more parts.
      next = parts.length;
      throw error;
    } finally {
      member.port.hold(false);
      if (!member.isDead) idle.push(member);
    }
  };
  await Promise.all(Array.from({ length: Math.min(workers, parts.length) }, work));
  return states;
}

/** Lets a worker hash one part. */
async function ask(member: Member, bytes: Uint8Array, subtree: Part, empty: Saved): Promise<Saved> {
  const piece = viewOf(bytes, subtree);
  // Both sides see shared memory; other memory is copied and transferred.
  const isShared = Object.prototype.toString.call(piece.buffer) === "[object SharedArrayBuffer]";
  const own = isShared ? piece : piece.slice();
  const answer = await new Promise<Answer>((resolve, reject) => {
    Object.assign(member, { resolve, reject });
    const job = { kernel: kernel(), start: startOf(empty, subtree), bytes: own };
    member.port.post(job, isShared ? [] : [own.buffer as ArrayBuffer]);
  });
  if ("message" in answer) throw plainError("ERR_WORKER", `a worker failed: ${answer.message}`);
  const saved = parseState(answer.saved);
  if (saved.count !== BigInt(subtree.length)) throw changed();
  return saved;
}

/** A part of `bytes`, if their memory has not changed. */
function viewOf(bytes: Uint8Array, { from, length }: Part): Uint8Array {
  try {
    return part(bytes, from, from + length);
  } catch {
    throw changed();
  }
}

/** Starts a worker. One that fails leaves the pool. */
async function start(): Promise<Member> {
  const port = await startWorker().catch((error) => {
    throw failed(error);
  });
  const member: Member = { port, resolve: () => {}, reject: () => {}, isDead: false };
  port.onMessage = (message) => message !== READY && member.resolve(message);
  port.onFailure = (error) => {
    member.isDead = true;
    const at = idle.indexOf(member);
    if (at >= 0) idle.splice(at, 1);
    member.reject(failed(error));
  };
  const code = moduleBytes();
  port.post({ code }, [code.buffer]);
  return member;
}

function failed(cause: Error) {
  return Object.assign(plainError("ERR_WORKER", `a worker failed: ${cause.message}`), { cause });
}

function changed() {
  return typeError("ERR_DETACHED", "the memory under data went away or changed its size meanwhile");
}
