// Credentials: what signs in, what it permits, and that nothing keeps it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { picture, withPage } from "./open.js";
import { withKeystore } from "./service.js";

const EVERYTHING = ["sign", "verify", "create", "rotate", "update", "destroy", "restore", "read", "audit"];

let service;

before(async () => {
  service = await withKeystore({ tokens: { operator: { operations: EVERYTHING }, reader: { operations: ["read"] }, one: { operations: ["sign", "read"], keys: ["default"] } } });
});
after(() => service?.stop());

const refused = ["/api/v1/"];

async function signIn(page, token) {
  await page.getByLabel("Capability token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
}

test("without a credential there is a form, and a refused token is not kept", async () => {
  await withPage(service.origin, { refused }, async (page) => {
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    assert.equal(await page.isVisible("#development"), false);
    assert.equal(await page.isVisible("#nav"), false);
    await picture(page, "sign-in");
    for (const token of ["nonsense", `${service.tokens.reader.slice(0, -4)}AAAA`]) {
      await signIn(page, token);
      await page.getByText("The service refuses this token").waitFor();
    }
    await signIn(page, "ünicode");
    await page.getByText("This is not a token").waitFor();
    assert.equal(await page.isVisible("#nav"), false);
  });
});

test("a token is in the memory of the page only, and a reload forgets it", async () => {
  await withPage(service.origin, { refused }, async (page) => {
    const token = service.tokens.operator;
    const seen = [];
    page.on("request", (request) => {
      if (request.url().includes(token.slice(0, 20))) seen.push(request.url());
    });
    await signIn(page, `  ${token}\n`);
    await page.getByRole("link", { name: "default" }).click();
    await page.getByRole("heading", { name: "default" }).waitFor();
    const kept = await page.evaluate(async () => JSON.stringify([
      { ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state, await indexedDB.databases(), document.documentElement.outerHTML,
      [...document.querySelectorAll("input")].map((input) => input.value),
    ]));
    assert.ok(!kept.includes(token.slice(0, 20)), "the token is somewhere else");
    assert.deepEqual(seen, []);
    await page.reload();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  });
});

test("signing out forgets the token, and closes what it showed", async () => {
  await withPage(service.origin, { refused }, async (page) => {
    await signIn(page, service.tokens.operator);
    await page.getByRole("link", { name: "default" }).waitFor();
    await page.getByRole("banner").getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    assert.equal(await page.getByRole("link", { name: "default" }).count(), 0);
    await page.goBack();
    assert.equal(await page.getByRole("link", { name: "default" }).count(), 0);
  });
});

test("a token shows what it permits, and offers no more", async () => {
  await withPage(service.origin, { refused }, async (page) => {
    await signIn(page, service.tokens.reader);
    await page.getByRole("link", { name: "default" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Create a key" }).count(), 0);
    await page.getByRole("link", { name: "default" }).click();
    await page.getByRole("heading", { name: "Versions" }).waitFor();
    assert.equal(await page.getByRole("group", { name: "Actions" }).count(), 0);
    await page.getByRole("link", { name: "Access" }).click();
    await page.getByRole("heading", { name: "Operations" }).waitFor();
    assert.deepEqual(await page.locator(".tags li").allTextContents(), ["read"]);
    assert.match(await page.textContent(".facts"), /Tenantlocal/);
    assert.match(await page.textContent(".facts"), /Expires\d{4}-\d\d-\d\d /);
    await picture(page, "access");
  });
});

test("a token for one key shows that key alone", async () => {
  await withPage(service.origin, { refused }, async (page) => {
    await signIn(page, service.tokens.one);
    await page.getByRole("link", { name: "default" }).waitFor();
    assert.equal(await page.getByRole("table", { name: "Keys" }).locator("tbody tr").count(), 1);
    await page.getByRole("link", { name: "Access" }).click();
    await page.locator(".names a").click();
    await page.getByRole("heading", { name: "default" }).waitFor();
  });
});

test("a sealed service says so, and the page goes on when it is unsealed", async () => {
  const sealed = await withKeystore({ passphrase: "page under test", tokens: { reader: { operations: ["read"] } } });
  try {
    await withPage(sealed.origin, { refused }, async (page) => {
      await page.waitForFunction(() => document.querySelector("#health-text").textContent === "Sealed");
      await page.getByRole("heading", { name: "The service is sealed" }).waitFor();
      assert.equal(await page.getByLabel("Capability token").count(), 0);
      await picture(page, "sealed");
      await sealed.api("/api/v1/operator/unseal", { body: { passphrase: "page under test" } });
      await page.waitForFunction(() => document.querySelector("#health-text").textContent === "Ready");
      await signIn(page, sealed.tokens.reader);
      await page.getByRole("link", { name: "default" }).waitFor();
    });
  } finally {
    await sealed.stop();
  }
});
