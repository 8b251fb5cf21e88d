// Keys: made, rotated, changed and found by the page, and changed by nobody else.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { picture, withPage } from "./open.js";
import { development } from "./service.js";

let service;

before(async () => { service = await development(); });
after(() => service?.stop());

const create = (body) => service.api("/api/v1/keys", { body });
const read = (key) => service.api(`/api/v1/keys/${encodeURIComponent(key)}`);
const hashOf = (key) => `#/keys/${encodeURIComponent(key.key)}`;
const said = (page, text) => page.waitForFunction((text) => document.querySelector("#announcement").textContent.trim() === text, text);

/** Confirms in the dialog. */
const confirm = (page, name) => page.locator("dialog").getByRole("button", { name, exact: true }).click();
const act = (page, name) => page.getByRole("group", { name: "Actions" }).getByRole("button", { name, exact: true }).click();

test("development needs no sign-in, and a banner says what it is", async () => {
  await withPage(service.origin, {}, async (page) => {
    await page.getByRole("heading", { name: "Keys" }).waitFor();
    assert.match(await page.textContent("#development"), /Development.*Every caller may do everything/s);
    assert.ok(await page.isVisible("#development"));
    const color = await page.evaluate(() => getComputedStyle(document.querySelector("#development")).backgroundColor);
    assert.equal(color, "rgb(179, 38, 30)");
    await page.waitForFunction(() => document.querySelector("#health-text").textContent === "Ready");
    assert.equal(await page.getByRole("button", { name: "Sign out" }).isVisible(), false);
  });
});

test("/ui leads to the page, whose answers say that nothing else may run", async () => {
  const moved = await fetch(`${service.origin}/ui`, { redirect: "manual" });
  assert.equal(moved.status, 308);
  assert.equal(new URL(moved.headers.get("location"), moved.url).pathname, "/ui/");
  const page = await fetch(`${service.origin}/ui/`);
  const policy = page.headers.get("content-security-policy");
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]) {
    assert.ok(policy.split("; ").includes(part), part);
  }
  assert.doesNotMatch(policy, /unsafe|\*|https?:/);
  assert.equal(page.headers.get("x-content-type-options"), "nosniff");
  assert.equal(page.headers.get("referrer-policy"), "no-referrer");
  const tag = page.headers.get("etag");
  const again = await fetch(`${service.origin}/ui/`, { headers: { "if-none-match": tag } });
  assert.equal(again.status, 304);
  assert.equal(await again.text(), "");
  const other = await fetch(`${service.origin}/ui/`, { headers: { "if-none-match": '"other"' } });
  assert.equal(other.status, 200);
  assert.equal((await fetch(`${service.origin}/ui/nothing.js`)).status, 404);
});

test("a key is created, and the page shows what the service has", async () => {
  await withPage(service.origin, {}, async (page) => {
    await page.getByRole("button", { name: "Create a key" }).click();
    await page.getByLabel("Label", { exact: true }).fill("invoices");
    await page.getByRole("combobox", { name: "Algorithm" }).last().selectOption("ml-dsa-44");
    await page.getByLabel("Rotate after days").fill("90");
    await picture(page, "create");
    await confirm(page, "Create");
    await page.getByRole("heading", { name: "invoices" }).waitFor();
    const key = await read("invoices");
    assert.deepEqual([key.algorithm, key.rotation.max_age_seconds, key.exportable], ["ml-dsa-44", 90 * 86_400, false]);
    assert.match(await page.textContent(".facts"), /every 90 days/);
    assert.match(await page.textContent(".facts"), new RegExp(key.key));
  });
});

test("what the service refuses is shown in the dialog, which stays open", async () => {
  await create({ label: "taken" });
  await withPage(service.origin, { refused: ["/api/v1/keys"] }, async (page) => {
    await page.getByRole("button", { name: "Create a key" }).click();
    await page.getByLabel("Label", { exact: true }).fill("taken");
    await confirm(page, "Create");
    await page.locator("dialog .wrong").filter({ hasText: /label/ }).waitFor();
    await page.getByLabel("Rotate after days").fill("soon");
    await confirm(page, "Create");
    await page.locator("dialog .wrong").filter({ hasText: "Days: enter a whole number" }).waitFor();
  });
});

test("a key is rotated, and its versions are listed with their public keys", async () => {
  const key = await create({ label: "rotating" });
  await withPage(service.origin, { hash: hashOf(key), options: { permissions: ["clipboard-read", "clipboard-write"] } }, async (page) => {
    await act(page, "Rotate");
    await page.keyboard.press("Escape");
    assert.equal((await read("rotating")).head, 1, "Escape rotates nothing");
    await act(page, "Rotate");
    await confirm(page, "Rotate");
    await said(page, "The key is rotated");
    const now = await read("rotating");
    assert.equal(now.head, 2);
    const rows = page.getByRole("table", { name: /Versions/ }).locator("tbody tr");
    assert.equal(await rows.count(), 2);
    assert.match(await rows.nth(0).textContent(), /^2signs/);
    for (const [row, version] of [[0, now.versions[1]], [1, now.versions[0]]]) {
      assert.ok((await rows.nth(row).textContent()).includes(version.public_key));
      assert.ok((await rows.nth(row).textContent()).includes(version.created.slice(0, 10)));
    }
    await page.getByRole("button", { name: "Copy the public key of version 1" }).click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), now.versions[0].public_key);
    await picture(page, "key");
  });
});

test("a key is disabled, enabled, and its minimum version is changed", async () => {
  const key = await create({ label: "switched" });
  await service.api(`/api/v1/keys/switched/rotate`, { method: "POST" });
  await withPage(service.origin, { hash: hashOf(key) }, async (page) => {
    await act(page, "Disable");
    await confirm(page, "Disable");
    await said(page, "The key is disabled");
    assert.equal((await read("switched")).state, "disabled");
    assert.match(await page.textContent(".notice"), /does not sign/);
    await act(page, "Enable");
    await confirm(page, "Enable");
    await said(page, "The key is enabled");
    assert.equal((await read("switched")).state, "enabled");
    await act(page, "Minimum version");
    await page.getByLabel("Oldest version that verifies").selectOption("2");
    await confirm(page, "Change");
    await said(page, "The minimum version is changed");
    assert.equal((await read("switched")).minimum_version, 2);
    assert.equal(await page.getByText("does not verify").count(), 1);
  });
});

test("a change that another operator made meanwhile is not undone", async () => {
  const key = await create({ label: "shared" });
  await withPage(service.origin, { hash: hashOf(key), refused: ["/api/v1/keys/"] }, async (page) => {
    await act(page, "Change label");
    await service.api("/api/v1/keys/shared", { method: "PATCH", body: { label: "theirs" } });
    await page.locator("dialog").getByLabel("Label", { exact: true }).fill("ours");
    await confirm(page, "Change");
    await page.locator("dialog .wrong:not(:empty)").waitFor();
    assert.equal((await read(key.key)).label, "theirs");
  });
});

test("a destruction is scheduled, and canceled, only by one who types the key's label", async () => {
  const key = await create({ label: "doomed" });
  await withPage(service.origin, { hash: hashOf(key) }, async (page) => {
    await act(page, "Schedule destruction");
    const schedule = page.locator("dialog").getByRole("button", { name: "Schedule destruction" });
    assert.ok(await schedule.isDisabled());
    await page.getByLabel("Type doomed to confirm").fill("doome");
    assert.ok(await schedule.isDisabled());
    await page.keyboard.press("Enter");
    assert.equal((await read("doomed")).state, "enabled", "Enter does not get around it");
    await page.getByLabel("Type doomed to confirm").fill("doomed");
    await page.getByLabel("Days until destruction").fill("45");
    await schedule.click();
    await said(page, "The destruction is scheduled");
    const pending = await read("doomed");
    assert.equal(pending.state, "pending_destruction");
    const days = (Date.parse(pending.destroy_after) - Date.now()) / 86_400_000;
    assert.ok(days > 44 && days <= 45, String(days));
    assert.deepEqual(await page.getByRole("group", { name: "Actions" }).getByRole("button").allTextContents(), ["Cancel destruction"]);
    await act(page, "Cancel destruction");
    await page.getByLabel("Type doomed to confirm").fill("doomed");
    await confirm(page, "Cancel destruction");
    await said(page, "The destruction is canceled, and the key is disabled");
    assert.equal((await read("doomed")).state, "disabled");
  });
});

test("keys are found among more than a page of them", async () => {
  // It has one key already: the root key of its token.
  const other = await development();
  try {
    for (let number = 0; number < 260; number += 1) {
      await other.api("/api/v1/keys", { body: { label: `key-${String(number).padStart(3, "0")}`, ...(number === 259 && { algorithm: "ecdsa-p256" }) } });
    }
    await other.api("/api/v1/keys/key-007", { method: "PATCH", body: { enabled: false } });
    await withPage(other.origin, {}, async (page) => {
      const rows = page.getByRole("table", { name: "Keys" }).locator("tbody tr");
      const about = (text) => page.locator(".pages .about").filter({ hasText: text }).waitFor();
      await about("Keys 1 to 50 of 200 and more");
      for (const text of ["51 to 100", "101 to 150", "151 to 200", "201 to 250", "251 to 261 of 261"]) {
        await page.getByRole("button", { name: "Next" }).click();
        await about(text);
      }
      assert.ok(await page.getByRole("button", { name: "Next" }).isDisabled());
      // The search begins while the first page is on its way.
      let begin;
      const begun = new Promise((resolve) => { begin = resolve; });
      await page.route("**/api/v1/keys?*", async (route) => {
        await begun;
        await route.continue();
      }, { times: 1 });
      await page.reload();
      await page.getByLabel("Search by label or name").fill("KEY-25");
      begin();
      await about("Keys 1 to 10 of 10 of 261");
      assert.deepEqual((await rows.locator("a").allTextContents()).sort()[9], "key-259");
      await page.getByLabel("Algorithm").selectOption("ecdsa-p256");
      await about("Keys 1 to 1 of 1 of 261");
      await page.getByLabel("Algorithm").selectOption("");
      await page.getByLabel("Search by label or name").fill("");
      await page.getByLabel("State").selectOption("disabled");
      await about("Keys 1 to 1 of 1 of 261");
      assert.deepEqual(await rows.locator("a").allTextContents(), ["key-007"]);
      await page.getByLabel("Search by label or name").fill("nothing like this");
      await page.getByText("No key matches").waitFor();
    });
  } finally {
    await other.stop();
  }
});
