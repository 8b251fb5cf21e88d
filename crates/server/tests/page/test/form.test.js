// The page for everybody: by keyboard alone, with a screen reader, on a phone, in the dark, and
// with hostile data.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { weakText } from "./contrast.js";
import { focused, phone, picture, tabTo, withPage } from "./open.js";
import { development } from "./service.js";

let service;
let key;

before(async () => {
  service = await development();
  key = await service.api("/api/v1/keys", { body: { label: "invoices", rotation: { max_age_seconds: 7_776_000 } } });
  await service.api("/api/v1/keys/invoices/rotate", { method: "POST" });
  await service.api("/api/v1/keys/invoices", { method: "PATCH", body: { minimum_version: 2 } });
  await service.api("/api/v1/keys", { body: { label: "post-quantum", algorithm: "slh-dsa-shake-128f" } });
  await service.api("/api/v1/keys/post-quantum", { method: "PATCH", body: { enabled: false } });
  await service.api("/api/v1/keys", { body: { label: `long-${"x".repeat(59)}`, algorithm: "ml-dsa-87" } });
  await service.api("/api/v1/keys", { body: { algorithm: "x-wing", purpose: "mail" } });
  await service.api("/api/v1/keys", { body: { label: "old" } });
  await service.api("/api/v1/keys/old/schedule-destruction", { body: { after: new Date(Date.now() + 86_400_000).toISOString() } });
  await service.api("/api/v1/keys/invoices/sign", { body: { message: "aGVsbG8=" } });
});
after(() => service?.stop());

const refused = ["/api/v1/"];
const VIEWS = ["#/keys", "#/keys/invoices", "#/keys/post-quantum", "#/keys/old", "#/activity", "#/audit", "#/access"];

/** Waits until a view shows what it has. */
async function settled(page) {
  await page.waitForFunction(() => document.querySelector("main h1") !== null && !/Loading…|Reading the metrics…|come in two seconds/.test(document.querySelector("main").textContent));
  await page.waitForFunction(() => document.querySelector("#health-text").textContent === "Ready");
}

async function everyView(options, work) {
  await withPage(service.origin, { refused, options }, async (page) => {
    for (const view of VIEWS) {
      await page.evaluate((view) => { location.hash = view; }, view);
      await settled(page);
      await work(page, view);
    }
  });
}

test("a key is created, rotated and disabled by the keyboard alone", async () => {
  await withPage(service.origin, {}, async (page) => {
    await settled(page);
    await page.keyboard.press("Tab");
    assert.equal(await focused(page), "Skip to the content");
    assert.ok(await page.evaluate(() => document.activeElement.getBoundingClientRect().left >= 0), "the link is seen when it has the focus");
    await tabTo(page, "Create a key");
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineWidth);
    assert.equal(outline, "2px");
    await page.keyboard.press("Enter");
    assert.equal(await focused(page), "Label");
    await page.keyboard.type("by-keyboard");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "by-keyboard" }).waitFor();
    assert.equal(await focused(page), "by-keyboard", "the focus goes with the view");
    await tabTo(page, "Rotate");
    await page.keyboard.press("Space");
    assert.equal(await focused(page), "Rotate");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("#announcement").textContent === "The key is rotated");
    assert.equal(await focused(page), "Rotate", "the focus comes back");
    await tabTo(page, "Disable");
    await page.keyboard.press("Enter");
    assert.equal(await focused(page), "Cancel", "what harms is not one keystroke away");
    await tabTo(page, "Disable");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("#announcement").textContent === "The key is disabled");
    assert.equal((await service.api("/api/v1/keys/by-keyboard")).state, "disabled");
  });
});

test("a dialog keeps the focus, and Escape closes it and gives the focus back", async () => {
  await withPage(service.origin, {}, async (page) => {
    await settled(page);
    await tabTo(page, "Create a key");
    await page.keyboard.press("Enter");
    for (const direction of ["Tab", "Shift+Tab"]) {
      for (let steps = 0; steps < 20; steps += 1) {
        await page.keyboard.press(direction);
        const outside = await page.evaluate(() => document.activeElement !== document.body && document.activeElement.closest("dialog") === null);
        assert.equal(outside, false);
      }
    }
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("dialog").count(), 0);
    assert.equal(await focused(page), "Create a key");
  });
});

test("a screen reader finds landmarks, one heading of the first level, and a name for everything", async () => {
  await everyView({}, async (page, view) => {
    for (const landmark of ["banner", "navigation", "main", "contentinfo"]) assert.equal(await page.getByRole(landmark).count(), 1, `${view}: ${landmark}`);
    assert.equal(await page.locator("h1").count(), 1, view);
    assert.notEqual((await page.title()).replace("bulla", ""), "");
    const nameless = await page.evaluate(() => [...document.querySelectorAll("button, a, input, select, [role=img], [role=region], table")].filter((element) => {
      const labeled = element.getAttribute("aria-label") || element.labels?.length > 0 || element.caption?.textContent || element.textContent.trim();
      return !labeled;
    }).map((element) => element.outerHTML));
    assert.deepEqual(nameless, [], view);
    const ids = await page.evaluate(() => [...document.querySelectorAll("[id]")].map((element) => element.id));
    assert.equal(new Set(ids).size, ids.length, `${view}: an id twice`);
    assert.equal(await page.locator("nav [aria-current=page]").count(), 1, view);
  });
});

for (const [name, options] of [["a phone", phone], ["a desktop", {}]]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`on ${name}, ${colorScheme}, all text has contrast, and nothing is wider than the screen`, async () => {
      await everyView({ ...options, colorScheme }, async (page, view) => {
        const { count, found } = await page.evaluate(weakText);
        assert.ok(count > 10, `${view}: ${count} texts`);
        assert.deepEqual(found, [], view);
        const [wide, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        assert.ok(wide <= width && width === (options.viewport?.width ?? 1280), `${view}: ${wide} of ${width}`);
        await picture(page, `${view.replace(/[#/]+/g, "-").slice(1)}-${options.isMobile ? "phone" : "desktop"}-${colorScheme}`);
        if (view === "#/keys/invoices") {
          await page.getByRole("button", { name: "Schedule destruction" }).click();
          await page.getByLabel("Type invoices to confirm").fill("invoices");
          const dialog = await page.evaluate(weakText);
          assert.deepEqual(dialog.found, [], "the dialog");
          const box = await page.locator("dialog").boundingBox();
          assert.ok(box.x >= 0 && box.x + box.width <= width);
          await picture(page, `dialog-${options.isMobile ? "phone" : "desktop"}-${colorScheme}`);
          await page.keyboard.press("Escape");
        }
      });
    });
  }
}

test("on a phone, what a finger touches is large enough", async () => {
  await everyView(phone, async (page, view) => {
    const small = await page.evaluate(() => [...document.querySelectorAll("button, select, input")].filter((element) => element.checkVisibility())
      .filter((element) => element.getBoundingClientRect().height < 24).map((element) => element.outerHTML));
    assert.deepEqual(small, [], view);
  });
});

test("hostile data are text", async () => {
  const evil = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\u202e"\'`${1}';
  const version = { id: evil, version: 1, public_key: evil, created: evil, retired: evil, state: evil, origin: evil };
  const bad = { key: evil, label: evil, algorithm: evil, state: evil, revision: 1, backend: evil, exportable: false, minimum_version: 1, rotation: {}, head: 1, versions: [version] };
  const entry = { number: 0, time: evil, who: evil, operation: evil, key: evil, result: evil, digest: evil };
  const routes = {
    "/api/v1/keys?*": { body: JSON.stringify({ keys: [bad], next: null }) },
    "/api/v1/keys/*": { body: JSON.stringify(bad) },
    "/api/v1/tokens/self": { body: JSON.stringify({ name: evil, tenant: evil, operations: [evil, "read", "rotate"], keys: [evil], expires: evil, can_mint_tokens: false, revocation_ids: [] }) },
    "/api/v1/health": { body: JSON.stringify({ status: "ok", version: evil }) },
    "/api/v1/audit-log/checkpoint": { body: JSON.stringify({ log: evil, size: 1, root: evil, time: evil, key: evil, checkpoint: evil }) },
    "/api/v1/audit-log/entries?*": { body: JSON.stringify({ entries: [entry], next: null }) },
    "/api/v1/audit-log/verify": { body: JSON.stringify({ valid: false, entries: 1, checkpoints: 0, sealed: 0, problems: [{ kind: evil, file: evil, line: 1, entry: 0, message: evil }], checkpoint: null }) },
    "/metrics": { contentType: "text/plain", body: `kms_ops_total{op="<img src=x onerror=hacked=1>",alg="<b>"} 1\nkms_op_latency_seconds_count{op="<img src=x onerror=hacked=1>"} 1\n` },
  };
  await withPage(service.origin, { routes }, async (page) => {
    for (const view of ["#/keys", `#/keys/${encodeURIComponent(evil)}`, "#/keys/%E0%A4%A", "#/activity", "#/audit", "#/access"]) {
      await page.evaluate((view) => { location.hash = view; }, view);
      await settled(page);
      if (view === "#/audit") await page.getByRole("button", { name: "Verify the log" }).click();
      await page.waitForFunction(() => document.querySelector("main").textContent.includes("onerror"), null, { timeout: 10_000 });
      assert.equal(await page.evaluate(() => document.querySelectorAll("main img, main script, main b img").length), 0, view);
    }
    await page.evaluate(() => { location.hash = "#/keys/x"; });
    await page.getByRole("heading", { name: "<img" }).waitFor();
    assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  });
});

test("when the connection is lost the page says so, and goes on later", async () => {
  const other = await development();
  await withPage(other.origin, {}, async (page, { wrong }) => {
    await settled(page);
    await page.route("**/api/**", (route) => route.abort());
    await page.waitForFunction(() => document.querySelector("#health-text").textContent === "Not reachable");
    await page.unroute("**/api/**");
    await page.waitForFunction(() => document.querySelector("#health-text").textContent === "Ready");
    await page.getByRole("heading", { name: "Keys" }).waitFor();
    // Chromium reports each lost connection.
    wrong.splice(0, wrong.length, ...wrong.filter((line) => !/net::ERR_FAILED/.test(line)));
  });
  await other.stop();
});
