// What bundlers make of a program with workers, in Node.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { makeBundles } from "./support/bundles.js";

const { bundles, remove } = await makeBundles("node");
after(remove);

/** @param {string} path @param {string} [options] */
function run(path, options = "") {
  const env = { ...process.env, NODE_OPTIONS: options };
  const { stdout, stderr, status } = spawnSync(process.execPath, [path], { encoding: "utf8", env, timeout: 120_000 });
  return { stdout, stderr, status };
}

const same = { stdout: "same by wasm32/simd128\n", stderr: "", status: 0 };

for (const { name, path } of bundles) {
  test(`a bundle by ${name} hashes with workers in Node`, () => assert.deepEqual(run(path), same));
}

test("the same in a Node that has no process.getBuiltinModule", () => {
  for (const { name, path } of bundles) {
    const before = join(dirname(path), "before.cjs");
    writeFileSync(before, "delete process.getBuiltinModule;");
    assert.deepEqual(run(path, `--require=${before}`), same, name);
  }
});
