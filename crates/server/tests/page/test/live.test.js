// What moves: rates and latencies, and the audit log.

import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { picture, withPage } from "./open.js";
import { development, withKeystore } from "./service.js";

const MESSAGE = Buffer.from("hello").toString("base64");
const refused = ["/api/v1/", "/metrics"];

let service;

before(async () => { service = await development(); });
after(() => service?.stop());

async function signIn(page, token) {
  await page.getByLabel("Capability token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Keys" }).waitFor();
}

test("the charts move when something signs, and the figures are those of the service", async () => {
  await service.api("/api/v1/keys", { body: { label: "busy" } });
  await withPage(service.origin, { hash: "#/activity" }, async (page) => {
    await page.getByRole("img", { name: /Operations per second/ }).waitFor();
    const before = await page.getByRole("img", { name: /Operations per second/ }).getAttribute("aria-label");
    assert.match(before, /now 0$/);
    let stop = false;
    const signing = (async () => {
      while (!stop) await service.api("/api/v1/keys/busy/sign", { body: { message: MESSAGE } });
    })();
    const row = page.getByRole("table", { name: "Operations now" }).locator("tbody tr").filter({ hasText: /^sign/ });
    await row.filter({ hasText: /[1-9][0-9.,]*\/s.*(µs|ms).*(µs|ms)/ }).waitFor();
    // Two readings that saw it make a line.
    await page.waitForFunction(() => [...document.querySelectorAll(".plot .line")].some((line) => /L/.test(line.getAttribute("d")) && line.getBBox().height > 5));
    await page.getByRole("img", { name: /Latency.*sign p50 [0-9.]+ (µs|ms), sign p99 [0-9.]+ (µs|ms)/ }).waitFor();
    await page.getByRole("img", { name: /Calls in a batch.*now [1-9]/ }).waitFor();
    stop = true;
    await signing;
    await page.getByRole("img", { name: /Operations per second.*now 0$/ }).waitFor();
    const metrics = await (await fetch(`${service.origin}/metrics`)).text();
    const total = /kms_ops_total\{op="sign",alg="ed25519"\} (\d+)/.exec(metrics)[1];
    assert.equal((await row.locator("td").last().textContent()).replaceAll(",", ""), total);
    await picture(page, "activity");
  });
});

test("the page stops reading the metrics when nobody looks at them", async () => {
  await withPage(service.origin, { hash: "#/activity", clock: true }, async (page) => {
    await page.getByRole("img", { name: /Operations per second/ }).waitFor();
    await page.getByRole("link", { name: "Keys", exact: true }).click();
    await page.getByRole("heading", { name: "Keys" }).waitFor();
    let asked = 0;
    page.on("request", (request) => { asked += request.url().endsWith("/metrics") ? 1 : 0; });
    // The page would ask in this time, and before what is asked here.
    await page.clock.runFor(10_000);
    await page.evaluate(async () => { await (await fetch("/api/v1/health")).text(); });
    assert.equal(asked, 0);
  });
});

test("metrics are read and computed as they are meant", async () => {
  await withPage(service.origin, {}, async (page) => {
    const found = await page.evaluate(async () => {
      const { parse, reading, between, quantile } = await import("/ui/metrics.js");
      const text = (sign, fast, slow) => [
        "# TYPE kms_ops counter",
        `kms_ops_total{op="sign",alg="ed25519"} ${sign}`,
        `kms_ops_total{op="sign",alg="ml-dsa-44"} ${sign * 2}`,
        'kms_failures_total{op="sign",kind="key_disabled"} 4',
        `kms_op_latency_seconds_bucket{le="0.000001",op="sign"} ${fast}`,
        `kms_op_latency_seconds_bucket{le="0.000002",op="sign"} ${fast + slow}`,
        `kms_op_latency_seconds_bucket{le="+Inf",op="sign"} ${fast + slow}`,
        `kms_op_latency_seconds_count{op="sign"} ${fast + slow}`,
        "kms_batch_len_sum 30.0", "kms_batch_len_count 10", "# EOF",
      ].join("\n");
      const first = reading(text(100, 100, 0), 0);
      const step = between(first, reading(text(300, 100, 50), 2000));
      const restarted = between(first, reading(text(10, 10, 0), 1000));
      return {
        hostile: parse('a{b="x\\"} 1\\n",c="<i>"} 7').map(({ name, labels, value }) => [name, [...labels], value]),
        one: step.rates.get("sign ed25519"), both: step.rates.get("sign"), all: step.all, failures: step.failures.get("sign"),
        p50: step.latencies.get("sign").p50, p99: step.latencies.get("sign").p99, batch: step.batch,
        restarted: [restarted.rates.get("sign ed25519"), restarted.latencies.get("sign").p50],
        above: quantile([[1, 0], [Infinity, 3]], 0.5) === Infinity, none: quantile([[1, 0], [Infinity, 0]], 0.5),
      };
    });
    assert.deepEqual(found.hostile, [["a", [["b", 'x"} 1\n'], ["c", "<i>"]], 7]]);
    assert.deepEqual([found.one, found.both, found.all, found.failures], [100, 300, 300, 0]);
    assert.ok(Math.abs(found.p50 - 1.5e-6) < 1e-12 && Math.abs(found.p99 - 1.99e-6) < 1e-12, `${found.p50} ${found.p99}`);
    assert.equal(found.batch, null);
    assert.deepEqual(found.restarted, [10, 5e-7]);
    assert.deepEqual([found.above, found.none], [true, null]);
  });
});

test("a service without an audit log says so", async () => {
  await withPage(service.origin, { hash: "#/audit", refused }, async (page) => {
    await page.getByText("This service keeps no audit log").waitFor();
    assert.equal(await page.getByRole("button", { name: "Verify the log" }).count(), 0);
    await picture(page, "audit-none");
  });
});

test("the audit log is shown, the newest entries first, and verified", async () => {
  const tokens = { operator: { operations: ["read", "sign", "audit"] }, reader: { operations: ["sign"] } };
  const logged = await withKeystore({ hasLog: true, tokens });
  try {
    const token = logged.tokens.operator;
    const sign = () => logged.api("/api/v1/keys/default/sign", { token, body: { message: MESSAGE } });
    for (let count = 0; count < 60; count += 1) await sign();
    await logged.api("/api/v1/audit-log/checkpoint", { token, method: "POST" });
    await sign();
    await withPage(logged.origin, { hash: "#/audit", refused }, async (page) => {
      await page.getByLabel("Capability token").fill(token);
      await page.getByRole("button", { name: "Sign in" }).click();
      const rows = page.getByRole("table", { name: "Entries" }).locator("tbody tr");
      await rows.first().waitFor();
      const newest = (await logged.api("/api/v1/audit-log/entries?limit=1000", { token })).entries.at(-1);
      const [number, , who, operation, , result] = await rows.first().locator("th, td").allTextContents();
      assert.deepEqual([number, who, operation, result], [String(newest.number), newest.who, "sign", "ok"]);
      await page.getByRole("button", { name: "Older" }).click();
      await page.waitForFunction(() => document.querySelector(".pages .about").textContent.startsWith("Entries 0 to"));
      await page.getByRole("button", { name: "Newest" }).click();
      const verify = page.getByRole("button", { name: "Verify the log" });
      const verified = async () => {
        await sign();
        await verify.click();
        await page.getByText("The log is whole.").waitFor();
        return page.textContent(".notice.good");
      };
      // A checkpoint comes once a minute. It may come between the entry and the verification, but
      // not twice in a row.
      const open = /not yet signed by a checkpoint/;
      const first = await verified();
      assert.match(open.test(first) ? first : await verified(), open);
      await picture(page, "audit");
      tamper(logged.folder);
      await verify.click();
      await page.getByText("The log is not whole.").waitFor();
      assert.ok(await page.getByRole("table", { name: "Problems of the log" }).locator("tbody tr").count() > 0);
      await picture(page, "audit-broken");
    });
    await withPage(logged.origin, { refused }, async (page) => {
      await signIn(page, logged.tokens.reader);
      await page.getByRole("link", { name: "Audit log" }).click();
      await page.getByText("You may not read the audit log").waitFor();
      await page.getByRole("link", { name: "Activity" }).click();
      await page.getByText("You may not read the metrics").waitFor();
    });
  } finally {
    await logged.stop();
  }
});

/** Changes the caller in an entry of the log, behind the service's back. */
function tamper(folder) {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile() && /"op":"sign"/.test(readFileSync(join(file.parentPath, file.name), "latin1")));
  assert.ok(found.length > 0, "the log has no file");
  const path = join(found[0].parentPath, found[0].name);
  writeFileSync(path, readFileSync(path, "latin1").replace('"op":"sign"', '"op":"read"'), "latin1");
}
