// What bundlers make of a program with workers, and the package as it is, in Chromium under several
// policies.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { makeBundles, program } from "../support/bundles.js";
import { launch } from "./chromium.js";
import { serve } from "./serve.js";

/** @type {Awaited<ReturnType<typeof launch>>} */
let browser;
before(async () => {
  browser = await launch();
});
const { bundles, remove } = await makeBundles("browser");
after(async () => {
  await browser?.close();
  remove();
});

const ISOLATED = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };
const ONLY_OWN = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'";

/** What the program says on a page.
 * @param {Record<string, string | URL>} files
 * @param {Record<string, string>} headers
 * @param {boolean} [isScript] */
async function resultOf(files, headers, isScript = false) {
  const page = `<!doctype html><title>bulla</title><script ${isScript ? "defer" : 'type="module"'} src="program.js"></script>`;
  const server = await serve({ "/": page, ...files }, headers);
  const context = await browser.newContext();
  try {
    const tab = await context.newPage();
    await tab.goto(server.origin);
    return await tab.evaluate("globalThis.RESULT");
  } finally {
    await context.close();
    server.close();
  }
}

for (const { name, path, isScript } of bundles) {
  const files = { "/program.js": pathToFileURL(path) };

  test(`Chromium: a bundle by ${name} hashes with workers`, async () => {
    const same = "same by wasm32/simd128";
    assert.equal(await resultOf(files, {}, isScript), same, "without a policy");
    assert.equal(await resultOf(files, ISOLATED, isScript), same, "with shared memory");
    const policy = `${ONLY_OWN}; worker-src blob:`;
    assert.equal(await resultOf(files, { "content-security-policy": policy }, isScript), same, "where the policy allows blobs");
    const noWasm = "default-src 'self'; worker-src blob:";
    assert.equal(await resultOf(files, { "content-security-policy": noWasm }, isScript), "same by portable", "without WebAssembly");
  });

  test(`Chromium: a bundle by ${name} says so where the policy forbids its workers`, async () => {
    const result = await resultOf(files, { "content-security-policy": ONLY_OWN }, isScript);
    assert.match(String(result), /^ERR_WORKER: a worker failed: /);
  });
}

test("Chromium: the package as it is, also where the policy allows files of the origin alone", async () => {
  const dist = new URL("../../dist/", import.meta.url);
  const files = {
    "/program.js": program({ main: "./dist/index.js", parallel: "./dist/parallel.js" }),
    ...Object.fromEntries(["", "parallel/", "pure/", "wasm/"].map((folder) => [`/dist/${folder}*`, new URL(folder, dist)])),
  };
  for (const headers of [{}, ISOLATED, { "content-security-policy": ONLY_OWN }, { ...ISOLATED, "content-security-policy": ONLY_OWN }]) {
    assert.equal(await resultOf(files, headers), "same by wasm32/simd128", JSON.stringify(headers));
  }
  assert.equal(await resultOf(files, { "content-security-policy": "default-src 'self'" }), "same by portable");
});
