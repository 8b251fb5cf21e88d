// The page of demo/ in Chromium.

import assert from "node:assert/strict";
import { closeSync, mkdtempSync, openSync, rmSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { createHasher, hash, toHex } from "bulla/pure";
import { buildDemo } from "../../demo/build.js";
import { launch } from "./chromium.js";
import { serve } from "./serve.js";
import { until } from "./until.js";

const folder = mkdtempSync(join(tmpdir(), "bulla-demo-"));
/** @type {Awaited<ReturnType<typeof launch>>} */
let browser;
/** @type {Awaited<ReturnType<typeof serve>>} */
let server;

before(async () => {
  const pages = join(folder, "pages");
  await buildDemo(pages);
  server = await serve({ "/": pathToFileURL(join(pages, "index.html")), "/*": pathToFileURL(`${pages}/`) }, {});
  browser = await launch();
});

after(async () => {
  await browser?.close();
  server?.close();
  rmSync(folder, { recursive: true });
});

/** A page that must end without errors.
 * @param {import("playwright-core").BrowserContextOptions} options
 * @param {(page: import("playwright-core").Page) => Promise<void>} work */
async function withPage(options, work) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  /** @type {string[]} */
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.goto(server.origin);
  await work(page);
  assert.deepEqual(errors, []);
  await context.close();
}

/** A file of so many bytes, and its digest by the pure core.
 * @param {string} name @param {number} megabytes */
function largeFile(name, megabytes) {
  const path = join(folder, name);
  const piece = new Uint8Array(1_000_000);
  const hasher = createHasher();
  const file = openSync(path, "w");
  for (let i = 0; i < megabytes; i++) {
    for (let at = 0; at < piece.length; at += 997) piece[at] = i + at;
    writeSync(file, piece);
    hasher.update(piece);
  }
  closeSync(file);
  return { path, digest: hasher.digest("hex") };
}

test("300 MB: progress, rate, digest, comparison", async () => {
  const { path, digest } = largeFile("large.bin", 300);
  await withPage({}, async (page) => {
    // Written down by the page itself: a fast machine is done before it has been asked often.
    const reports = await page.evaluateHandle(() => {
      /** @type {{ value: number, text: string }[]} */
      const reports = [];
      const progress = /** @type {HTMLProgressElement} */ (document.querySelector("#progress"));
      const amount = document.querySelector("#amount");
      new MutationObserver(() => reports.push({ value: progress.value, text: amount?.textContent ?? "" })).observe(progress, {
        attributeFilter: ["value"],
      });
      return reports;
    });
    await page.setInputFiles("#file", path);
    await until(() => page.locator("#result").isVisible(), 120_000);
    const seen = await reports.jsonValue();
    const between = seen.map(({ value }) => value).filter((value) => value > 0 && value < 1);
    assert.ok(between.length > 1, `progress was seen at ${between}`);
    assert.deepEqual(between, [...between].sort((a, b) => a - b), "progress never falls");
    assert.match(seen.at(-1)?.text ?? "", /^\d+(\.\d+)? MB of 300 MB, [\d.]+ [MG]B a second$/);
    assert.equal(await page.textContent("#digest"), digest);
    assert.match((await page.textContent("#facts")) ?? "", /^large\.bin: 300 MB in .* a second, by wasm32\/simd128$/);
    await page.fill("#expected", `${digest.toUpperCase()}  large.bin\n`);
    assert.match((await page.textContent("#verdict")) ?? "", /match/);
    await page.fill("#expected", digest.replace(/^./, (c) => (c === "0" ? "1" : "0")));
    assert.match((await page.textContent("#verdict")) ?? "", /differ/);
    await page.fill("#expected", digest.slice(1));
    assert.match((await page.textContent("#verdict")) ?? "", /no digest.* 63 characters/);
    await page.fill("#expected", "");
    assert.equal(await page.textContent("#verdict"), "");
  });
});

test("a large file is canceled, and another one takes its place", async () => {
  // Far more than any machine hashes before the click; it lies on the disk as a hole.
  const path = join(folder, "canceled.bin");
  writeFileSync(path, "");
  truncateSync(path, 64_000_000_000);
  await withPage({}, async (page) => {
    await page.setInputFiles("#file", path);
    await page.click("#cancel");
    assert.equal(await page.isVisible("#work"), false);
    await page.setInputFiles("#file", path);
    const small = join(folder, "small.txt");
    writeFileSync(small, "abc");
    await page.setInputFiles("#file", small);
    await page.locator("#result").waitFor();
    assert.equal(await page.textContent("#digest"), toHex(hash("abc")));
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.equal(await page.textContent("#digest"), toHex(hash("abc")), "the first file says nothing any more");
  });
});

test("a file is dropped, an empty one too; what is no file is said to be none", async () => {
  await withPage({}, async (page) => {
    for (const text of ["dropped", ""]) {
      await drop(page, [text]);
      await page.locator("#result").waitFor();
      await until(async () => (await page.textContent("#digest")) === toHex(hash(text)));
    }
    await drop(page, []);
    assert.match((await page.textContent("#error")) ?? "", /no file/);
    assert.equal(await page.isVisible("#result"), false);
  });
});

/** Drops files with these contents.
 * @param {import("playwright-core").Page} page @param {string[]} contents */
async function drop(page, contents) {
  const data = await page.evaluateHandle((contents) => {
    const transfer = new DataTransfer();
    contents.forEach((text, i) => transfer.items.add(new File([text], `file ${i}`)));
    return transfer;
  }, contents);
  await page.dispatchEvent("#drop", "drop", { dataTransfer: data });
}

test("the keyboard reaches everything", async () => {
  await withPage({}, async (page) => {
    await drop(page, ["keys"]);
    await page.locator("#result").waitFor();
    /** @type {string[]} */
    const reached = [];
    for (let i = 0; i < 3; i++) {
      await page.keyboard.press("Tab");
      reached.push(await page.evaluate(() => document.activeElement?.id ?? ""));
      const outline = await page.evaluate(() => getComputedStyle(/** @type {Element} */ (document.activeElement)).outlineStyle);
      assert.notEqual(outline, "none", `${reached[i]} shows that it has the focus`);
    }
    assert.deepEqual(reached, ["file", "copy", "expected"]);
    await page.keyboard.type(toHex(hash("keys")));
    assert.match((await page.textContent("#verdict")) ?? "", /match/);
  });
});

test("light, dark, and a phone", async () => {
  /** @type {string[]} */
  const papers = [];
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    await withPage({ colorScheme, viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true }, async (page) => {
      await drop(page, ["phone"]);
      await page.locator("#result").waitFor();
      const { paper, wide } = await page.evaluate(() => ({
        paper: getComputedStyle(document.body).backgroundColor,
        wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      }));
      papers.push(paper);
      assert.equal(wide, 0, "nothing to scroll sideways");
    });
  }
  assert.notEqual(papers[0], papers[1]);
});
