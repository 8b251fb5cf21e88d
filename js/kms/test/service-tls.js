// The client against the real service with TLS. The folder BULLA_TLS has the addresses of the
// service and the certificates.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Client, KmsError } from "bulla-kms";
import { Agent, fetch } from "undici";

/** @param {string} name */
const file = (name) => readFileSync(`${process.env["BULLA_TLS"]}/${name}`, "utf8");
/** @type {Record<string, string>} */
const addresses = JSON.parse(file("addresses.json"));
const message = new TextEncoder().encode("a message");

/**
 * A client that trusts one authority, and shows a certificate unless that is undefined.
 * @param {string} address
 * @param {string} authority
 * @param {string} [shown]
 * @param {object} [settings] more settings of the connection
 */
function overTls(address, authority, shown, settings) {
  const identity = shown === undefined ? {} : { cert: file(`${shown}.pem`), key: file(`${shown}.key`) };
  const dispatcher = new Agent({ connect: { ca: file(`${authority}.pem`), ...identity, ...settings } });
  let requests = 0;
  /** @type {any} */
  const overAgent = (/** @type {string} */ url, /** @type {any} */ init) => {
    requests++;
    return fetch(url, { ...init, dispatcher });
  };
  const client = new Client(addresses[address] ?? "", { fetch: overAgent, backoff: 1 });
  return { client, requests: () => requests, close: () => dispatcher.close() };
}

test("a client certificate is a credential", async () => {
  const { client, close } = overTls("good", "authority", "client");
  const { id: key } = await client.createKey();
  const made = await client.sign(key, message);
  assert.equal(await client.verify(made.key, message, made.signature), true);
  const nobody = overTls("good", "authority");
  await assert.rejects(nobody.client.sign(key, message), { name: "KmsError", code: "unauthenticated" });
  await Promise.all([close(), nobody.close()]);
});

/** @type {[string, string, string, string, RegExp, object?][]} */
const refused = [
  ["the service's certificate is of another authority", "good", "other-authority", "client", /does not trust.*UNABLE_TO_VERIFY_LEAF_SIGNATURE/],
  ["the service's certificate is for another host", "other-host", "authority", "client", /does not trust.*ERR_TLS_CERT_ALTNAME_INVALID/],
  ["the service's certificate has expired", "expired", "authority", "client", /does not trust.*CERT_HAS_EXPIRED/],
  // In TLS 1.3, the service refuses it after the handshake, and undici only says that the
  // connection ended.
  ["the client's certificate has expired", "good", "authority", "expired-client", /the service refused the client's certificate/, { maxVersion: "TLSv1.2" }],
];
for (const [name, address, authority, shown, expected, settings] of refused) {
  test(`the request fails and is not repeated if ${name}`, async () => {
    const { client, requests, close } = overTls(address, authority, shown, settings);
    const error = await client.sign("k", message).then(() => undefined, (error) => error);
    assert.ok(error instanceof KmsError, String(error));
    assert.equal(error.code, "certificate");
    assert.equal(error.retryable, false);
    assert.match(error.message, expected);
    assert.ok(error.cause instanceof Error);
    assert.equal(requests(), 1);
    await close();
  });
}
