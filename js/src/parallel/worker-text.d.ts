/**
 * The program of a worker, complete in itself: `worker.ts` and all that it imports, made by scripts/build.js. A bundler cannot lose it, as
 * it loses a file that only a URL names.
 */
export declare const WORKER: string;
