// The client against the real service, whose address is in BULLA_ADDR and whose token is in
// BULLA_TOKEN.
import assert from "node:assert/strict";
import { createPublicKey, verify } from "node:crypto";
import { test } from "node:test";
import { Client } from "bulla-kms";

const client = new Client(process.env["BULLA_ADDR"] ?? "", { token: process.env["BULLA_TOKEN"] ?? "" });
const label = `js-client-${process.pid}`;
const message = new TextEncoder().encode("a message");

test("keys sign, rotate and verify", async () => {
  const key = await client.createKey({ label });
  const first = await client.sign(label, message);
  const x = Buffer.from(key.versions[0]?.publicKey ?? []).toString("base64url");
  const node = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  assert.ok(verify(null, message, node, first.signature));
  assert.equal((await client.rotate(label)).latestVersion, 2);
  assert.equal(await client.verify(first.key, message, first.signature), true);
  assert.equal(await client.verify(label, message, first.signature), false, "the latest version did not sign it");
  const results = await client.signMany([{ key: label, message }, { key: "no-such-key", message }]);
  assert.ok(results[1]?.status === "rejected" && results[1].reason.code === "key_not_found");
  assert.ok(results[0]?.status === "fulfilled");
  const made = results[0].value;
  const items = [{ key: made.key, message, signature: made.signature }, { key: made.key, message: first.signature, signature: made.signature }];
  assert.deepEqual((await client.verifyMany(items)).map((one) => one.valid), [true, false]);
  await client.disable(label);
  await assert.rejects(client.sign(label, message), { code: "key_disabled" });
  const noted = [];
  for await (const entry of client.auditEntries()) if (entry.key === first.key && entry.operation === "sign") noted.push(entry);
  assert.deepEqual(noted.map(({ result }) => result), ["ok"]);
  for await (const entry of client.auditEntries(noted[0]?.number)) {
    assert.deepEqual(entry, noted[0]);
    break;
  }
  const found = [];
  for await (const one of client.keys()) if (one.label === label) found.push(one);
  assert.equal(found.length, 1);
  assert.equal(found[0]?.state, "disabled");
});
