// The page in Chromium, from the file system: with the kept runs, with runs made up for the test,
// and with none.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { found, madeUp } from "./made-up.js";
import { built, folder, pageWith, pictures, texts, withPage } from "./open.js";

const CHARTS = ["throughput", "ratio", "spread", "history"];

/** What is drawn in a chart: its dots, and the text of its axes.
 * @param {import("playwright-core").Page} page @param {string} id */
function drawn(page, id) {
  return page.evaluate((id) => {
    const svg = document.querySelector(`#${id} svg`);
    const dots = [...(svg?.querySelectorAll("g[aria-label=dot] > *") ?? [])];
    return {
      dots: dots.length,
      lines: svg?.querySelectorAll("g[aria-label=line] > path").length ?? 0,
      rules: svg?.querySelectorAll("g[aria-label=rule] > line").length ?? 0,
      ticks: [...(svg?.querySelectorAll("g[aria-label='x-axis tick label'] text") ?? [])].map((text) => text.textContent),
      places: dots.map((dot) => dot.getAttribute("transform") ?? `${dot.getAttribute("cx")},${dot.getAttribute("cy")}`).join(" "),
    };
  }, id);
}

test("every chart of the kept runs draws", async () => {
  await withPage(built, {}, async (page) => {
    const [cases, peers] = await page.evaluate(() => {
      const table = document.querySelectorAll("#table-body tr").length;
      return [table, document.querySelectorAll("#peers li").length];
    });
    assert.ok(cases > 20 && peers >= 1, `${cases} comparisons, ${peers} peers`);
    for (const id of ["throughput", "ratio"]) {
      const { dots, ticks } = await drawn(page, id);
      assert.ok(dots > 20 && ticks.length > 3, `${id}: ${dots} dots, ${ticks}`);
    }
  });
});

test("every suite, lane and run that is kept can be chosen, and is drawn", async () => {
  await withPage(built, {}, async (page) => {
    const views = await page.evaluate(() => {
      const { runs } = /** @type {any} */ (globalThis).bullaLab;
      return runs.map((/** @type {any} */ run) => ({ run: run.run, lane: run.lane, suite: run.suite, kernel: run.forced }));
    });
    assert.ok(views.length > 0);
    for (const view of views) {
      await page.evaluate((hash) => { location.hash = hash; }, String(new URLSearchParams(view)));
      await page.waitForFunction((run) => /** @type {HTMLSelectElement} */ (document.querySelector("#choose-run")).value === run, view.run);
      // A choice draws at once. All groups of a run are chosen in one task, because a frame of the
      // whole page for each group is slow.
      const drawnGroups = await page.evaluate(() => {
        const field = /** @type {HTMLSelectElement} */ (document.querySelector("#choose-group"));
        return [...field.options].map(({ value }) => value).map((group) => {
          field.value = group;
          field.dispatchEvent(new Event("change"));
          return { group, chosen: field.value, dots: document.querySelectorAll("#throughput svg g[aria-label=dot] > *").length };
        });
      });
      assert.ok(drawnGroups.length > 0, view.suite);
      for (const { group, chosen, dots } of drawnGroups) {
        assert.equal(chosen, group);
        assert.ok(dots > 0, `${view.suite} ${group}`);
      }
    }
  });
});

test("charts have a dot for every figure, an interval for every ratio, and none for what is left out", async () => {
  await withPage(pageWith("figures", madeUp()), {}, async (page) => {
    // Six sizes and an empty input; ours and two peers; one case is lost against one peer.
    const throughput = await drawn(page, "throughput");
    assert.deepEqual([throughput.dots, throughput.lines], [6 * 3, 3]);
    const ratio = await drawn(page, "ratio");
    assert.equal(ratio.dots, 6 * 2 + 1, "a ring around the loss");
    assert.equal(ratio.rules, 6 * 2 + 1, "the line of equals");
    assert.equal((await drawn(page, "spread")).dots, 6 * 3 * 9);
    assert.equal((await drawn(page, "history")).dots, 2 * 2);
    assert.match((await page.textContent("#left-out")) ?? "", /hash\/0\b/);
  });
});

test("losses come first and are counted", async () => {
  await withPage(pageWith("losses", madeUp()), {}, async (page) => {
    assert.equal(await page.textContent("#verdict"), "Ours is slower in 1 of 18 comparisons.");
    const first = await texts(page, "#losses tbody tr:first-child > *");
    assert.deepEqual(first.slice(0, 3), ["hash/1024", "official 1.0.0", "+25.0 %"]);
    assert.equal(await page.locator("#losses tbody tr").count(), 1 + 5, "and the narrowest leads");
    assert.equal(await page.locator("#losses td.lost").count(), 1);
    assert.deepEqual(await texts(page, "#counts li"), ["1 slower", "1 even (within 1.0 %)", "16 faster"]);
    assert.equal((await texts(page, "#table-body th"))[0], "hash/1024");
    assert.deepEqual(await texts(page, "#overview tbody th"), ["oneshot", "go"]);
  });
});

test("filters change the charts, and what follows from them", async () => {
  await withPage(pageWith("filters", madeUp()), {}, async (page) => {
    const before = await drawn(page, "throughput");
    await page.selectOption("#choose-group", "keyed");
    const keyed = await drawn(page, "throughput");
    assert.equal(keyed.dots, 2 * 3);
    assert.notEqual(keyed.places, before.places);
    await page.selectOption("#choose-lane", "");
    assert.deepEqual(await texts(page, "#choose-suite option"), ["go"]);
    const names = await drawn(page, "throughput");
    assert.deepEqual(names.ticks, ["small", "large"], "cases without a size stand one after the other");
    assert.match((await page.textContent("#spread")) ?? "", /single launch/);
    assert.match((await page.textContent("#history")) ?? "", /One run so far/);
    assert.match(await page.evaluate(() => location.hash), /suite=go/);
  });
});

test("an implementation is switched off and on in every chart", async () => {
  await withPage(pageWith("legend", madeUp()), {}, async (page) => {
    const peer = page.locator("#legend button", { hasText: "official" });
    await peer.click();
    assert.equal(await peer.getAttribute("aria-pressed"), "false");
    assert.equal((await drawn(page, "throughput")).dots, 6 * 2);
    assert.equal((await drawn(page, "ratio")).dots, 6);
    await page.locator("#legend button", { hasText: "official" }).click();
    assert.equal((await drawn(page, "throughput")).dots, 6 * 3);
  });
});

test("an older run, and the history of one case, can be chosen", async () => {
  await withPage(pageWith("runs", madeUp()), {}, async (page) => {
    await page.selectOption("#choose-run", { index: 1 });
    assert.match((await page.textContent("#facts")) ?? "", /aaaaaaa/);
    const mean = await drawn(page, "history");
    await page.selectOption("#choose-case", "hash/1024");
    const one = await drawn(page, "history");
    assert.notEqual(one.places, mean.places);
    assert.equal(one.dots, 4);
  });
});

test("a view stands in its address", async () => {
  const copy = pageWith("address", madeUp());
  await withPage(copy, { hash: "#lane=lane-a&suite=oneshot&group=keyed" }, async (page) => {
    assert.equal(await page.inputValue("#choose-group"), "keyed");
  });
  await withPage(copy, { hash: "#lane=no-such&suite=%00&run=x&group=../../" }, async (page) => {
    assert.equal(await page.inputValue("#choose-suite"), "oneshot");
  });
});

test("the table sorts by each column, both ways, searches, and is saved", async () => {
  await withPage(pageWith("table", madeUp()), {}, async (page) => {
    const heads = await page.locator("#table-head button").count();
    for (let index = 0; index < heads; index++) {
      const cells = () => texts(page, `#table-body tr > :nth-child(${index + 1})`);
      await page.locator("#table-head button").nth(index).click();
      const one = await cells();
      await page.locator("#table-head button").nth(index).click();
      const other = await cells();
      assert.deepEqual(one, other.reverse(), `column ${index}`);
      const sorted = await page.locator("#table-head th").nth(index).getAttribute("aria-sort");
      assert.ok(sorted === "ascending" || sorted === "descending");
    }
    await page.locator("#table-head button", { hasText: "Bytes" }).click();
    await page.fill("#search", "keyed official");
    assert.equal(await page.textContent("#table-count"), "2 of 18 comparisons");
    const [saved] = await Promise.all([page.waitForEvent("download"), page.click("#csv")]);
    const lines = readFileSync(await saved.path(), "utf8").trim().split("\r\n");
    assert.equal(lines.length, 3);
    assert.match(lines[1] ?? "", /^"keyed\//);
  });
});

test("the keyboard reaches everything, and shows where it is", async () => {
  await withPage(pageWith("keyboard", madeUp()), {}, async (page) => {
    /** @type {string[]} */
    const reached = [];
    for (let i = 0; i < 200; i++) {
      await page.keyboard.press("Tab");
      const [name, marked] = await page.evaluate(() => {
        const active = /** @type {HTMLElement} */ (document.activeElement);
        const shown = active.matches(".switch input") ? /** @type {Element} */ (active.nextElementSibling) : active;
        const style = getComputedStyle(shown);
        return [active.id || active.getAttribute("name") || active.closest("[id]")?.id || active.tagName, style.outlineStyle !== "none"];
      });
      if (name === "BODY") break;
      assert.ok(marked, `${name} shows that it has the focus`);
      reached.push(String(name));
    }
    for (const id of [...CHARTS, "theme", "summary", "worst", "choose-lane", "choose-run", "choose-group", "grid", "choose-case", "legend", "search", "csv", "table-head", "overview"]) {
      assert.ok(reached.includes(id), `${id} is not reached: ${reached}`);
    }
  });
});

test("arrow keys and pointers read the values of a chart", async () => {
  await withPage(pageWith("values", madeUp()), {}, async (page) => {
    await page.focus("#ratio");
    await page.keyboard.press("Home");
    const tip = page.locator("#ratio .tip");
    assert.match((await tip.textContent()) ?? "", /^64 bytes.*official 1\.0.*1\.250× \(1\.200–1\.300\)/);
    await page.keyboard.press("ArrowRight");
    assert.match((await page.textContent("#ratio [role=status]")) ?? "", /^256 bytes: /);
    await page.keyboard.press("Escape");
    assert.equal(await tip.isVisible(), false);
    const box = await page.locator("#throughput svg").boundingBox();
    assert.ok(box);
    await page.locator("#throughput").hover({ position: { x: box.width - 20, y: box.height / 2 } });
    assert.match((await page.locator("#throughput .tip").textContent()) ?? "", /^1 MiB/);
  });
});

test("without data, with none yet, and with data of another version it says so", async () => {
  const { runs: _, ...rest } = madeUp();
  await withPage(pageWith("no-data", undefined), { missing: ["data.js"] }, async (page) => {
    assert.match((await page.textContent("#problem")) ?? "", /data\.js.*cargo xtask dashboard/s);
    await page.screenshot({ path: join(pictures, "no-data.png") });
  });
  await withPage(pageWith("no-runs", { ...rest, runs: [] }), {}, async (page) => {
    assert.match((await page.textContent("#problem")) ?? "", /no run yet.*cargo xtask bench/s);
    assert.equal(await page.isVisible("#content"), false);
  });
  await withPage(pageWith("another-version", { ...madeUp(), version: 1 }), {}, async (page) => {
    assert.match((await page.textContent("#problem")) ?? "", /another version/);
  });
});

test("names with markup are text", async () => {
  const data = madeUp();
  const name = "<img src=x onerror=alert(1)>";
  for (const run of data.runs) run.peers[0] = name;
  await withPage(pageWith("markup", data), {}, async (page) => {
    assert.equal(await page.locator("img").count(), 0);
    assert.ok((await texts(page, "#peers li")).includes(name));
  });
});

/** Width, height and the number of different bytes of a PNG's data: an even surface compresses to
 * next to nothing.
 * @param {Buffer} png */
function measure(png) {
  assert.equal(png.toString("latin1", 1, 4), "PNG");
  return { width: png.readUInt32BE(16), height: png.readUInt32BE(20), size: png.length };
}

test("light, dark, a tablet and a phone: drawn, as wide as the screen, and different", async () => {
  /** @type {Map<string, Buffer>} */
  const taken = new Map();
  const screens = /** @type {const} */ ([["wide", 1280], ["tablet", 768], ["phone", 360]]);
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    for (const [name, width] of screens) {
      const options = { colorScheme, viewport: { width, height: 800 }, isMobile: name === "phone", hasTouch: name === "phone" };
      await withPage(built, { options }, async (page) => {
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.equal(wide, 0, `${name}: nothing to scroll sideways`);
        const png = await page.screenshot({ path: join(pictures, `${name}-${colorScheme}.png`), fullPage: true });
        const { width: across, height, size } = measure(png);
        assert.equal(across, width);
        assert.ok(height > 1500 && size > 60_000, `${name}: ${height} pixels high, ${size} bytes`);
        taken.set(`${name} ${colorScheme}`, png);
      });
    }
  }
  for (const [name] of screens) assert.notDeepEqual(taken.get(`${name} light`), taken.get(`${name} dark`), name);
});

test("the switch of colors outweighs the system and is remembered", async () => {
  await withPage(built, { options: { colorScheme: "dark" } }, async (page) => {
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await paper();
    await page.locator(".switch label", { hasText: "Light" }).click();
    const light = await paper();
    assert.notEqual(light, dark);
    await page.reload();
    assert.equal(await paper(), light);
    await page.locator(".switch label", { hasText: "System" }).click();
    assert.equal(await paper(), dark);
  });
});

/** The contrast of two colors as WCAG 2.2 defines it.
 * @param {number[]} a @param {number[]} b */
function contrast(a, b) {
  const channel = (/** @type {number} */ value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const light = (/** @type {number[]} */ [r = 0, g = 0, b = 0]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
  return (Number(high) + 0.05) / (Number(low) + 0.05);
}

test("text has a contrast of 4.5, lines and signs of 3, in light and dark", async () => {
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    await withPage(built, { options: { colorScheme } }, async (page) => {
      const colors = await page.evaluate(() => {
        const probe = document.body.appendChild(document.createElement("i"));
        const rgb = (/** @type {string} */ name) => {
          probe.style.color = `var(--${name})`;
          return (getComputedStyle(probe).color.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
        };
        const names = ["paper", "raised", "ink", "soft", "accent", "lost", "won", ...[0, 1, 2, 3, 4, 5].map((index) => `series-${index}`)];
        // A wash is a veil over the paper.
        const over = (/** @type {string} */ name) => {
          probe.style.color = `var(--${name})`;
          const [r = 0, g = 0, b = 0, alpha = 1] = (getComputedStyle(probe).color.match(/[\d.]+/g) ?? []).map(Number);
          const paper = rgb("paper");
          return [r, g, b].map((value, index) => value * alpha + (paper[index] ?? 0) * (1 - alpha));
        };
        const washes = ["won-wash", "lost-wash", "even-wash"].map((name) => [name, over(name)]);
        return Object.fromEntries([...names.map((name) => [name, rgb(name)]), ...washes]);
      });
      const against = (/** @type {string} */ name, /** @type {string} */ ground) => contrast(colors[name] ?? [], colors[ground] ?? []);
      for (const name of ["ink", "soft", "accent", "lost", "won"]) {
        for (const ground of ["paper", "raised", "won-wash", "lost-wash", "even-wash"]) assert.ok(against(name, ground) >= 4.5, `${colorScheme}: ${name} on ${ground}: ${against(name, ground)}`);
      }
      for (const name of Object.keys(colors).filter((name) => name.startsWith("series") || name === "won")) {
        assert.ok(against(name, "paper") >= 3, `${colorScheme}: ${name}: ${against(name, "paper")}`);
      }
    });
  }
});

test("the folder holds what a host needs, and the licenses of what is in it", () => {
  const copy = join(folder, "fresh");
  const { status, stderr } = spawnSync(process.execPath, ["build.js", copy], { cwd: fileURLToPath(new URL("..", import.meta.url)) });
  assert.equal(status, 0, String(stderr));
  copyFileSync(join(built, "data.js"), join(copy, "data.js"));
  const size = readFileSync(join(copy, "page.js")).length;
  assert.ok(size < 600_000, `page.js has ${size} bytes`);
  const licenses = readFileSync(join(copy, "licenses.txt"), "utf8");
  for (const name of ["@observablehq/plot", "d3-scale"]) assert.ok(licenses.includes(`${name}\n`), name);
  assert.deepEqual(readdirSync(copy).sort(), ["data.js", "index.html", "licenses.txt", "page.css", "page.js"]);
});

test("what a model says of more threads is drawn apart, and said to be modeled", async () => {
  const data = madeUp();
  const times = [1, 2, 4, 8].map((threads) => ({ ...found(`1M-threads/${threads}`, 1048576, [1.25], 9), threads, ns: 800000 / threads }));
  const [first] = data.runs;
  const modeled = [{ group: "1M-threads", peer: null, times: [[32, 30000], [64, 20000]], error: 0.034 }];
  const runs = [...data.runs, { ...first, run: "2026-01-04T08:00:00Z-dddd", suite: "thread-scaling", cores: 8, cases: times, modeled }];
  await withPage(pageWith("modeled", { ...data, runs }), { hash: "#lane=lane-a&suite=thread-scaling" }, async (page) => {
    const { dots, ticks } = await drawn(page, "throughput");
    assert.equal(dots, 4 * 2 + 2, "what was measured, and what is modeled");
    assert.deepEqual(ticks, ["1", "2", "4", "8", "16", "32", "64"]);
    assert.equal(await page.locator("#throughput svg g[aria-label=dot] > [aria-label=modeled]").count(), 2);
    assert.match((await page.textContent("#modeled")) ?? "", /^Modeled, not measured .* at most 3\.4 %.* 35\.0 GB\/s with 32/);
    assert.match((await page.textContent("#grid-table thead")) ?? "", /^Threads/);
    assert.match((await page.textContent("#facts")) ?? "", /8 processors/);
    await page.selectOption("#choose-suite", "oneshot");
    assert.equal(await page.textContent("#modeled"), "");
  });
});
