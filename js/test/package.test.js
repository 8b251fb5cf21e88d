// What is published: its size, its types, and that it works where it is installed.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const root = fileURLToPath(new URL("../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "bulla-package-"));
after(() => rmSync(folder, { recursive: true }));

const { exports: entries } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** Minified and gzipped, in bytes. @param {string} contents */
async function size(contents) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root },
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    platform: "browser",
    target: "es2022",
    logLevel: "error",
  });
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}

test("the pure entry is under 6 kB, the main entry under 24 kB, minified and gzipped", async () => {
  const pure = await size('export * from "bulla/pure"');
  const full = await size('export * from "bulla"');
  console.log(`pure entry ${pure} bytes, main entry ${full} bytes`);
  assert.ok(pure < 6000, `pure entry: ${pure} bytes`);
  assert.ok(full < 24_000, `main entry: ${full} bytes`);
});

test("what is not used is left out", async () => {
  assert.ok((await size('import "bulla"; import "bulla/pure"; import "bulla/noble"; import "bulla/stream"')) < 100);
  const stream = await size('export { updateFrom } from "bulla/stream"');
  assert.ok(stream < 1500, `${stream} bytes`);
  const parallel = await size('export * from "bulla/parallel"');
  assert.ok(parallel < 27_000, `parallel entry: ${parallel} bytes`);
});

test("a bundle for browsers has nothing of Node in it", async () => {
  for (const entry of ["bulla", "bulla/pure", "bulla/stream", "bulla/parallel", "bulla/noble"]) {
    await size(`export * from ${JSON.stringify(entry)}`);
  }
});

// Other tests use dist/ meanwhile: nothing may build it again now.
execFileSync(process.execPath, ["scripts/licenses.js", "."], { cwd: root });
const npm = { encoding: /** @type {const} */ ("utf8"), stdio: /** @type {any} */ (["ignore", "pipe", "pipe"]) };
const packed = execFileSync("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", folder], { ...npm, cwd: root });
const [{ filename, files }] = JSON.parse(packed.slice(packed.indexOf("[")));
const tarball = join(folder, filename);

/** @param {string} tool @param {string[]} args */
function run(tool, args) {
  return spawnSync(join(root, "node_modules/.bin", tool), args, { cwd: root, encoding: "utf8" });
}

test("publint has nothing to say", () => {
  const { stdout, stderr, status } = run("publint", [tarball, "--strict"]);
  assert.equal(status, 0, stdout + stderr);
  assert.match(stdout, /All good!/);
});

test("the types are those of an ECMAScript module wherever it is imported", () => {
  const { stdout, stderr, status } = run("attw", [tarball, "--profile", "esm-only", "--no-color"]);
  assert.equal(status, 0, stdout + stderr);
});

// An editor reads the declarations whenever it opens a program. Without a written type, the one of
// the module is all its text.
test("no declaration has the WebAssembly module in it", () => {
  const declarations = files.filter((/** @type {{ path: string }} */ file) => file.path.endsWith(".d.ts"));
  assert.ok(declarations.length > 10);
  const large = declarations.filter((/** @type {{ size: number }} */ file) => file.size > 20_000);
  assert.deepEqual(large, []);
});

test("the package that npm packs installs into a fresh folder and works there, every entry of it", () => {
  const names = files.map((/** @type {{ path: string }} */ file) => file.path);
  for (const name of ["package.json", "README.md", "MIGRATION.md", "LICENSE-APACHE", "LICENSE-MIT", "dist/index.js", "dist/index.d.ts"]) {
    assert.ok(names.includes(name), `${name} is not packed`);
  }
  assert.deepEqual(names.filter((/** @type {string} */ name) => /^(src|test|bench|node_modules)\//.test(name)), []);
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--offline", tarball], { ...npm, cwd: folder });
  const imports = Object.keys(entries).filter((entry) => entry !== "./package.json");
  writeFileSync(
    join(folder, "use.js"),
    `import assert from "node:assert/strict";
    import { hash, kernel, toHex } from "bulla";
    import { hash as pureHash } from "bulla/pure";
    import { hashFile } from "bulla/node";
    import { hashParallel } from "bulla/parallel";
    import { blake3 } from "bulla/noble";
    for (const entry of ${JSON.stringify(imports)}) await import("bulla" + entry.slice(1));
    const data = new Uint8Array(1 << 20);
    const digest = toHex(hash(data));
    assert.equal(kernel(), "wasm32/simd128");
    assert.equal(toHex(pureHash(data)), digest);
    assert.equal(toHex(blake3(data)), digest);
    assert.equal(toHex(await hashParallel(data, { workers: 2 })), digest);
    assert.equal(toHex(await hashFile("use.js")).length, 64);
    console.log("works");`,
  );
  assert.equal(execFileSync(process.execPath, ["use.js"], { ...npm, cwd: folder }), "works\n");
});

test("the types let through what they should, and nothing else", () => {
  const { stdout, status } = run("tsc", ["--project", "test"]);
  assert.equal(status, 0, stdout);
});

test("generated sources are what their generators write", () => {
  const check = spawnSync(process.execPath, ["scripts/gen-compress.js", "--check"], { cwd: root, encoding: "utf8" });
  assert.equal(check.status, 0, check.stderr);
});
