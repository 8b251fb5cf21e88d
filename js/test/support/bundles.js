// A small program that hashes with workers, as bundlers make one file of it.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { nodeResolve } from "@rollup/plugin-node-resolve";
import * as esbuild from "esbuild";
import { rollup } from "rollup";

/** What the program imports, where it is installed as users have it. */
const INSTALLED = { main: "bulla", parallel: "bulla/parallel" };

/**
 * The program: the promise `RESULT` is "same" where workers give the digest that one thread gives,
 * and else what went wrong.
 *
 * @param {typeof INSTALLED} from
 */
export function program({ main, parallel } = INSTALLED) {
  return `
    import { hash, kernel, toHex } from ${JSON.stringify(main)};
    import { closeWorkers, hashParallel } from ${JSON.stringify(parallel)};
    const Memory = globalThis.SharedArrayBuffer ?? ArrayBuffer;
    const data = new Uint8Array(new Memory(3_000_000)).map((_, i) => i % 251);
    const shared = new Uint8Array(new Memory(3_000_000));
    shared.set(data);
    globalThis.RESULT = Promise.all([hashParallel(data, { workers: 2 }), hashParallel(shared)])
      .then(([one, two]) => (toHex(one) === toHex(hash(data)) && toHex(one) === toHex(two) ? "same by " + kernel() : "different"))
      .catch((error) => error.code + ": " + error.message)
      .finally(closeWorkers);
    if (!globalThis.document) globalThis.RESULT.then(console.log);`;
}

/** @typedef {"node" | "browser"} Platform */

/** @typedef {(entry: string, out: string) => Promise<unknown>} Make */

/** @type {{ name: string, runs: Platform[], make: Make }[]} */
const BUNDLERS = [
  { name: "esbuild for browsers", runs: ["browser", "node"], make: byEsbuild({ format: "esm", platform: "browser" }) },
  { name: "esbuild as a script", runs: ["browser"], make: byEsbuild({ format: "iife", platform: "browser", minify: true }) },
  { name: "esbuild for Node", runs: ["node"], make: byEsbuild({ format: "esm", platform: "node" }) },
  { name: "esbuild for Node as CommonJS", runs: ["node"], make: byEsbuild({ format: "cjs", platform: "node", minify: true }) },
  { name: "Rollup", runs: ["browser", "node"], make: byRollup({}) },
  { name: "Rollup for browsers", runs: ["browser", "node"], make: byRollup({ browser: true }) },
  { name: "Rollup for Node", runs: ["node"], make: byRollup({ exportConditions: ["node"] }) },
];

/** @param {import("esbuild").BuildOptions} options */
function byEsbuild(options) {
  return (/** @type {string} */ entry, /** @type {string} */ outfile) =>
    esbuild.build({ ...options, entryPoints: [entry], outfile, bundle: true, target: "es2022", logLevel: "error" });
}

/** @param {import("@rollup/plugin-node-resolve").RollupNodeResolveOptions} options */
function byRollup(options) {
  return async (/** @type {string} */ input, /** @type {string} */ file) => {
    const bundle = await rollup({
      input,
      plugins: [nodeResolve(options)],
      onwarn: ({ message }) => {
        throw new Error(message);
      },
    });
    await bundle.write({ file, format: "es" });
    await bundle.close();
  };
}

/**
 * Makes the bundles that run on a platform. Each is alone in its folder, without what its bundler
 * left behind.
 *
 * @param {Platform} platform
 */
export async function makeBundles(platform) {
  const folder = mkdtempSync(join(tmpdir(), "bulla-bundles-"));
  const source = join(folder, "source");
  mkdirSync(join(source, "node_modules"), { recursive: true });
  symlinkSync(fileURLToPath(new URL("../../", import.meta.url)), join(source, "node_modules/bulla"), "junction");
  const entry = join(source, "program.mjs");
  writeFileSync(entry, program());
  const bundles = [];
  for (const [i, { name, runs, make }] of BUNDLERS.entries()) {
    if (!runs.includes(platform)) continue;
    const path = join(folder, String(i), name.includes("CommonJS") ? "bundle.cjs" : "bundle.mjs");
    await make(entry, path);
    bundles.push({ name, path, isScript: name.includes("script") });
  }
  return { bundles, remove: () => rmSync(folder, { recursive: true }) };
}
