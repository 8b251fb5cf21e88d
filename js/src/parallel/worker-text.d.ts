/**
 * The complete program of a worker: scripts/build.js makes it from `worker.ts` and all its imports.
 * A bundler cannot lose it, unlike a file that only a URL names.
 */
export declare const WORKER: string;
