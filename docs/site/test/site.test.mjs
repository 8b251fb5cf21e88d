// The documents in Chromium, from the file system: every page, wide and narrow, light and dark.

import assert from "node:assert/strict";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { launch } from "../../../js/test/browser/chromium.js";

/** @typedef {import("playwright-core").Page} Page */

/**
 * The site as `cargo xtask site` builds it, and where screenshots for people go: the suite that
 * runs this names both.
 */
const site = named("BULLA_SITE");
const pictures = named("BULLA_SITE_PICTURES");

const WIDE = { width: 1280, height: 900 };
const PHONE = { width: 360, height: 780 };

/** @param {string} name */
function named(name) {
  const value = process.env[name];
  if (!value) throw new Error(`the variable ${name} is missing: run \`cargo xtask test page\``);
  return value;
}

/** @type {Awaited<ReturnType<typeof launch>>} */
let browser;

before(async () => {
  mkdirSync(pictures, { recursive: true });
  browser = await launch();
});

after(() => browser?.close());

const pages = readdirSync(site, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".html")).sort();
const MAIN = ["index.html", "readme.html", "docs/tutorials/sign-a-terabyte.html", "docs/operations.html", "spec/http-api.html", "docs/decisions/index.html"];

/** Opens a page of the browser, and holds that nothing goes wrong in it and that it asks for
 * nothing but the site.
 * @param {import("playwright-core").BrowserContextOptions} options
 * @param {(page: Page) => Promise<void>} work */
async function withPage(options, work) {
  const context = await browser.newContext({ viewport: WIDE, ...options });
  const page = await context.newPage();
  /** @type {string[]} */
  const wrong = [];
  const root = pathToFileURL(`${site}/`).href;
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => wrong.push(message.text()));
  page.on("request", (request) => {
    if (!request.url().startsWith(root) && !request.url().startsWith("data:")) wrong.push(`asked for ${request.url()}`);
  });
  await work(page);
  assert.deepEqual(wrong, []);
  await context.close();
}

/** @param {Page} page @param {string} name */
const open = (page, name) => page.goto(pathToFileURL(join(site, name)).href);

/** @param {Page} page */
const measured = (page) => page.evaluate(() => {
  const root = document.documentElement;
  return { beyond: root.scrollWidth - root.clientWidth, titles: document.querySelectorAll("h1").length, scripts: document.scripts.length };
});
const FIT = { beyond: 0, titles: 1, scripts: 0 };

test("on a phone, every page is as wide as the screen, and every link within the site leads to a page and a place in it", async () => {
  assert.ok(pages.length > 100 && MAIN.every((name) => pages.includes(name)), `${pages.length} pages`);
  /** @type {Map<string, Set<string>>} */
  const places = new Map();
  /** @type {[string, string][]} */
  const links = [];
  await withPage({ viewport: PHONE }, async (page) => {
    for (const name of pages) {
      await open(page, name);
      assert.deepEqual(await measured(page), FIT, name);
      const found = await page.evaluate(() => ({
        here: location.href,
        ids: [...document.querySelectorAll("[id]")].map((one) => one.id),
        links: [...document.links].map((link) => link.href).filter((link) => link.startsWith("file:")),
      }));
      places.set(found.here, new Set(found.ids));
      for (const link of found.links) links.push([name, link]);
    }
  });
  for (const [name, link] of links) {
    const [target = "", place] = link.split("#");
    const known = places.get(target);
    assert.ok(known, `${name}: ${link}`);
    if (place) assert.ok(known.has(decodeURIComponent(place)), `${name}: ${link}`);
  }
  assert.ok(links.length > 1000, `${links.length} links`);
});

test("on a wide screen, every page but single decisions is as wide as the screen", async () => {
  await withPage({}, async (page) => {
    for (const name of pages.filter((name) => !/decisions\/\d/.test(name))) {
      await open(page, name);
      assert.deepEqual(await measured(page), FIT, name);
    }
  });
});

test("the contents lead from page to page, and say which one this is", async () => {
  await withPage({}, async (page) => {
    await open(page, "index.html");
    await page.click("nav >> text=Sign a terabyte");
    await page.waitForURL(/sign-a-terabyte\.html$/);
    assert.equal(await page.textContent("nav [aria-current=page]"), "Sign a terabyte");
    assert.equal(await page.textContent("h1"), "Sign a terabyte");
    const [nav, main] = await Promise.all(["nav", "main"].map((part) => page.locator(part).boundingBox()));
    assert.ok(nav && main && nav.x + nav.width <= main.x + 1, "the contents are beside the text");
    await page.screenshot({ path: join(pictures, "tutorial.png") });
    await page.click("header >> text=bulla");
    await page.waitForURL(/index\.html$/);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    // The first stop of the keyboard leads to the text.
    await page.waitForURL(/#text$/);
  });
  await withPage({ viewport: PHONE, isMobile: true, hasTouch: true }, async (page) => {
    await open(page, "docs/audit.html");
    await page.tap("text=Contents");
    await page.waitForURL(/#contents$/);
    // The contents are in sight. The page may still be scrolling.
    await page.waitForFunction((height) => (document.querySelector("nav")?.getBoundingClientRect().y ?? height) < height, PHONE.height);
    await page.screenshot({ path: join(pictures, "phone-contents.png") });
  });
});

test("text has a contrast of 4.5 on what is behind it, in light and dark", async () => {
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    const grounds = new Set();
    await withPage({ colorScheme }, async (page) => {
      for (const name of MAIN) {
        await open(page, name);
        const found = await page.evaluate(() => {
          const rgb = (/** @type {string} */ color) => (color.match(/[\d.]+/g) ?? []).map(Number);
          const light = (/** @type {number[]} */ color) => {
            const channel = (/** @type {number} */ value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
            const [r = 0, g = 0, b = 0] = color;
            return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
          };
          /** @type {(one: Element | null) => number[]} */
          const ground = (one) => {
            const color = rgb(one ? getComputedStyle(one).backgroundColor : "rgb(255, 255, 255)");
            return color.length === 4 && color[3] === 0 ? ground(one?.parentElement ?? null) : color;
          };
          const texts = [...document.querySelectorAll("body *")].filter((one) => [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent?.trim()));
          let least = Infinity;
          const paper = ground(document.body);
          for (const one of texts) {
            const [high = 0, low = 0] = [light(rgb(getComputedStyle(one).color)), light(ground(one))].sort((a, b) => b - a);
            least = Math.min(least, (high + 0.05) / (low + 0.05));
          }
          return { least, texts: texts.length, paper: String(paper) };
        });
        assert.ok(found.texts > 50, `${name}: ${found.texts} texts`);
        assert.ok(found.least >= 4.5, `${name}, ${colorScheme}: ${found.least}`);
        grounds.add(found.paper);
      }
      await page.screenshot({ path: join(pictures, `${colorScheme}.png`) });
    });
    const [paper = ""] = [...grounds];
    const first = Number(String(paper).split(",")[0]);
    assert.ok(colorScheme === "dark" ? first < 64 : first > 192, `${colorScheme}: the paper is ${paper}`);
  }
});
