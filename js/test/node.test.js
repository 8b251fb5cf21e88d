import assert from "node:assert/strict";
import { constants } from "node:buffer";
import { spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createReadStream } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { after, test } from "node:test";
import { runInNewContext } from "node:vm";
import { createHasher, hash, keyedHash, toHex } from "bulla";
import { HashTransform, createTransform, hashFile } from "bulla/node";
import { checkText } from "../dist/text.js";
import { pattern } from "./support/data.js";

const folder = await mkdtemp(join(tmpdir(), "bulla-"));
after(() => rm(folder, { recursive: true }));
const key = pattern(32);

/** @param {number} length */
async function fileOf(length) {
  const path = join(folder, String(length));
  await writeFile(path, pattern(length));
  return path;
}

test("files of any length, by path and by URL, in every mode", async () => {
  for (const length of [0, 1, 1024, 262_143, 262_144, 262_145, 1_000_000]) {
    const path = await fileOf(length);
    const bytes = pattern(length);
    assert.deepEqual(await hashFile(path), hash(bytes));
    assert.deepEqual(await hashFile(pathToFileURL(path), { length: 99 }), hash(bytes, { length: 99 }));
    assert.deepEqual(await hashFile(Buffer.from(path), { key }), keyedHash(key, bytes));
  }
});

test("progress of a file has its size", async () => {
  /** @type {[number, number | undefined][]} */
  const seen = [];
  await hashFile(await fileOf(600_000), { onProgress: (bytes, total) => seen.push([bytes, total]) });
  assert.deepEqual(seen.at(-1), [600_000, 600_000]);
  assert.ok(seen.length >= 3);
});

test("files that cannot be read, and signals", async () => {
  await assert.rejects(hashFile(join(folder, "none")), { code: "ENOENT" });
  await assert.rejects(hashFile(folder), { code: "EISDIR" });
  await assert.rejects(hashFile(/** @type {any} */ (5)), { name: "TypeError" });
  const path = await fileOf(1_000_000);
  const reason = new Error("enough");
  await assert.rejects(hashFile(path, { signal: AbortSignal.abort(reason) }), reason);
  const controller = new AbortController();
  const onProgress = () => controller.abort(reason);
  await assert.rejects(hashFile(path, { signal: controller.signal, onProgress }), reason);
  const thrown = new Error("mine");
  await assert.rejects(hashFile(path, { onProgress: () => { throw thrown; } }), thrown);
  await assert.rejects(hashFile(path, { length: -1 }), { code: "ERR_LENGTH" });
});

test("a Transform passes on what it hashes", async () => {
  const path = await fileOf(1_000_000);
  const through = createTransform({ key, highWaterMark: 1000 });
  assert.ok(through instanceof HashTransform);
  /** @type {Buffer[]} */
  const chunks = [];
  const sink = new Writable({ write: (chunk, _, done) => (chunks.push(chunk), done()) });
  await pipeline(createReadStream(path), through, sink);
  assert.deepEqual(new Uint8Array(Buffer.concat(chunks)), pattern(1_000_000));
  assert.deepEqual(through.hasher.digest(), keyedHash(key, pattern(1_000_000)));
  const text = new HashTransform();
  text.resume().end("fffe", "hex");
  await new Promise((resolve) => text.on("end", resolve));
  assert.deepEqual(text.hasher.digest(), hash(new Uint8Array([0xff, 0xfe])));
});

test("a Transform decodes text that it is given, and passes on the hasher's errors", async () => {
  const text = new HashTransform({ decodeStrings: false });
  text.resume().end("fffe", "hex");
  await new Promise((resolve) => text.on("end", resolve));
  assert.deepEqual(text.hasher.digest(), hash(new Uint8Array([0xff, 0xfe])));
  const objects = new HashTransform({ objectMode: true });
  const failed = new Promise((resolve) => objects.on("error", resolve));
  objects.write(5);
  assert.equal(/** @type {any} */ (await failed).code, "ERR_DATA_TYPE");
});

test("options of another realm are options", () => {
  assert.deepEqual(hash("a", runInNewContext("({ length: 64 })")), hash("a", { length: 64 }));
  assert.throws(() => hash("a", runInNewContext("[]")), { name: "TypeError", code: "ERR_OPTIONS" });
});

test("unknown options of files are errors, inherited ones are none, and Node's own go to Node", async () => {
  const path = await fileOf(1000);
  await assert.rejects(hashFile(path, /** @type {any} */ ({ kye: key })), { name: "TypeError", code: "ERR_OPTIONS" });
  assert.equal(new HashTransform({ key, readableHighWaterMark: 77 }).readableHighWaterMark, 77);
  // Functions that would take the place of the hashing are refused.
  for (const name of ["kye", "transform", "read", "write", "writev", "final"]) {
    const options = /** @type {any} */ ({ [name]: () => {} });
    assert.throws(() => new HashTransform(options), { name: "TypeError", code: "ERR_OPTIONS" }, name);
  }
  const inherited = /** @type {any} */ (Object.prototype);
  inherited.key = key;
  try {
    assert.deepEqual(await hashFile(path), hash(pattern(1000)));
    assert.deepEqual(new HashTransform().hasher.digest(), hash(""));
    assert.deepEqual(createTransform({}).hasher.digest(), hash(""));
  } finally {
    delete inherited.key;
  }
});

/** @param {Record<string, string>} env @param {string} code */
function node(env, code) {
  const options = { env: { ...process.env, ...env }, encoding: /** @type {const} */ ("utf8") };
  return spawnSync(process.execPath, ["--input-type=module", "-e", code], { ...options, cwd: fileURLToPath(new URL(".", import.meta.url)) });
}

test("text that no string holds is a RangeError before anything is computed", () => {
  const tooLong = { name: "RangeError", code: "ERR_LENGTH", message: /too many for one string/ };
  for (const [encoding, most, characters] of /** @type {const} */ ([["hex", 2 ** 28 - 12, 2], ["base64", 3 * (2 ** 27 - 6), 4 / 3]])) {
    assert.equal(most * characters, constants.MAX_STRING_LENGTH);
    checkText(encoding, most);
    for (const length of [most + 1, 2 ** 31, Number.MAX_SAFE_INTEGER]) {
      assert.throws(() => createHasher().digest(encoding, { length }), tooLong, `${length} bytes`);
    }
  }
  for (const length of [2 ** 28 - 11, 2 ** 31]) assert.throws(() => toHex(new Uint8Array(length)), tooLong);
});

test("text of many bytes takes little more memory than it is long", () => {
  const code = `
    import assert from "node:assert/strict";
    import { createHasher, toHex } from "bulla";
    const bytes = new Uint8Array(30_000_001).fill(0xab, 12_287, 12_289);
    const hex = toHex(bytes);
    assert.equal(hex.length, 60_000_002);
    assert.equal(hex.slice(24_572, 24_580), "00abab00");
    assert.equal(createHasher().digest("base64", { length: 30_000_001 }).length, 40_000_004);`;
  const { stderr, status } = spawnSync(process.execPath, ["--max-old-space-size=200", "--input-type=module", "-e", code], {
    cwd: new URL(".", import.meta.url),
    encoding: "utf8",
  });
  assert.deepEqual({ stderr, status }, { stderr: "", status: 0 });
});

test("the variable forces a kernel for the process", () => {
  const code = 'import { kernel, kernels } from "bulla"; console.log(kernel(), kernels().join())';
  /** @param {string} value */
  const run = (value) => node({ BULLA_BLAKE3_FORCE_KERNEL: value }, code);
  assert.equal(run("portable").stdout, "portable wasm32/simd128,portable\n");
  assert.equal(run("wasm32/simd128").stdout, "wasm32/simd128 wasm32/simd128,portable\n");
  assert.equal(run("").stdout, "wasm32/simd128 wasm32/simd128,portable\n");
  const unknown = run("x86_64/avx9");
  assert.notEqual(unknown.status, 0);
  assert.match(unknown.stderr, /no kernel "x86_64\/avx9": there are wasm32\/simd128, portable/);
});

test("forceKernel takes what there is and refuses the rest", () => {
  const code = `
    import assert from "node:assert/strict";
    import { forceKernel, hash, kernel, toHex } from "bulla";
    const expected = toHex(hash("abc"));
    forceKernel("portable");
    assert.equal(kernel(), "portable");
    assert.equal(toHex(hash("abc")), expected);
    for (const wrong of ["", "wasm", null, undefined, 5, "toString"]) {
      assert.throws(() => forceKernel(wrong), { name: "TypeError", code: "ERR_KERNEL" });
    }
    assert.equal(kernel(), "portable");`;
  assert.equal(node({}, code).stderr, "");
});

test("where a module is compiled only in the background, the pure core hashes until it is", () => {
  const code = `
    import assert from "node:assert/strict";
    WebAssembly.Module = function () { throw new RangeError("disallowed on the main thread"); };
    const { createHasher, forceKernel, hash, kernel, kernels, toHex } = await import("bulla");
    const digest = toHex(hash("abc"));
    assert.equal(kernel(), "portable");
    const open = createHasher().update("a");
    while (kernel() === "portable") await new Promise((resolve) => setTimeout(resolve, 1));
    assert.equal(kernel(), "wasm32/simd128");
    assert.deepEqual(kernels(), ["wasm32/simd128", "portable"]);
    forceKernel("wasm32/simd128");
    assert.equal(toHex(hash("abc")), digest);
    assert.equal(open.update("bc").digest("hex"), digest);`;
  assert.equal(node({}, code).stderr, "");
});

test("without WebAssembly the main entry is on the pure core, and says why when asked for more", () => {
  const code = `
    import assert from "node:assert/strict";
    delete globalThis.WebAssembly;
    const { forceKernel, hash, kernel, kernels, toHex } = await import("bulla");
    assert.equal(kernel(), "portable");
    assert.deepEqual(kernels(), ["portable"]);
    assert.equal(toHex(hash("abc")), "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
    assert.throws(() => forceKernel("wasm32/simd128"), { code: "ERR_KERNEL", message: /does not run here: there are portable/ });`;
  assert.equal(node({}, code).stderr, "");
});
