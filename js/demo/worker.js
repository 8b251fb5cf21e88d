// Hashes one file, away from the page, so that the page stays alive.

import { hashStream, kernel, toHex } from "bulla";

/** Milliseconds between two reports. */
const OFTEN = 50;

addEventListener("message", async ({ data: file }) => {
  const start = performance.now();
  let next = 0;
  const onProgress = (/** @type {number} */ bytes) => {
    const now = performance.now();
    if (now < next) return;
    next = now + OFTEN;
    postMessage({ kind: "progress", bytes, milliseconds: now - start });
  };
  try {
    const digest = toHex(await hashStream(file.stream(), { onProgress }));
    postMessage({ kind: "done", digest, milliseconds: performance.now() - start, kernel: kernel() });
  } catch (error) {
    postMessage({ kind: "error", message: String(/** @type {any} */ (error)?.message ?? error) });
  }
});
