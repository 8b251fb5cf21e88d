// The workers that are kept: how many there are, what they are sent, and what happens when they
// fail.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createHasher, toHex } from "bulla";

/**
 * Runs code in a process of its own; `inWorker` runs first in each worker, `inMain` first in the
 * process.
 *
 * @param {string} code @param {{ inWorker?: string, inMain?: string, flags?: string[] }} [more]
 */
function run(code, { inWorker = "", inMain = "", flags = [] } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "bulla-workers-"));
  const before = join(folder, "before.cjs");
  writeFileSync(before, `const threads = require("node:worker_threads");
    const { parentPort } = threads;
    if (threads.isMainThread) { ${inMain} } else { ${inWorker} }`);
  const env = { ...process.env, NODE_OPTIONS: `--require=${before}` };
  const options = { encoding: /** @type {const} */ ("utf8"), timeout: 60_000, cwd: new URL(".", import.meta.url), env };
  const { stdout, stderr, status } = spawnSync(process.execPath, [...flags, "--input-type=module", "-e", code], options);
  rmSync(folder, { recursive: true });
  return { stdout, stderr, status };
}

const TWICE = `
  import { closeWorkers, hashParallel } from "bulla/parallel";
  const data = new Uint8Array(1 << 20);
  const say = (error) => console.log(error.name, error.code, error.message, error.cause !== undefined);
  await hashParallel(data, { workers: 2 }).catch(say);
  await hashParallel(data, { workers: 1 }).catch(say);
  closeWorkers();`;

test("a worker that cannot start, that dies, or that fails is an error, each time", () => {
  const ended = "Error ERR_WORKER a worker failed: a worker ended with status 3 true\n";
  assert.deepEqual(run(TWICE, { inWorker: "process.exit(3);" }), { stdout: ended + ended, stderr: "", status: 0 });
  /** What a worker does in place of its answers. @param {string} instead */
  const later = (instead) => `const post = parentPort.postMessage;
    parentPort.postMessage = (message) => (message === "ready" ? post.call(parentPort, message) : ${instead});`;
  assert.deepEqual(run(TWICE, { inWorker: later("process.exit(3)") }), { stdout: ended + ended, stderr: "", status: 0 });
  const thrown = "Error ERR_WORKER a worker failed: broken true\n";
  const raise = "(() => { throw new Error('broken'); })()";
  assert.deepEqual(run(TWICE, { inWorker: later(raise) }), { stdout: thrown + thrown, stderr: "", status: 0 });
  const said = "Error ERR_WORKER a worker failed: broken false\n";
  const broken = "post.call(parentPort, { message: 'broken' })";
  assert.deepEqual(run(TWICE, { inWorker: later(broken) }), { stdout: said + said, stderr: "", status: 0 });
  // The state of a hasher that has absorbed nothing, in place of the state after the part.
  const nothing = `post.call(parentPort, { saved: Uint8Array.from(Buffer.from("${toHex(createHasher().save())}", "hex")) })`;
  const lost = "TypeError ERR_DETACHED the memory under data went away or changed its size meanwhile false\n";
  assert.deepEqual(run(TWICE, { inWorker: later(nothing) }), { stdout: lost + lost, stderr: "", status: 0 });
});

test("where the process may not start workers, the error says why", () => {
  const permission = process.allowedNodeEnvironmentFlags.has("--permission") ? "--permission" : "--experimental-permission";
  const flags = [permission, "--allow-fs-read=*", "--no-warnings"];
  const { stdout, status } = run(TWICE, { flags });
  assert.equal(status, 0);
  assert.match(stdout, /^(Error ERR_WORKER a worker failed: .*restricted.* true\n){2}$/);
});

/** Counts workers, and lets `onPost` see what they are sent. */
const SPY = `
  globalThis.seen = { started: 0, ended: 0, exits: [], jobs: [], workers: [] };
  threads.Worker = class extends threads.Worker {
    constructor(...args) {
      seen.started++;
      if (globalThis.refuse) throw new Error("no more");
      super(...args);
      seen.workers.push(this);
      seen.exits.push(new Promise((resolve) => this.on("exit", resolve)));
    }
    postMessage(message, transfer) {
      if ("start" in message) seen.jobs.push({ worker: this, bytes: message.bytes, size: message.bytes.length, transfer: transfer.length });
      globalThis.onPost?.();
      super.postMessage(message, transfer);
    }
    terminate() {
      seen.ended++;
      return super.terminate();
    }
  };`;

/** @param {string} code @param {string} [inWorker] */
function runSpied(code, inWorker) {
  const imports = `
    import assert from "node:assert/strict";
    import os from "node:os";
    import { hash } from "bulla";
    import { closeWorkers, hashParallel } from "bulla/parallel";
    const K = 1024;
    const data = new Uint8Array(1024 * K).map((_, i) => i % 251);`;
  assert.deepEqual(run(imports + code, { inMain: SPY, ...(inWorker && { inWorker }) }), { stdout: "", stderr: "", status: 0 });
}

test("as many workers start as are asked for; they are kept, and closed", () => {
  runSpied(`
    for (let i = 0; i < 3; i++) assert.deepEqual(await hashParallel(data, { workers: 3 }), hash(data));
    assert.equal(seen.started, 3);
    await hashParallel(data, { workers: 2 });
    assert.equal(seen.started, 3);
    closeWorkers();
    assert.equal(seen.ended, 3);
    await Promise.all(seen.exits);
    assert.deepEqual(await hashParallel(data), hash(data));
    assert.equal(seen.started, 3 + Math.min(16, os.availableParallelism()));
    closeWorkers();`);
});

test("without a number there are as many workers as threads of the machine, and no more than 64", () => {
  runSpied(`
    globalThis.refuse = true;
    for (const [threads, workers] of [[1, 1], [5, 5], [64, 64], [65, 64], [1000, 64]]) {
      os.availableParallelism = () => threads;
      const before = seen.started;
      await assert.rejects(hashParallel(new Uint8Array(8192 * K)), { code: "ERR_WORKER", message: "a worker failed: no more" });
      assert.equal(seen.started - before, workers);
    }`);
});

test("short inputs need no worker", () => {
  runSpied(`
    globalThis.refuse = true;
    for (const length of [0, 1, 256 * K - 1]) {
      const short = data.subarray(0, length);
      assert.deepEqual(await hashParallel(short, { workers: 2 }), hash(short));
    }
    await assert.rejects(hashParallel(data.subarray(0, 256 * K), { workers: 2 }), { code: "ERR_WORKER" });`);
});

test("shared memory is not copied; of other memory each worker gets its own part and no more", () => {
  runSpied(`
    const shared = new Uint8Array(new SharedArrayBuffer(data.length));
    shared.set(data);
    await hashParallel(shared, { workers: 2 });
    assert.ok(seen.jobs.length > 1);
    for (const { bytes, transfer } of seen.jobs.splice(0)) assert.deepEqual([bytes.buffer === shared.buffer, transfer], [true, 0]);
    await hashParallel(data, { workers: 2 });
    assert.equal(data.length, 1024 * K);
    let sum = 0;
    for (const { bytes, size, transfer } of seen.jobs) {
      assert.deepEqual([bytes.buffer.byteLength, transfer], [0, 1]);
      sum += size;
    }
    assert.equal(sum, data.length);
    closeWorkers();`);
});

test("memory that goes away after the last part was sent is noticed", () => {
  runSpied(`
    const gone = data.slice(0, 256 * K + 5);
    globalThis.onPost = () => seen.jobs.length === 4 && gone.length > 0 && structuredClone(gone.buffer, { transfer: [gone.buffer] });
    await assert.rejects(hashParallel(gone, { workers: 1 }), { name: "TypeError", code: "ERR_DETACHED" });
    closeWorkers();`);
});

test("a worker that ends while it waits is replaced", () => {
  const dies = `const end = new BroadcastChannel("end");
    end.onmessage = () => process.exit(0);
    end.unref();`;
  runSpied(`
    const input = data.subarray(0, 256 * K);
    const end = new BroadcastChannel("end");
    for (let i = 1; i <= 2; i++) {
      assert.deepEqual(await hashParallel(input, { workers: 1 }), hash(input));
      assert.equal(seen.started, i);
      end.postMessage("now");
      await seen.exits.at(-1);
    }
    end.close();`, dies);
});

test("of several that wait, the one that ends is replaced and the others stay", () => {
  runSpied(`
    await hashParallel(data, { workers: 2 });
    seen.jobs = [];
    await hashParallel(data, { workers: 1 });
    const [{ worker: used }] = seen.jobs;
    const [other] = seen.workers.filter((worker) => worker !== used);
    await other.terminate();
    assert.deepEqual(await hashParallel(data, { workers: 2 }), hash(data));
    assert.equal(seen.started, 3);
    closeWorkers();`);
});
