// The client: its requests, its repetitions, and its reading of answers. The suite `server` runs
// service.js, which tests it against the real service.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import { after, test } from "node:test";
import { BatchError, Client, KmsError } from "bulla-kms";

/**
 * @typedef {{ method: string, url: string, headers: import("node:http").IncomingHttpHeaders, body:
 * any }} Request
 */
/** @typedef {(request: Request, response: import("node:http").ServerResponse) => void} Handler */

/** @type {import("node:http").Server[]} */
const servers = [];
after(() => servers.forEach((server) => server.close()));

/**
 * A client of a server that answers with the handlers in turn, and with the last one ever after.
 * @param {Handler[]} handlers
 */
async function answering(...handlers) {
  /** @type {Request[]} */
  const requests = [];
  const server = createServer(async (message, response) => {
    let text = "";
    for await (const part of message) text += part;
    const { method = "", url = "", headers } = message;
    const request = { method, url, headers, body: text && JSON.parse(text) };
    requests.push(request);
    const handler = handlers[Math.min(requests.length, handlers.length) - 1];
    handler?.(request, response);
  });
  servers.push(server.listen(0, "127.0.0.1"));
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const address = `http://127.0.0.1:${port}/`;
  return { client: new Client(address, { token: " secret\n", backoff: 1, timeout: 5000 }), requests, address };
}

/** @param {unknown} body @param {number} status @returns {Handler} */
const answer = (body, status = 200) => (_, response) => {
  response.writeHead(status, { "content-type": "application/json", "x-request-id": "r-1" }).end(JSON.stringify(body));
};
const signed = answer({ key: "local/files/ed25519/x/v2", version: 2, signature: "AQI=" });
/** @param {string} id */
const key = (id) => ({
  key: id,
  label: null,
  algorithm: "ed25519",
  state: "enabled",
  revision: 1,
  backend: "software",
  exportable: false,
  minimum_version: 0,
  rotation: { max_age_seconds: 60 },
  head: 1,
  versions: [{ id: `${id}/v1`, version: 1, public_key: "AQ==", created: "2026-01-31T09:30:00.000Z", retired: null, state: "usable", origin: "generated" }],
});
const created = answer(key("local/files/ed25519/x"));
const busy = answer({ code: "busy", message: "later", retryable: true }, 503);
/** A server that is not the service. @param {number} status @returns {Handler} */
const proxy = (status) => (_, response) => void response.writeHead(status).end("<html>");
/** @param {string} seconds @returns {Handler} */
const asksToWait = (seconds) => (request, response) => {
  response.setHeader("retry-after", seconds);
  busy(request, response);
};
/** @type {Handler} */
const cut = (_, response) => void response.destroy();
const message = new Uint8Array([1, 2, 3]);

test("a request carries the token and escapes the key", async () => {
  const { client, requests } = await answering(signed);
  const made = await client.sign("a/b c", message);
  assert.deepEqual(made, { key: "local/files/ed25519/x/v2", version: 2, signature: new Uint8Array([1, 2]) });
  const [request] = requests;
  assert.equal(request?.url, "/api/v1/keys/a%2Fb%20c/sign");
  assert.equal(request?.headers.authorization, "Bearer secret");
  assert.deepEqual(request?.body, { message: "AQID" });
});

test("a call encrypts its argument, also if its options are an item of a batch", async () => {
  const { client, requests } = await answering(answer({ key: "local/orders/aes-256-gcm/x/v1", version: 1, ciphertext: "AQI=" }));
  const item = { plaintext: new Uint8Array([9]), associatedData: message };
  await client.encrypt("k", message, item);
  assert.deepEqual(requests[0]?.body, { plaintext: "AQID", associated_data: "AQID" });
});

test("a decryption names its approval", async () => {
  const { client, requests } = await answering(answer({ key: "k", version: 1, plaintext: "" }));
  await client.decrypt("orders", Uint8Array.of(1, 2), { approval: "id", context: Uint8Array.of(3) });
  assert.deepEqual(requests[0]?.body, { ciphertext: "AQI=", context: "Aw==", approval: "id" });
});

test("only what may help is repeated", async () => {
  const missing = answer({ code: "key_not_found", message: "no", retryable: false }, 404);
  /** @type {[string, (client: Client) => Promise<unknown>, Handler[], number, string][]} */
  const cases = [
    ["a busy service is asked again", (client) => client.sign("k", message), [busy, busy, signed], 3, ""],
    ["and not for ever", (client) => client.sign("k", message), [busy], 4, "busy"],
    ["a refusal stands", (client) => client.sign("k", message), [missing], 1, "key_not_found"],
    ["a lost answer to a signature is asked for again", (client) => client.sign("k", message), [cut, signed], 2, ""],
    ["and one to a creation", (client) => client.createKey(), [cut, created], 2, ""],
    ["an answer that is lost for ever is an error", (client) => client.createKey(), [cut], 4, "unreachable"],
    ["a creation that was refused for now is repeated", (client) => client.createKey(), [busy, missing], 2, "key_not_found"],
    ["a busy proxy is asked again for a signature", (client) => client.sign("k", message), [proxy(429), proxy(503), signed], 3, ""],
    ["and for a creation", (client) => client.createKey(), [proxy(503), created], 2, ""],
    ["a broken proxy is not asked again", (client) => client.sign("k", message), [proxy(502)], 1, "http"],
  ];
  for (const [name, call, handlers, count, code] of cases) {
    const { client, requests } = await answering(...handlers);
    const error = await call(client).then(() => undefined, (error) => error);
    assert.equal(requests.length, count, name);
    assert.equal(error instanceof KmsError ? error.code : error, code || undefined, name);
  }
});

test("a pause is as long as the service asks", async () => {
  const { client, requests } = await answering(asksToWait("1"), signed);
  const start = performance.now();
  await client.sign("k", message);
  assert.equal(requests.length, 2);
  assert.ok(performance.now() - start >= 990);
  const long = await answering(asksToWait("31"), signed);
  await assert.rejects(long.client.sign("k", message), { code: "busy" });
  assert.equal(long.requests.length, 1);
});

test("an error says what the service says", async () => {
  const { client } = await answering(answer({ code: "key_usage_mismatch", message: "it encapsulates", retryable: false }, 400));
  await assert.rejects(client.sign("k", message), { name: "KmsError", code: "key_usage_mismatch", status: 400, requestId: "r-1", retryable: false });
  const foreign = await answering(proxy(502));
  await assert.rejects(foreign.client.sign("k", message), { code: "http", status: 502 });
});

test("a token goes to nobody else", async () => {
  const elsewhere = await answering(signed);
  for (const status of [301, 302, 303, 307, 308]) {
    const moved = await answering((_, response) => void response.writeHead(status, { location: elsewhere.address }).end());
    await assert.rejects(moved.client.sign("k", message));
    assert.equal(elsewhere.requests.length, 0, `${status}`);
  }
});

test("an attempt that takes too long is given up, and repeated", { timeout: 60_000 }, async () => {
  for (const options of [{}, { signal: new AbortController().signal }]) {
    const { requests, address } = await answering(() => {}, signed);
    // So many, because a busy machine may be late again.
    const client = new Client(address, { timeout: 100, retries: 100, backoff: 1 });
    assert.equal((await client.sign("k", message, options)).version, 2);
    assert.ok(requests.length > 1);
  }
});

test("a batch has a result for each item, and long ones are several requests", async () => {
  const { client, requests } = await answering(({ body }, response) => {
    const results = body.items.map((/** @type {any} */ item) =>
      item.key === "no" ? { error: { code: "key_disabled", message: "no", retryable: false } } : { key: item.key, version: 1, signature: item.message },
    );
    response.end(JSON.stringify({ results }));
  });
  const items = Array.from({ length: 2001 }, (_, at) => ({ key: at === 1500 ? "no" : "k", message: new Uint8Array([at & 255]) }));
  const results = await client.signMany(items);
  assert.equal(requests.length, 3);
  results.forEach((result, at) => {
    if (at === 1500) assert.ok(result.status === "rejected" && result.reason.code === "key_disabled");
    else assert.ok(result.status === "fulfilled" && result.value.signature[0] === (at & 255));
  });
  const short = await answering(answer({ results: [] }));
  await assert.rejects(short.client.signMany([{ key: "k", message }]), { name: "BatchError", code: "unexpected_answer", results: [] });
});

test("a long batch keeps its results when a later request fails", async () => {
  const results = Array.from({ length: 1000 }, () => ({ key: "k", version: 1, signature: "BwcH", valid: true }));
  const refusal = answer({ code: "key_disabled", message: "no", retryable: false }, 409);
  const { client } = await answering(answer({ results }), refusal, answer({ results }), refusal);
  const items = Array.from({ length: 1001 }, () => ({ key: "k", message, signature: message }));
  /** @param {unknown} error @returns {error is BatchError<any>} */
  const kept = (error) => error instanceof BatchError && error instanceof KmsError && error.code === "key_disabled" && error.status === 409;
  await assert.rejects(client.signMany(items), (error) => kept(error) && error.results.length === 1000 && error.results[7].status === "fulfilled");
  await assert.rejects(client.verifyMany(items), (error) => kept(error) && error.results.length === 1000 && error.results[7].valid);
});

test("nothing but true is a valid signature", async () => {
  const { client } = await answering(answer({ valid: "yes" }), answer({}), answer({ results: [{ valid: true, error: { code: "x" } }, { valid: true }] }));
  assert.equal(await client.verify("k", message, message), false);
  assert.equal(await client.verify("k", message, message), false);
  const item = { key: "k", message, signature: message };
  const [bad, good] = await client.verifyMany([item, item]);
  assert.equal(bad?.valid, false);
  assert.equal(bad?.error?.code, "x");
  assert.deepEqual(good, { valid: true });
});

test("pages are one sequence", async () => {
  const { client, requests } = await answering(answer({ keys: [key("a")], next: "x/y" }), answer({ keys: [key("b")], next: null }));
  const keys = [];
  for await (const one of client.keys()) keys.push(one);
  assert.deepEqual(keys.map((one) => one.id), ["a", "b"]);
  const [first] = keys;
  assert.deepEqual(first?.rotation, { maxAgeSeconds: 60 });
  assert.deepEqual(first?.versions[0]?.publicKey, new Uint8Array([1]));
  assert.equal(first?.versions[0]?.created.getTime(), Date.UTC(2026, 0, 31, 9, 30));
  assert.equal(requests[1]?.url, "/api/v1/keys?limit=1000&after=x%2Fy");
});

test("requests for approval are one sequence", async () => {
  const time = "2026-01-31T09:30:00.000Z";
  const approval = (/** @type {string} */ id) => ({
    request: { id, key: "k", subject: { operation: "sign", digest: "d", size: 1 }, requester: "ci", reason: "r", created: time, expires: time },
    state: "waiting", threshold: 1, statements: [],
  });
  const { client, requests } = await answering(answer({ approvals: [approval("a")], next: "a" }), answer({ approvals: [approval("b")], next: null }));
  const ids = [];
  for await (const { id } of client.approvals()) ids.push(id);
  assert.deepEqual(ids, ["a", "b"]);
  const path = "/api/v1/approvals?limit=1000";
  assert.deepEqual(requests.map(({ url }) => url), [path, `${path}&after=a`]);
});

test("entries of the audit log are one sequence, from any number on", async () => {
  const entry = (/** @type {number} */ number) => ({ number, time: "2026-01-31T09:30:00.000Z", who: "app", operation: "sign", result: "ok", line: "l" });
  const { client, requests } = await answering(answer({ entries: [entry(5)], next: 5 }), answer({ entries: [entry(6)], next: null }));
  const entries = [];
  for await (const one of client.auditEntries(5)) entries.push(one);
  assert.deepEqual(entries.map(({ number, actor, key }) => [number, actor, key]), [[5, "app", null], [6, "app", null]]);
  assert.equal(entries[0]?.time.getTime(), Date.UTC(2026, 0, 31, 9, 30));
  const path = "/api/v1/audit-log/entries?limit=1000";
  assert.deepEqual(requests.map(({ url }) => url), [`${path}&after=4`, `${path}&after=5`]);
  const whole = await answering(answer({ entries: [], next: null }));
  for await (const one of whole.client.auditEntries()) assert.fail(String(one.number));
  assert.equal(whole.requests[0]?.url, path);
});

test("a message of any length arrives whole", async () => {
  const { client, requests } = await answering(signed);
  for (const length of [0, 1, 12_287, 12_288, 12_289, 100_000]) {
    const sent = Uint8Array.from({ length }, (_, at) => at % 251);
    await client.sign("k", sent);
    assert.equal(requests.at(-1)?.body.message, Buffer.from(sent).toString("base64"), `${length} bytes`);
  }
});

test("a signal ends a call before its first request", async () => {
  const { address, requests } = await answering(signed);
  let attempts = 0;
  const client = new Client(address, { fetch: (...request) => (attempts++, fetch(...request)) });
  await assert.rejects(client.sign("k", message, { signal: AbortSignal.abort("enough") }), (error) => error === "enough");
  assert.deepEqual([attempts, requests.length], [0, 0]);
});

test("a signal ends a request that is under way", async () => {
  const control = new AbortController();
  /** @type {Promise<void>} */
  let gone = Promise.resolve();
  const { client, requests } = await answering((_, response) => {
    gone = once(response, "close").then(() => {});
    control.abort("enough");
  });
  await assert.rejects(client.sign("k", message, { signal: control.signal }), (error) => error === "enough");
  await gone;
  assert.equal(requests.length, 1);
});

test("a signal ends the pause and the repetitions", async (context) => {
  const control = new AbortController();
  const { setTimeout } = globalThis;
  // The pause is the only one who waits for so long.
  const aborting = (/** @type {() => void} */ done, /** @type {number} */ milliseconds) => {
    if (milliseconds >= 30_000) queueMicrotask(() => control.abort("enough"));
    return setTimeout(done, milliseconds);
  };
  context.mock.method(globalThis, "setTimeout", aborting);
  let requests = 0;
  const client = new Client("http://127.0.0.1/", {
    fetch: async (_, init) => {
      init?.signal?.throwIfAborted();
      requests++;
      return Response.json({ code: "busy", message: "later", retryable: true }, { status: 503, headers: { "retry-after": "30" } });
    },
  });
  await assert.rejects(client.sign("k", message, { signal: control.signal }), (error) => error === "enough");
  assert.equal(requests, 1);
});

test("an address that is none is refused", () => {
  for (const address of ["", "localhost:8200", "ftp://x/"]) assert.throws(() => new Client(address), TypeError, address);
});

test("a change has a key by which its repetition is recognized", async () => {
  const { client, requests } = await answering(cut, created, created, signed);
  await client.createKey();
  await client.createKey();
  await client.sign("k", message);
  const [first, again, second, signature] = requests.map(({ headers }) => headers["idempotency-key"]);
  assert.ok(first && first === again && second && second !== first);
  assert.equal(signature, undefined);
});

test("a closed client ends what is under way and asks no more", async () => {
  /** @type {() => void} */
  let arrive = () => {};
  const arrived = new Promise((resolve) => (arrive = () => resolve(undefined)));
  const { client, requests } = await answering(() => arrive());
  const waiting = assert.rejects(client.sign("k", message), { name: "KmsError", code: "closed" });
  await arrived;
  await client[Symbol.asyncDispose]();
  await waiting;
  await assert.rejects(client.sign("k", message), { code: "closed" });
  assert.equal(requests.length, 1);
});

test("an answer of another form is an error", async () => {
  const answers = [answer([]), answer({ key: 1 }), answer({ key: "k", version: 1, signature: "*" }), answer(null), proxy(200)];
  for (const one of answers) {
    const { client, requests } = await answering(one);
    await assert.rejects(client.sign("k", message), { name: "KmsError", code: "unexpected_answer", retryable: false });
    assert.equal(requests.length, 1);
  }
});

test("the codes are those of the service's description", () => {
  const description = readFileSync(new URL("../../../spec/http-api.md", import.meta.url), "utf8");
  const table = description.split("| code | status | retry |")[1]?.split("\n\n")[0] ?? "";
  const described = [...table.matchAll(/^\| `([a-z_]+)` \|/gm)].map(([, code]) => code);
  const source = readFileSync(new URL("../src/error.ts", import.meta.url), "utf8");
  const type = source.split("export type ServiceCode =")[1]?.split(";")[0] ?? "";
  assert.ok(described.length > 50);
  assert.deepEqual([...type.matchAll(/"([a-z_]+)"/g)].map(([, code]) => code), described);
});

/**
 * A client that logs in, of a service that gives tokens by their number.
 * @param {() => string | Promise<string>} jwt @param {number} lifetime in milliseconds
 */
async function loggingIn(jwt, lifetime = 3_600_000) {
  let number = 0;
  const { requests, address } = await answering(({ url, body }, response) => {
    if (url !== "/api/v1/login") return signed({ method: "", url, headers: {}, body }, response);
    const token = { token: `t${++number}`, revocation_id: "r", holder: "ci/a", operations: ["sign"] };
    const said = body.jwt === "forged" ? { code: "forbidden", message: "no", retryable: false } : { ...token, expires: new Date(Date.now() + lifetime) };
    answer(said, body.jwt === "forged" ? 403 : 201)({ method: "", url, headers: {}, body }, response);
  });
  return { client: new Client(address, { login: { role: "release", jwt } }), requests };
}

test("a client logs in once for many calls, and again before its token expires", async () => {
  let jwts = 0;
  const { client, requests } = await loggingIn(() => `jwt${++jwts}\n`);
  await Promise.all(Array.from({ length: 8 }, () => client.sign("k", new Uint8Array())));
  const logins = requests.filter(({ url }) => url === "/api/v1/login");
  assert.deepEqual(logins.map(({ body, headers }) => [body, headers.authorization]), [[{ role: "release", jwt: "jwt1" }, undefined]]);
  assert.deepEqual(new Set(requests.slice(1).map(({ headers }) => headers.authorization)), new Set(["Bearer t1"]));

  // Three quarters of a lifetime that is over have passed.
  const short = await loggingIn(() => "jwt", -1);
  await short.client.sign("k", new Uint8Array());
  await short.client.sign("k", new Uint8Array());
  assert.deepEqual(short.requests.map(({ headers }) => headers.authorization), [undefined, "Bearer t1", undefined, "Bearer t2"]);
});

test("a login that fails is the error of the call, and is tried again", async () => {
  const missing = new Error("no file");
  const jwts = [() => Promise.reject(missing), () => "forged", () => "jwt"];
  const { client } = await loggingIn(() => (jwts.shift() ?? (() => "jwt"))());
  await assert.rejects(client.sign("k", new Uint8Array()), missing);
  await assert.rejects(client.sign("k", new Uint8Array()), (error) => error instanceof KmsError && error.code === "forbidden");
  assert.equal((await client.sign("k", new Uint8Array())).version, 2);
});

test("a call ends while it waits for a login that others wait for, too", async () => {
  /** @type {(jwt: string) => void} */
  let give = () => {};
  const { client } = await loggingIn(() => new Promise((resolve) => (give = resolve)));
  const control = new AbortController();
  const ended = client.sign("k", new Uint8Array(), { signal: control.signal });
  const other = client.sign("k", new Uint8Array());
  control.abort(new Error("enough"));
  await assert.rejects(ended, /enough/);
  give("jwt");
  assert.equal((await other).version, 2);
});

test("a login has the token's facts", async () => {
  const { client } = await loggingIn(() => "unused");
  const login = await client.logIn("release", " jwt ");
  assert.deepEqual({ ...login, expires: login.expires > new Date() }, { token: "t1", revocationId: "r", holder: "ci/a", operations: ["sign"], expires: true });
});
