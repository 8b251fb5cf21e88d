// Draws the pictures of the README, from the kept runs and from the running programs:
//
//     cargo xtask dashboard --out DASHBOARD
//     node pictures.js DASHBOARD ../../docs/pictures [BULLA]
//
// With the path of the program `bulla`, the screenshots of the pages are also taken anew.
// BULLA-serve is beside it. A test compares the drawings, and the sources of the screenshots.

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { launch } from "../../js/test/browser/chromium.js";
import { terminalPicture, tourLines } from "./terminal.js";

/** @typedef {import("playwright-core").Browser} Browser */

/** @param {string} name */
const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const THEMES = /** @type {const} */ (["light", "dark"]);
const WIDTH = 1280;
/** The sources of the pages in the screenshots, by the screenshots' names. */
const PAGES = { laboratory: here("src"), service: here("../../crates/server/src/ui/assets") };

/** The drawings by file name.
 * @param {Browser} browser @param {string} dashboard The folder with the built page. */
export async function drawings(browser, dashboard) {
  const { outputFiles } = await build({
    entryPoints: [here("src/picture.ts")],
    bundle: true,
    write: false,
    format: "iife",
    globalName: "picture",
    platform: "browser",
    target: "es2022",
    absWorkingDir: here("."),
    logLevel: "error",
  });
  const page = await browser.newPage();
  await page.addScriptTag({ path: join(dashboard, "data.js") });
  await page.addScriptTag({ content: outputFiles[0].text });
  const readme = readFileSync(here("../../README.md"), "utf8");
  /** @type {Record<string, string>} */
  const files = {};
  for (const theme of THEMES) {
    files[`throughput-${theme}.svg`] = await page.evaluate(`picture.throughputPicture(bullaLab, "${theme}")`);
    files[`tour-${theme}.svg`] = terminalPicture(tour(readme), theme);
  }
  await page.close();
  return files;
}

/** The part of the README's tour in the picture: from the first signature to the changed folder.
 * @param {string} readme */
function tour(readme) {
  const lines = tourLines(readme, "exit status 1");
  const from = lines.findIndex((line) => line.includes("bulla sign photos"));
  const file = lines.findIndex((line) => line.startsWith("$ cat "));
  const change = lines.findIndex((line) => line.startsWith("$ echo more"));
  return [...lines.slice(from, file), ...lines.slice(change)];
}

/** A digest of the sources of each page, to see that its screenshots are of these sources. */
export function sources() {
  const digest = (/** @type {string} */ folder) => {
    const hash = createHash("sha256");
    for (const name of readdirSync(folder).sort()) hash.update(`${name}\0`).update(readFileSync(join(folder, name)));
    return hash.digest("hex");
  };
  return Object.fromEntries(Object.entries(PAGES).map(([name, folder]) => [name, digest(folder)]));
}

/** Takes the screenshots of both pages.
 * @param {Browser} browser @param {string} dashboard @param {string} program @param {string} out */
async function photograph(browser, dashboard, program, out) {
  const service = await serve(program);
  try {
    for (const colorScheme of THEMES) {
      const context = await browser.newContext({ viewport: { width: WIDTH, height: 800 }, colorScheme, deviceScaleFactor: 1 });
      const page = await context.newPage();
      await page.goto(pathToFileURL(join(dashboard, "index.html")).href);
      await page.locator("svg").first().waitFor();
      await page.screenshot({ path: join(out, `laboratory-${colorScheme}.png`) });
      await page.setViewportSize({ width: WIDTH, height: 520 });
      await page.goto(`${service.address}/ui/`);
      await page.getByText("invoices").first().waitFor();
      await page.screenshot({ path: join(out, `service-${colorScheme}.png`) });
      await context.close();
    }
  } finally {
    service.stop();
  }
}

/** A service with some keys and some work done, all in memory.
 * @param {string} program */
async function serve(program) {
  const folder = mkdtempSync(join(tmpdir(), "bulla-pictures-"));
  const child = spawn(program, ["serve", "--dev", "--listen", "127.0.0.1:0"], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  const stop = () => {
    child.kill();
    rmSync(folder, { recursive: true, force: true });
  };
  const address = await new Promise((found, failed) => {
    child.on("exit", () => failed(new Error("the service ended")));
    createInterface({ input: child.stderr }).on("line", (line) => {
      const listening = /listening on (http:[^\s"]+)/.exec(line);
      if (listening) found(listening[1]);
    });
  });
  /** @param {string} path @param {unknown} body */
  const ask = async (path, body) => {
    const answer = await fetch(`${address}/api/v1/${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return /** @type {Record<string, any>} */ (await answer.json());
  };
  const message = Buffer.from("hello").toString("base64");
  for (const key of [{ label: "invoices" }, { label: "releases", algorithm: "ml-dsa-65-ed25519" }, { label: "backups" }, { label: "devices", algorithm: "ecdsa-p256" }]) {
    await ask("keys", key);
    await ask(`keys/${key.label}/sign`, { message });
  }
  await ask("keys/invoices/rotate", {});
  return { address, stop };
}

async function main() {
  const [dashboard, target, program] = process.argv.slice(2).map((path) => resolve(path));
  if (dashboard === undefined || target === undefined) throw new Error("usage: node pictures.js DASHBOARD FOLDER [BULLA]");
  mkdirSync(target, { recursive: true });
  const browser = await launch();
  try {
    for (const [name, text] of Object.entries(await drawings(browser, dashboard))) writeFileSync(join(target, name), text);
    if (program !== undefined) {
      await photograph(browser, dashboard, program, target);
      writeFileSync(join(target, "sources.json"), `${JSON.stringify(sources(), null, 2)}\n`);
    }
  } finally {
    await browser.close();
  }
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) await main();
