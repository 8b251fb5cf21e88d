import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, test } from "node:test";
import { forceKernel, hash, keyedHash } from "bulla";
import { closeWorkers, hashParallel } from "bulla/parallel";
import { pattern } from "./support/data.js";

after(closeWorkers);
const key = pattern(32);
const K = 1024;

test("the digest is that of one thread, at every shape of tree", async () => {
  const lengths = [0, 1, 256 * K - 1, 256 * K, 256 * K + 1, 320 * K, 384 * K, 448 * K + 5, 512 * K, 1024 * K, 1024 * K + 1, 3_333_333];
  for (const length of lengths) {
    const shared = new Uint8Array(new SharedArrayBuffer(length));
    shared.set(pattern(length));
    for (const workers of [1, 2, 3]) {
      for (const data of [shared, pattern(length)]) {
        assert.deepEqual(await hashParallel(data, { workers }), hash(data), `${length} by ${workers}`);
      }
    }
    assert.deepEqual(await hashParallel(shared, { key, length: 77 }), keyedHash(key, shared, { length: 77 }));
    assert.deepEqual(await hashParallel(pattern(length + 8).buffer, { workers: 2 }), hash(pattern(length + 8)));
  }
});

test("several at once, on the other core too", async () => {
  const data = pattern(1_000_000);
  const digests = await Promise.all(Array.from({ length: 4 }, () => hashParallel(data, { workers: 2 })));
  for (const digest of digests) assert.deepEqual(digest, hash(data));
  forceKernel("portable");
  assert.deepEqual(await hashParallel(data, { workers: 2 }), digests[0]);
  forceKernel("wasm32/simd128");
});

test("wrong arguments and signals", async () => {
  for (const workers of /** @type {any[]} */ ([0, -1, 1.5, NaN, 65, "2", null])) {
    await assert.rejects(hashParallel("a", { workers }), {
      name: "RangeError",
      code: "ERR_OPTIONS",
      message: "workers must be a whole number from 1 to 64",
    });
  }
  assert.deepEqual(await hashParallel("a", { workers: 64 }), hash("a"));
  await assert.rejects(hashParallel(/** @type {any} */ (5)), { code: "ERR_DATA_TYPE" });
  await assert.rejects(hashParallel("a", /** @type {any} */ ({ worker: 2 })), { name: "TypeError", code: "ERR_OPTIONS" });
  await assert.rejects(hashParallel("a", { length: -1 }), { code: "ERR_LENGTH" });
  const reason = new Error("enough");
  await assert.rejects(hashParallel("a", { signal: AbortSignal.abort(reason) }), reason);
  const controller = new AbortController();
  const promise = hashParallel(pattern(8_000_000), { workers: 2, signal: controller.signal });
  controller.abort(reason);
  await assert.rejects(promise, reason);
  assert.deepEqual(await hashParallel(pattern(1_000_000)), hash(pattern(1_000_000)));
});

test("memory that is taken away meanwhile is noticed", async () => {
  const data = pattern(8_000_000);
  const promise = hashParallel(data, { workers: 2 });
  structuredClone(data.buffer, { transfer: [data.buffer] });
  await assert.rejects(promise, { name: "TypeError", code: "ERR_DETACHED" });
});

test("workers that wait do not keep the process", () => {
  const code = `
    import { hashParallel } from "bulla/parallel";
    console.log((await hashParallel(new Uint8Array(1 << 20), { workers: 2 })).length);`;
  const options = { encoding: /** @type {const} */ ("utf8"), timeout: 60_000, cwd: new URL(".", import.meta.url) };
  const { stdout, status } = spawnSync(process.execPath, ["--input-type=module", "-e", code], options);
  assert.deepEqual({ stdout, status }, { stdout: "32\n", status: 0 });
});
