// The README's pictures: drawn anew they are the same, and the screenshots are of today's pages.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { launch } from "../../../js/test/browser/chromium.js";
import { drawings, sources } from "../pictures.js";
import { terminalPicture, tourLines } from "../terminal.js";
import { built } from "./open.js";

const folder = new URL("../../../docs/pictures/", import.meta.url);
const HINT = "draw them anew, as lab/dashboard/pictures.js says";

test("the drawings are those of the kept runs and the README's tour", async () => {
  const browser = await launch();
  try {
    for (const [name, text] of Object.entries(await drawings(browser, built))) {
      assert.equal(readFileSync(new URL(name, folder), "utf8"), text, `docs/pictures/${name} is old: ${HINT}`);
    }
  } finally {
    await browser.close();
  }
});

test("the screenshots are of the pages' current sources", () => {
  const kept = JSON.parse(readFileSync(new URL("sources.json", folder), "utf8"));
  assert.deepEqual(sources(), kept, `the screenshots are old: ${HINT}`);
  for (const page of Object.keys(kept)) {
    for (const theme of ["light", "dark"]) {
      const file = readFileSync(new URL(`${page}-${theme}.png`, folder));
      assert.equal(file.subarray(1, 4).toString(), "PNG", `${page}-${theme}.png`);
    }
  }
});

test("the README shows every picture, light and dark, with a text for those who do not see it", () => {
  const readme = readFileSync(new URL("../../../README.md", import.meta.url), "utf8");
  for (const [name, kind] of [["throughput", "svg"], ["tour", "svg"], ["service", "png"], ["laboratory", "png"]]) {
    const picture = `docs/pictures/${name}`;
    assert.match(readme, new RegExp(`<source media="\\(prefers-color-scheme: dark\\)" srcset="${picture}-dark.${kind}">`));
    assert.match(readme, new RegExp(`<img alt="[^"]{20,}" src="${picture}-light.${kind}"`));
  }
});

test("a terminal wraps long lines, and shows what a markup language would take for its own", () => {
  const svg = terminalPicture(["$ echo '<&>'", "x".repeat(150)], "dark");
  assert.ok(svg.includes("echo '&lt;&amp;&gt;'"));
  assert.equal(svg.match(/<text /g)?.length, 3);
});

test("a tour without the wanted line is an error", () => {
  assert.throws(() => tourLines("```console tour\n$ true\n```\n", "exit status 1"), /no block/);
});
