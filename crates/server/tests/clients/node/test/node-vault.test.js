// node-vault, as it is, against the service in VAULT_ADDR.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import nodeVault from "node-vault";

const vault = nodeVault({ endpoint: process.env.VAULT_ADDR, token: process.env.VAULT_TOKEN });
const text = Buffer.from("a message").toString("base64");

async function key(type) {
  const name = `node-${randomUUID()}`;
  await vault.write(`transit/keys/${name}`, { type });
  return name;
}

test("a key signs and verifies", async () => {
  for (const type of ["ed25519", "ecdsa-p384", "rsa-2048"]) {
    const name = await key(type);
    const { data } = await vault.write(`transit/sign/${name}`, { input: text });
    const verify = { input: text, signature: data.signature };
    assert.equal((await vault.write(`transit/verify/${name}`, verify)).data.valid, true, type);
    verify.input = Buffer.from("another").toString("base64");
    assert.equal((await vault.write(`transit/verify/${name}`, verify)).data.valid, false, type);
  }
});

test("a key encrypts, decrypts, and is read and listed", async () => {
  const name = await key("aes256-gcm96");
  const made = await vault.encryptData({ name, plaintext: text });
  const found = await vault.decryptData({ name, ciphertext: made.data.ciphertext });
  assert.equal(found.data.plaintext, text);
  assert.equal((await vault.read(`transit/keys/${name}`)).data.latest_version, 1);
  assert.ok((await vault.list("transit/keys")).data.keys.includes(name));
});

test("the service and the token describe themselves", async () => {
  assert.equal((await vault.health()).initialized, true);
  assert.equal((await vault.status()).sealed, false);
  assert.ok((await vault.tokenLookupSelf()).data.policies.includes("sign"));
});

test("an error has its status and its words", async () => {
  const missing = vault.write("transit/sign/node-none", { input: text });
  await assert.rejects(missing, (error) => error.response.statusCode === 400 && /not found/.test(error.message));
});
