// What is published: its types, its files, and that it works where it is installed. The suite
// `server` runs the program of the README against the real service.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "bulla-kms-package-"));
after(() => rmSync(folder, { recursive: true }));

// Other tests use dist/ meanwhile: nothing may build it again now.
execFileSync(process.execPath, ["../scripts/licenses.js", "."], { cwd: root });
const npm = { encoding: /** @type {const} */ ("utf8"), stdio: /** @type {any} */ (["ignore", "pipe", "pipe"]) };
const packed = execFileSync("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", folder], { ...npm, cwd: root });
const [{ filename, files }] = JSON.parse(packed.slice(packed.indexOf("[")));
const tarball = join(folder, filename);

/** @param {string} tool @param {string[]} args */
function run(tool, args) {
  return spawnSync(join(root, "../node_modules/.bin", tool), args, { cwd: root, encoding: "utf8" });
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

test("the types let through what they should, and nothing else", () => {
  const { stdout, status } = run("tsc", ["--project", "test"]);
  assert.equal(status, 0, stdout);
});

test("no type is any", () => {
  const declarations = files.filter((/** @type {{ path: string }} */ file) => file.path.endsWith(".d.ts"));
  assert.ok(declarations.length >= 4);
  for (const { path } of declarations) assert.doesNotMatch(readFileSync(join(root, path), "utf8"), /[:<|] *any\b/, path);
});

test("the package has its code and the licenses, and nothing else", () => {
  const names = files.map((/** @type {{ path: string }} */ file) => file.path);
  for (const name of ["package.json", "README.md", "LICENSE-APACHE", "LICENSE-MIT", "dist/index.js", "dist/index.d.ts"]) {
    assert.ok(names.includes(name), `${name} is not packed`);
  }
  assert.deepEqual(names.filter((/** @type {string} */ name) => /^(src|test|node_modules)\//.test(name)), []);
  const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  assert.equal(dependencies, undefined);
});

test("the package installs into a fresh folder and works there", () => {
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--offline", tarball], { ...npm, cwd: folder });
  const use = `import { Client, KmsError } from "bulla-kms";
    const client = new Client("http://127.0.0.1:1", { retries: 0 });
    console.log(await client.key("k").catch((error) => error instanceof KmsError && error.code));`;
  writeFileSync(join(folder, "use.js"), use);
  assert.equal(execFileSync(process.execPath, ["use.js"], { ...npm, cwd: folder }), "unreachable\n");
});
