// Opens the page in Chromium, from the file system: what all its tests share.

import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { launch } from "../../../js/test/browser/chromium.js";

export const folder = mkdtempSync(join(tmpdir(), "bulla-dashboard-"));
/**
 * The page as `cargo xtask dashboard` builds it, with the data of the kept runs: named by the suite
 * that runs this.
 */
export const built = process.env.BULLA_DASHBOARD ?? fileURLToPath(new URL("../dist", import.meta.url));
/** Screenshots for people to look at stay where the suite wants them. */
export const pictures = process.env.BULLA_DASHBOARD_PICTURES ?? join(folder, "pictures");

/** @type {Awaited<ReturnType<typeof launch>>} */
let browser;

before(async () => {
  mkdirSync(pictures, { recursive: true });
  browser = await launch();
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true });
});

/** A copy of the page with other data; none at all where it is undefined.
 * @param {string} name @param {unknown} data */
export function pageWith(name, data) {
  const copy = join(folder, name);
  cpSync(built, copy, { recursive: true });
  const script = join(copy, "data.js");
  if (data === undefined) rmSync(script);
  else writeFileSync(script, `globalThis.bullaLab = ${JSON.stringify(data)};\n`);
  return copy;
}

/** Opens a page, and holds that it ends without errors and asks for nothing but its own files.
 * @param {string} copy
 * @param {{ options?: import("playwright-core").BrowserContextOptions, hash?: string, missing?:
 * string[] }} how
 * @param {(page: import("playwright-core").Page) => Promise<void>} work */
export async function withPage(copy, { options = {}, hash = "", missing = [] }, work) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  /** @type {string[]} */
  const wrong = [];
  const root = pathToFileURL(`${copy}/`).href;
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => {
    const expected = missing.some((name) => message.location().url.endsWith(name));
    if (message.type() === "error" && !expected) wrong.push(message.text());
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(root) && !url.startsWith("data:") && !url.startsWith("blob:")) wrong.push(`asked for ${url}`);
  });
  await page.goto(`${root}index.html${hash}`);
  await work(page);
  assert.deepEqual(wrong, []);
  await context.close();
}

/** @param {import("playwright-core").Page} page @param {string} selector */
export const texts = (page, selector) => page.locator(selector).allTextContents();
