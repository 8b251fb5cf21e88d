// What the page answers first, in Chromium: beside figures made up for the test, and beside what
// the kept runs say when they are counted again here.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { madeUp } from "./made-up.js";
import { built, pageWith, pictures, texts, withPage } from "./open.js";

/** @typedef {import("playwright-core").Page} Page */
/** @typedef {import("../src/data.js").Page} Data */
/** @typedef {import("../src/data.js").Run} Run */
/** @typedef {import("../src/data.js").Case} Case */

/** @param {Page} page @returns {Promise<Data>} */
const dataOf = (page) => page.evaluate(() => /** @type {any} */ (globalThis).bullaLab);

/** The newest run of every lane, suite and forced kernel: the runs stand in the order of their
 * time.
 * @param {Data} data */
function newest(data) {
  return [...new Map(data.runs.map((run) => [JSON.stringify([run.lane, run.suite, run.forced]), run])).values()];
}

const EVEN = 0.01;

/** How ours stands in a case: beside the best of its peers.
 * @param {Case} found */
function stands(found) {
  const least = Math.min(...found.against.map((against) => against.ratio[1]));
  return least < 1 - EVEN ? "slower" : least > 1 + EVEN ? "fastest" : "even";
}

/** @param {Page} page @param {Record<string, string>} view */
async function go(page, view) {
  await page.evaluate((hash) => { location.hash = hash; }, String(new URLSearchParams(view)));
  await page.waitForFunction(([run, group]) => {
    const value = (/** @type {string} */ name) => /** @type {HTMLSelectElement} */ (document.querySelector(name)).value;
    return value("#choose-run") === run && (group === undefined || value("#choose-group") === group);
  }, [view.run, view.group]);
}

/** @param {Run} run */
const viewOf = (run) => ({ lane: run.lane, suite: run.suite, kernel: run.forced, run: run.run });
const groupOf = (/** @type {string} */ name) => (name.includes("/") ? name.slice(0, name.lastIndexOf("/")) : name);
const words = (/** @type {string | null} */ text) => (text ?? "").replaceAll("\u00a0", " ").replace(/\s+/g, " ").trim();

test("one sentence for each machine says where ours is fastest, and by how much", async () => {
  await withPage(pageWith("sentences", madeUp()), {}, async (page) => {
    const said = (await texts(page, "#summary .sentence")).map(words);
    assert.deepEqual(said, [
      "One call: bulla is fastest at 5 of 7 sizes, even at 1, slower at 1, from 0.80× (1 KiB) to 1.25× (64 bytes).",
      "go: bulla is fastest at all 2 sizes, by 1.30× (small) to 1.40× (large).",
    ]);
    assert.deepEqual((await texts(page, "#summary h2")).map(words), ["Processor A lane-a, 1 suite", "A Processor no lane recorded, 1 suite"]);
    await page.locator("#summary a").nth(1).click();
    assert.equal(await page.inputValue("#choose-suite"), "go");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "grid-title");
  });
});

test("each machine's counts are those of all cases of its newest runs", async () => {
  await withPage(built, {}, async (page) => {
    const data = await dataOf(page);
    const lanes = new Set(data.runs.map((run) => run.lane));
    assert.equal(data.machines.length, lanes.size);
    const shown = await page.locator("#summary article").evaluateAll((all) => all.map((one) => [...one.querySelectorAll(".counts li")].map((item) => item.textContent)));
    for (const [index, machine] of data.machines.entries()) {
      const cases = newest(data).filter((run) => run.lane === machine.lane).flatMap((run) => run.cases).map(stands);
      const count = (/** @type {string} */ kind) => cases.filter((one) => one === kind).length;
      assert.deepEqual(shown[index], [`✓${count("fastest")} fastest`, `≈${count("even")} even`, `▼${count("slower")} slower`]);
    }
  });
});

test("the worst loss of every suite is the first section, the greatest first, and each leads to its chart", async () => {
  await withPage(built, { options: { reducedMotion: "reduce" } }, async (page) => {
    assert.equal(await page.evaluate(() => document.querySelector("main:not(.problem) section")?.id), "worst-section");
    const data = await dataOf(page);
    const expected = newest(data)
      .map((run) => {
        const rows = run.cases.flatMap((found) => found.against.map((against) => ({ run, found, against })));
        const lost = rows.filter(({ against }) => against.ratio[1] < 1 - EVEN);
        const [worst] = lost.sort((a, b) => a.against.ratio[1] - b.against.ratio[1]);
        return worst && { ...worst, lost: lost.length, of: rows.length };
      })
      .filter((loss) => loss !== undefined)
      .sort((a, b) => a.against.ratio[1] - b.against.ratio[1]);
    assert.ok(expected.length > 0);
    const shown = await page.locator("#worst li").evaluateAll((all) => all.map((one) => one.textContent));
    assert.equal(shown.length, expected.length);
    for (const [index, { run, found, against, lost, of }] of expected.entries()) {
      const text = shown[index] ?? "";
      const times = 1 / against.ratio[1];
      assert.ok(text.startsWith(`▼${times >= 10 ? times.toFixed(1) : times.toFixed(2)}× slower${found.case} against ${run.peers[against.peer]}`), text);
      assert.ok(text.endsWith(`${lost} of ${of} lost`), text);
      await page.locator("#worst a").nth(index).click();
      await page.waitForFunction((run) => /** @type {HTMLSelectElement} */ (document.querySelector("#choose-run")).value === run, run.run);
      assert.equal(await page.inputValue("#choose-case"), found.case);
      const tip = words(await page.textContent("#ratio .tip"));
      assert.ok(tip.includes(`${run.peers[against.peer]}${against.ratio[1].toFixed(3)}×`), `${found.case}: ${tip}`);
      const inSight = await page.evaluate(() => document.querySelector("#ratio")?.getBoundingClientRect().top ?? NaN);
      assert.ok(inSight >= 0 && inSight < 900, `${found.case}: the chart is at ${inSight}`);
    }
    await page.goBack();
    assert.equal(await page.inputValue("#choose-case"), expected.at(-2)?.found.case, "and back to the one before");
  });
});

test("without a loss it says so, and a narrow screen shows four until it is asked for all", async () => {
  const none = madeUp();
  none.losses = [];
  await withPage(pageWith("no-loss", none), {}, async (page) => {
    assert.match((await page.textContent("#worst-about")) ?? "", /none of 2 suites has a loss of more than 1 %/);
    assert.equal(await page.isVisible("#worst"), false);
  });
  const all = await phone(built, async (page) => {
    const rows = page.locator("#worst li");
    const visible = async () => (await rows.evaluateAll((rows) => rows.filter((row) => row.getBoundingClientRect().height > 0))).length;
    assert.equal(await visible(), 4);
    await page.tap("#worst-more");
    assert.equal(await visible(), await rows.count());
    return rows.count();
  });
  await withPage(built, {}, async (page) => {
    assert.equal((await page.locator("#worst li").evaluateAll((rows) => rows.filter((row) => row.getBoundingClientRect().height > 0))).length, all);
  });
});

/** @template T @param {string} copy @param {(page: Page) => Promise<T>} work */
async function phone(copy, work, hash = "") {
  /** @type {T | undefined} */
  let result;
  await withPage(copy, { options: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }, hash }, async (page) => {
    result = await work(page);
  });
  return /** @type {T} */ (result);
}

/** The grid as it is shown: for each case who has which mark, the cells in words, and the column of
 * the fastest.
 * @param {Page} page */
function gridOf(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll("#grid-table tbody tr")].map((row) => ({
      name: /** @type {HTMLElement} */ (row).dataset["case"] ?? "",
      fastest: row.querySelector("td.winner")?.textContent ?? "",
      cells: [...row.querySelectorAll("td[data-place]")].map((cell) => ({
        place: /** @type {HTMLElement} */ (cell).dataset["place"] ?? "",
        mark: cell.querySelector(".mark")?.getAttribute("aria-label") ?? "",
        sign: cell.querySelector(".mark")?.textContent ?? "",
        text: cell.textContent ?? "",
      })),
    })),
  );
}

/** Who is fastest in a case and who is even with it, by the ratios alone.
 * @param {Case} found */
function byRatios(found) {
  const speeds = [["ours", 1], ...found.against.map((against) => [String(against.peer), 1 / against.ratio[1]])].map(([place, speed]) => ({ place: String(place), speed: Number(speed) }));
  speeds.sort((a, b) => b.speed - a.speed);
  const best = speeds[0] ?? { place: "", speed: NaN };
  const isEven = (/** @type {{ place: string, speed: number }} */ other) => {
    const ratio = other.place === "ours" ? 1 / best.speed : 1 / other.speed;
    if (other.place === "ours") return ratio >= 1 - EVEN;
    return best.place === "ours" ? ratio <= 1 + EVEN : other.speed / best.speed >= 1 - EVEN;
  };
  const equals = speeds.slice(1).filter(isEven).map(({ place }) => place);
  return { best: best.place, equals, lead: best.speed / (speeds[1]?.speed ?? NaN) };
}

test("the grid marks the fastest of every case of every run, as the ratios say", async () => {
  await withPage(built, {}, async (page) => {
    const data = await dataOf(page);
    let checked = 0;
    for (const run of data.runs) {
      for (const group of new Set(run.cases.map((found) => groupOf(found.case)))) {
        await go(page, { ...viewOf(run), group, sizes: "all" });
        const rows = await gridOf(page);
        const cases = run.cases.filter((found) => groupOf(found.case) === group);
        assert.deepEqual(rows.map((row) => row.name), cases.map((found) => found.case));
        for (const [index, row] of rows.entries()) {
          const found = /** @type {Case} */ (cases[index]);
          const { best, equals, lead } = byRatios(found);
          const marks = Object.fromEntries(row.cells.filter((cell) => cell.mark !== "").map((cell) => [cell.place, cell.mark]));
          const expected = equals.length === 0 ? { [best]: "fastest" } : Object.fromEntries([best, ...equals].map((place) => [place, "even"]));
          assert.deepEqual(marks, expected, `${run.suite} ${found.case}`);
          for (const cell of row.cells) assert.equal(cell.sign, { fastest: "✓", even: "≈", "": "" }[cell.mark], "a sign beside the color");
          if (equals.length === 0) assert.ok(Math.abs(lead - Number(/([\d.]+)× the next/.exec(row.fastest)?.[1])) < 0.0051, `${found.case}: ${row.fastest}, ${lead}`);
          for (const against of found.against) {
            const text = row.cells.find((cell) => cell.place === String(against.peer))?.text ?? "";
            assert.ok(text.endsWith(`ours ${against.ratio[1].toFixed(2)}×`), text);
            assert.equal(text.includes("▼"), against.ratio[1] < 1 - EVEN, text);
          }
          checked++;
        }
      }
    }
    assert.equal(checked, data.runs.flatMap((run) => run.cases).length);
  });
});

test("the grid of figures that are known", async () => {
  await withPage(pageWith("grid", madeUp()), {}, async (page) => {
    const rows = new Map((await gridOf(page)).map((row) => [row.name, row]));
    // 1024 bytes take 40 + 1024/5 = 244.8 ns, the peer 0.8 of it; the clock runs at 3 GHz.
    const lost = rows.get("hash/1024");
    assert.equal(words(lost?.fastest ?? ""), "official 1.25× the next");
    assert.deepEqual(lost?.cells.map((cell) => words(cell.text)), ["4.18 GB/s 0.717 c/B", "✓5.23 GB/s 0.574 c/B ▼ ours 0.80×", "2.79 GB/s 1.08 c/B ours 1.50×"]);
    assert.equal(words(rows.get("hash/4096")?.fastest ?? ""), "bulla, official ≈ even");
    // Nothing to read: the time of a call, and calls a second.
    assert.deepEqual(rows.get("hash/0")?.cells.map((cell) => words(cell.text)).slice(0, 1), ["✓25.0 M/s 40.0 ns"]);
    assert.deepEqual((await texts(page, "#grid-table tbody th")).map((text) => words(text).slice(0, 5)), ["0 Bbu", "64 Bb", "256 B", "1 KiB", "4 KiB", "64 Ki", "1 MiB"]);
  });
});

test("signatures are counted by the second, and their cycles for each", async () => {
  const data = madeUp();
  const run = structuredClone(data.runs[2]);
  const [found] = run.cases;
  Object.assign(run, { suite: "signatures", run: "2026-01-04T08:00:00Z-dddd" });
  const verify = (/** @type {number} */ count) => ({ ...found, case: `verify/${count}`, bytes: count * 128, unit: "signature", count, ns: count * 20_000, against: [{ ...found.against[0], ns: count * 20_400, ratio: [1.01, 1.02, 1.03] }] });
  run.cases = [verify(1), verify(64)];
  data.runs.push(run);
  await withPage(pageWith("signatures", data), { hash: `#${new URLSearchParams(viewOf(run))}` }, async (page) => {
    const rows = await gridOf(page);
    assert.deepEqual(rows[1]?.cells.map((cell) => words(cell.text)), ["✓50.0 k/s 60.0 k cycles", "49.0 k/s 61.2 k cycles ours 1.02×"]);
    assert.equal(await page.textContent("#throughput-unit"), "Signatures a second");
    assert.equal(words(await page.textContent("#grid-table th")), "Signatures");
  });
});

test("many sizes are shortened to the main ones, never by one that ours does not win, and the address can have them all", async () => {
  const data = madeUp();
  const run = data.runs[2];
  const [even, lost, won] = ["hash/4096", "hash/1024", "hash/64"].map((name) => run.cases.find((/** @type {Case} */ found) => found.case === name));
  const like = (/** @type {Case} */ found, /** @type {number} */ bytes) => ({ ...found, case: `hash/${bytes}`, bytes, count: bytes });
  run.cases = [...[65, 130, 195, 260, 325, 390, 455, 520, 585, 650, 715, 780].map((bytes) => like(won, bytes)), like(won, 1024), like(lost, 3000), like(even, 5000)];
  const copy = pageWith("sizes", data);
  await withPage(copy, {}, async (page) => {
    const sizes = () => page.locator("#grid-table tbody tr").evaluateAll((rows) => rows.map((row) => /** @type {HTMLElement} */ (row).dataset["case"]));
    assert.deepEqual(await sizes(), ["hash/1024", "hash/3000", "hash/5000"]);
    await page.click("text=Show all 15 sizes");
    assert.equal((await sizes()).length, 15);
    assert.match(await page.evaluate(() => location.hash), /sizes=all/);
    await page.reload();
    assert.equal((await sizes()).length, 15);
    await page.click("text=Show the 3 main sizes");
    assert.equal((await sizes()).length, 3);
  });
});

const TIP = "#explain";

test("a word explains itself by keyboard, pointer and finger", async () => {
  await withPage(pageWith("words", madeUp()), {}, async (page) => {
    const lane = page.locator("#lane-label");
    for (let i = 0; i < 40 && !(await lane.evaluate((word) => word === document.activeElement)); i++) await page.keyboard.press("Tab");
    assert.match((await page.textContent(TIP)) ?? "", /^LaneA class of machines/);
    assert.ok(await page.isVisible(TIP));
    await page.keyboard.press("Escape");
    assert.equal(await page.isVisible(TIP), false);
    await page.keyboard.press("Enter");
    assert.ok(await page.isVisible(TIP), "and again with Enter");
    await page.keyboard.press("Tab");
    assert.equal(await page.isVisible(TIP), false, "what follows is not covered");
    await page.hover("#grid-legend [data-word=ratio]");
    assert.match((await page.textContent(TIP)) ?? "", /^Ratio/);
    await page.hover(TIP);
    assert.ok(await page.isVisible(TIP), "the pointer may go to the explanation");
    await page.mouse.move(5, 5);
    await page.waitForSelector(TIP, { state: "hidden" });
  });
  await phone(built, async (page) => {
    const all = await page.locator(".word").all();
    assert.ok(all.length > 20);
    for (const word of all) {
      if (!(await word.isVisible())) continue;
      await word.tap();
      const box = await page.locator(TIP).boundingBox();
      assert.ok(box && box.x >= 0 && box.x + box.width <= 390, `${await word.textContent()}: ${JSON.stringify(box)}`);
      await page.tap(TIP);
      assert.equal(await page.isVisible(TIP), false, "it may cover the next word");
    }
    await page.tap("#lane-label");
    await page.tap("#grid-about");
    assert.equal(await page.isVisible(TIP), false);
  });
});

test("every word that is explained stands in the list at the end, and the words that newcomers ask for are there", async () => {
  await withPage(built, {}, async (page) => {
    const lost = await page.locator(".word").evaluateAll((all) => all.filter((word) => !document.getElementById(word.getAttribute("aria-describedby") ?? "")?.textContent).map((word) => word.outerHTML));
    assert.deepEqual(lost, []);
    const listed = await texts(page, "#words dt");
    for (const word of ["Lane", "Launch", "Control", "Ratio", "Kernel", "Quantile", "c/B", "GB/s", "Case", "Suite"]) assert.ok(listed.includes(word), word);
    const used = await page.locator(".word").evaluateAll((all) => all.map((word) => /** @type {HTMLElement} */ (word).dataset["word"]));
    for (const word of ["lane", "launch", "control", "ratio", "kernel", "quantile", "cycles", "gbs"]) assert.ok(used.includes(word), `${word} is explained in its place`);
    const last = await page.evaluate(() => [...document.querySelectorAll("main:not(.problem) section h2")].at(-1)?.textContent);
    assert.equal(last, "Words");
    const { suites, runs } = await dataOf(page);
    for (const { suite } of runs) assert.ok(suites.some((known) => known.name === suite), `${suite} is described`);
  });
});

test("a phone scrolls the grid within its box, never the page, and the sizes stay in sight", async () => {
  await phone(built, async (page) => {
    const data = await dataOf(page);
    let scrolled = 0;
    for (const run of newest(data)) {
      // The group in which most are compared.
      const [widest] = [...run.cases].sort((a, b) => b.against.length - a.against.length);
      const group = groupOf(widest?.case ?? "");
      await go(page, { ...viewOf(run), group });
      const found = await page.evaluate(() => {
        const root = document.documentElement;
        const box = /** @type {HTMLElement} */ (document.querySelector("#grid"));
        box.scrollLeft = 1000;
        const size = document.querySelector("#grid-table tbody th")?.getBoundingClientRect();
        const frame = box.getBoundingClientRect();
        return { beyond: root.scrollWidth - root.clientWidth, inner: box.scrollWidth > box.clientWidth, off: (size?.left ?? NaN) - frame.left, wide: (size?.width ?? NaN) / frame.width };
      });
      assert.equal(found.beyond, 0, `${run.suite} ${group}`);
      if (found.inner) scrolled++;
      assert.ok(found.off >= 0 && found.off < 3 && found.wide < 0.5, `${run.suite} ${group}: ${JSON.stringify(found)}`);
    }
    assert.ok(scrolled > 0, "some grid is wider than a phone");
  });
  // Of two peers all is in sight at once.
  await phone(built, async (page) => {
    assert.equal(await page.evaluate(() => { const box = document.querySelector("#grid"); return (box?.scrollWidth ?? 1) - (box?.clientWidth ?? 0); }), 0);
    await page.locator("#grid-title").scrollIntoViewIfNeeded();
    await page.screenshot({ path: join(pictures, "phone-grid.png") });
  }, "#lane=intel-spr&suite=oneshot&group=hash");
});

test("who wants less motion has none", async () => {
  for (const [reducedMotion, behavior] of /** @type {const} */ ([["reduce", "auto"], ["no-preference", "smooth"]])) {
    await withPage(built, { options: { reducedMotion } }, async (page) => {
      assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).scrollBehavior), behavior);
      const moving = await page.evaluate(() => document.getAnimations().length + [...document.querySelectorAll("*")].filter((one) => parseFloat(getComputedStyle(one).transitionDuration) > 0).length);
      assert.equal(moving, 0);
    });
  }
});
