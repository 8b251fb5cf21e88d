// Opens the page in Chromium: what all its tests share.

import assert from "node:assert/strict";
import { accessSync, constants, mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { after, before } from "node:test";
import { chromium } from "playwright-core";

/** Screenshots for people to look at, if the suite wants them. */
const pictures = process.env.BULLA_PAGE_PICTURES;

/** Chromium as Debian has it: `CHROMIUM`, or on the PATH. */
function program() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return join(folder, name);
      } catch {
        // The next one.
      }
    }
  }
  throw new Error("no Chromium: install the package chromium, or set CHROMIUM to its path");
}

let browser;

before(async () => {
  // As root it has no sandbox of its own.
  browser = await chromium.launch({ executablePath: program(), args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });
});

after(() => browser?.close());

/**
 * Opens the page of a service, and holds that it works without an error, violates no policy and
 * asks nobody else for anything.
 *
 * `refused` are paths whose refusal is part of the test: Chromium reports each answer with a status
 * of failure as an error. With `clock`, the page's time is the test's: `page.clock.runFor`.
 */
export async function withPage(origin, { hash = "", refused = [], routes = {}, options = {}, clock = false }, work) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  if (clock) await page.clock.install();
  const wrong = [];
  await page.addInitScript(() => {
    globalThis.violations = [];
    addEventListener("securitypolicyviolation", (event) => globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => {
    const { url } = message.location();
    const expected = /Failed to load resource/.test(message.text()) && refused.some((path) => new URL(url).pathname.startsWith(path));
    if (!expected) wrong.push(`${message.type()}: ${message.text()} ${url}`);
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) wrong.push(`asked for ${request.url()}`);
  });
  for (const [pattern, answer] of Object.entries(routes)) {
    await page.route(`${origin}${pattern}`, (route) => route.fulfill({ status: 200, contentType: "application/json", ...answer }));
  }
  await page.goto(`${origin}/ui/${hash}`);
  await work(page, { wrong });
  wrong.push(...await page.evaluate(() => globalThis.violations));
  assert.deepEqual(wrong, []);
  await context.close();
}

export const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

/** Takes a picture where somebody wants to look at it. */
export async function picture(page, name) {
  if (!pictures) return;
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: join(pictures, `${name}.png`) });
}

/** What is in the focus, in words. */
export const focused = (page) => page.evaluate(() => {
  const at = document.activeElement;
  return at === document.body || at === null ? "" : (at.getAttribute("aria-label") ?? at.labels?.[0]?.textContent ?? at.textContent ?? "").trim();
});

/** Presses Tab until the focus is on what has that text. */
export async function tabTo(page, text, key = "Tab") {
  const passed = [];
  for (let steps = 0; steps < 60; steps += 1) {
    await page.keyboard.press(key);
    const now = await focused(page);
    if (now === text) return;
    passed.push(now);
  }
  assert.fail(`${text} cannot be reached by ${key}: ${passed.join(" | ")}`);
}
