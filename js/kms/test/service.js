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

test("a key of RSA signs as the caller says", async () => {
  const key = await client.createKey({ label: `${label}-rsa`, algorithm: "rsa-2048" });
  const scheme = /** @type {const} */ ({ hash: "sha384", padding: "pkcs1v15" });
  const made = await client.sign(key.id, message, scheme);
  const verdicts = [scheme, { hash: scheme.hash }, { padding: scheme.padding }, {}].map((one) =>
    client.verify(made.key, message, made.signature, one),
  );
  assert.deepEqual(await Promise.all(verdicts), [true, false, false, false]);
});

// The service's settings name the key "client-jwt", with one audience.
test("a JWT is signed", async () => {
  const claims = { sub: "job-7", aud: "https://api.example.org" };
  const made = await client.signJwt("client-jwt", claims, { lifetimeSeconds: 30 });
  const [header, payload, signature] = made.jwt.split(".");
  const signed = new TextEncoder().encode(`${header}.${payload}`);
  assert.equal(await client.verify(made.key, signed, Buffer.from(signature ?? "", "base64url")), true);
  const said = JSON.parse(Buffer.from(payload ?? "", "base64url").toString());
  assert.deepEqual([said.sub, said.jti, said.exp - said.iat], ["job-7", made.id, 30]);
  // As long as the settings permit.
  assert.ok((await client.signJwt("client-jwt", claims)).expires > made.expires);
  await assert.rejects(client.signJwt("client-jwt", { aud: "https://other.example.org" }), { code: "forbidden" });
});

test("values are encrypted, rewrapped and decrypted", async () => {
  for (const algorithm of ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305", "xchacha20-poly1305"]) {
    const key = await client.createKey({ algorithm });
    assert.equal(key.versions[0]?.publicKey, null);
    assert.equal(key.derivation, "none");
    const options = { associatedData: message };
    const made = await client.encrypt(key.id, message, options);
    assert.deepEqual((await client.decrypt(key.id, made.ciphertext, options)).plaintext, message);
    await assert.rejects(client.decrypt(key.id, made.ciphertext), { code: "invalid_ciphertext" });
    await client.rotate(key.id);
    assert.equal((await client.rewrap(key.id, made.ciphertext, options)).version, 2);
    const dataKey = await client.generateDataKey(key.id, { bits: 512, ...options });
    assert.equal(dataKey.plaintext.length, 64);
    assert.deepEqual((await client.decrypt(key.id, dataKey.ciphertext, options)).plaintext, dataKey.plaintext);
    const wrapped = await client.generateWrappedDataKey(key.id);
    assert.equal((await client.decrypt(key.id, wrapped.ciphertext)).plaintext.length, 32);
    // Two requests.
    const results = await client.encryptMany(key.id, Array.from({ length: 1001 }, () => ({ plaintext: message })));
    const last = results[1000];
    assert.ok(last?.status === "fulfilled");
    const items = [{ ciphertext: last.value.ciphertext }, { ciphertext: message }];
    const [good, bad] = await client.decryptMany(key.id, items);
    assert.ok(good?.status === "fulfilled" && bad?.status === "rejected");
    assert.deepEqual(good.value.plaintext, message);
    assert.equal(bad.reason.code, "invalid_ciphertext");
    assert.deepEqual((await client.rewrapMany(key.id, items)).map(({ status }) => status), ["fulfilled", "rejected"]);
  }
});

test("keys are derived from a context", async () => {
  for (const derivation of /** @type {const} */ (["per_context", "convergent"])) {
    const key = await client.createKey({ algorithm: "aes-256-gcm", derivation });
    assert.equal(key.derivation, derivation);
    const [first, second] = [await client.encrypt(key.id, message, { context: message }), await client.encrypt(key.id, message, { context: message })];
    assert.equal(Buffer.compare(first.ciphertext, second.ciphertext) === 0, derivation === "convergent");
    assert.deepEqual((await client.decrypt(key.id, first.ciphertext, { context: message })).plaintext, message);
    await assert.rejects(client.decrypt(key.id, first.ciphertext, { context: Uint8Array.of(1) }), { code: "invalid_ciphertext" });
  }
});

test("a secret is derived with the public key of a peer", async () => {
  const key = await client.createKey({ algorithm: "ecdh-p256" });
  const peer = await crypto.subtle.generateKey({ name: "ECDH", namedCurve: "P-256" }, false, ["deriveBits"]);
  const spki = new Uint8Array(await crypto.subtle.exportKey("spki", peer.publicKey));
  const secret = await client.deriveSharedSecret(key.id, spki);
  const point = key.versions[0]?.publicKey;
  assert.ok(point);
  const ours = await crypto.subtle.importKey("raw", point, { name: "ECDH", namedCurve: "P-256" }, false, []);
  const theirs = await crypto.subtle.deriveBits({ name: "ECDH", public: ours }, peer.privateKey, 256);
  assert.deepEqual(secret, new Uint8Array(theirs));
  await assert.rejects(client.deriveSharedSecret(key.id, message), { code: "invalid_public_key" });
});

// The signed request has characters that JSON may write in two ways.
test("a key is used with approvals", async () => {
  const people = await Promise.all(["ann", "bob"].map(async (approver) => {
    const pair = await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
    const publicKey = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
    const sign = async (/** @type {Uint8Array<ArrayBuffer>} */ bytes) => new Uint8Array(await crypto.subtle.sign("Ed25519", pair.privateKey, bytes));
    return { approver, publicKey, sign };
  }));
  const [ann, bob] = people;
  assert.ok(ann && bob);
  const approvalRule = { threshold: 2, approvers: people.map(({ approver, publicKey }) => ({ name: approver, publicKey })), maxSeconds: 3600 };
  const key = await client.createKey({ approvalRule });
  assert.deepEqual(key.approvalRule, { ...approvalRule, requesterMayApprove: false });
  const hello = new TextEncoder().encode("hello");
  const subject = /** @type {const} */ ({ operation: "sign", digest: "ea8f163db38682925e4491c5e58d4bb3506ef8c14eb78a86e908c5624a67200f", size: 5, name: "é&.txt" });
  await assert.rejects(client.sign(key.id, hello), { code: "approval_required" });
  const request = await client.requestApproval({ key: key.id, subject, reason: "why \"not\" \\ é<&>\u{7f510}", expiresInSeconds: 90 });
  assert.deepEqual([request.state, request.threshold, request.subject], ["waiting", 2, subject]);
  assert.equal(request.expires.getTime() - request.created.getTime(), 90_000);
  await assert.rejects(client.approve(request, { approver: "ann", sign: bob.sign }), { code: "forbidden" });
  await client.approve(request, ann);
  await assert.rejects(client.sign(key.id, hello, { approval: request.id }), { code: "approval_required" });
  assert.equal((await client.approve(request, bob)).state, "approved");
  const made = await client.sign(key.id, hello, { approval: request.id });
  assert.equal(await client.verify(made.key, hello, made.signature), true);
  await assert.rejects(client.sign(key.id, hello, { approval: request.id }), { code: "approval_required" });
  assert.equal((await client.approval(request.id)).state, "used");
  const refused = await client.requestApproval({ key: key.id, subject, reason: "again" });
  assert.equal((await client.reject(refused, ann)).state, "rejected");
  const listed = [];
  for await (const { id } of client.approvals()) listed.push(id);
  assert.ok(listed.includes(refused.id) && listed.includes(request.id));
});

test("MACs are made and verified, and random bytes are made", async () => {
  for (const [algorithm, length] of /** @type {const} */ ([["hmac-sha256", 32], ["hmac-sha384", 48], ["hmac-sha512", 64], ["blake3", 32]])) {
    const key = await client.createKey({ algorithm });
    const made = await client.mac(key.id, message);
    assert.equal(made.mac.length, length);
    assert.equal(await client.verifyMac(made.key, message, made.mac), true);
    assert.equal(await client.verifyMac(made.key, made.mac, made.mac), false);
    await client.rotate(key.id);
    const [again] = await client.macMany(key.id, [message]);
    assert.ok(again?.status === "fulfilled" && again.value.version === 2);
    const verdicts = await client.verifyMacMany(key.id, [{ message, mac: made.mac, version: 1 }, { message, mac: made.mac }, { message, mac: made.mac, version: 9 }]);
    assert.deepEqual(verdicts.map(({ valid }) => valid), [true, false, false]);
    assert.equal(verdicts[2]?.error?.code, "unknown_version");
  }
  assert.equal((await client.random(32)).length, 32);
  await assert.rejects(client.random(0), { code: "malformed_request" });
});
