// The shared tests in Chromium: where WebAssembly may run, and where the page's policy forbids it.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { launch } from "./chromium.js";
import { serve } from "./serve.js";
import { until } from "./until.js";

const shared = new URL("../shared/", import.meta.url);

/** @param {string} path */
const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** The scripts of the shared tests, one a file as in Node, with what is Node's replaced. */
async function bundles() {
  const files = readdirSync(shared).filter((name) => name.endsWith(".test.js"));
  const scripts = files.map(async (name) => {
    const { outputFiles } = await build({
      stdin: {
        contents: `import "./${name}";\nglobalThis.BULLA_TESTS_READY = true;`,
        resolveDir: fileURLToPath(shared),
      },
      bundle: true,
      format: "esm",
      platform: "browser",
      target: "es2022",
      write: false,
      // The package says that its modules have no side effects; these have.
      ignoreAnnotations: true,
      alias: { "node:test": here("node-test.js"), "node:assert/strict": here("assert.js") },
      plugins: [vectorsByFetch],
    });
    return { name, script: /** @type {{ text: string }} */ (outputFiles[0]).text };
  });
  return Promise.all(scripts);
}

/** @type {import("esbuild").Plugin} */
const vectorsByFetch = {
  name: "vectors",
  setup: ({ onResolve }) => onResolve({ filter: /support\/vectors\.js$/ }, () => ({ path: here("vectors.js") })),
};

const scripts = await bundles();

/** Pages, and the policies that they stand under. */
const PAGES = [
  { title: "WebAssembly", kernel: "wasm32/simd128", policy: "'self' 'wasm-unsafe-eval'", isForbidden: false },
  { title: "WebAssembly forbidden by the page's policy", kernel: "portable", policy: "'self'", isForbidden: true },
];

/** The smallest module. */
const COMPILES = `(() => {
  try {
    new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
    return true;
  } catch {
    return false;
  }
})()`;

for (const { title, kernel, policy, isForbidden } of PAGES) {
  test(`Chromium: ${title}`, async (t) => {
    const pages = scripts.map(({ name, script }) => [`/${name}`, script]);
    const server = await serve(
      {
        "/": `<!doctype html><title>bulla</title><script src="flag.js"></script>`,
        "/flag.js": `globalThis.BULLA_TEST_NO_WASM = ${isForbidden};`,
        "/vectors/*": new URL("../../../spec/vectors/", import.meta.url),
        ...Object.fromEntries(pages),
      },
      {
        "content-security-policy": `default-src 'self'; script-src ${policy}`,
        // Shared memory is for isolated pages only.
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-embedder-policy": "require-corp",
      },
    );
    const browser = await launch();
    /** @type {string[]} */
    const ran = [];
    try {
      for (const { name } of scripts) await runPage(t, await browser.newPage(), `${server.origin}/`, name, ran);
    } finally {
      await browser.close();
      server.close();
    }
    assert.ok(ran.length > 40, `only ${ran.length} tests`);
    assert.ok(ran.some((name) => name.startsWith(`main entry, ${kernel}: every length`)), ran.join("\n"));
  });

  /**
   * Runs the tests of one file in a page of its own.
   *
   * @param {import("node:test").TestContext} t
   * @param {import("playwright-core").Page} page
   * @param {string} origin
   * @param {string} name
   * @param {string[]} ran
   */
  async function runPage(t, page, origin, name, ran) {
    /** @type {Error[]} */
    const errors = [];
    page.on("pageerror", (error) => errors.push(error));
    await page.goto(origin);
    assert.equal(await page.evaluate(COMPILES), !isForbidden, "the policy does what it should");
    assert.equal(await page.evaluate("crossOriginIsolated"), true);
    await page.addScriptTag({ url: name, type: "module" });
    await until(async () => (await page.evaluate("globalThis.BULLA_TESTS_READY")) === true);
    const names = /** @type {string[]} */ (await page.evaluate("BULLA_TESTS.names()"));
    for (const [i, title] of names.entries()) {
      await t.test(title, async () => assert.equal(await page.evaluate(`BULLA_TESTS.run(${i})`), undefined));
      ran.push(title);
    }
    assert.deepEqual(errors, []);
    await page.close();
  }
}
