// Compiled, never run: what the types of the package let through, and what they refuse.
import { Client, type Code, type Key, KmsError, type ServiceCode, type Signature } from "bulla-kms";

const client = new Client(new URL("http://127.0.0.1:8200"), { token: "t", retries: 0, fetch });
export async function use(message: Uint8Array, error: unknown): Promise<Code | undefined> {
  await using closed: Client = client;
  const key: Key = await closed.createKey({ label: "invoices", rotation: { maxUses: 10 } });
  const made: Signature = await client.sign(key.id, message, { signal: AbortSignal.timeout(1) });
  const valid: boolean = await client.verify(made.key, message, made.signature);
  for await (const { label, latestVersion } of client.keys()) console.log(label, latestVersion, valid);
  for await (const { number, actor } of client.auditEntries(10)) console.log(number, actor);
  for (const result of await client.signMany([{ key: key.id, message }])) {
    if (result.status === "fulfilled") console.log(result.value.version);
    else console.log(result.reason.code);
  }
  const sealed = await client.encrypt("orders", message, { associatedData: message, signal: AbortSignal.timeout(1) });
  const opened: Uint8Array = (await client.decrypt("orders", sealed.ciphertext, { context: message })).plaintext;
  const isGenuine: boolean = await client.verifyMac((await client.mac("cookies", opened)).key, message, opened);
  console.log((await client.generateDataKey("orders", { bits: 128 })).plaintext, isGenuine);
  const { jwt, expires } = await client.signJwt("jobs", { aud: "https://api.example.org" }, { lifetimeSeconds: 60 });
  console.log(jwt, expires.getTime());
  // A code of the service, and one that only a newer service has.
  const known: ServiceCode = "key_not_found";
  return error instanceof KmsError && (error.code === known || error.code === "newer") ? error.code : undefined;
}

// @ts-expect-error a message is bytes
client.sign("k", "a message");
// @ts-expect-error a data key has no such length
client.generateDataKey("k", { bits: 100 });
// @ts-expect-error there is no such setting
client.createKey({ size: 3 });
// @ts-expect-error the service has no such code
export const unknown: ServiceCode = "no_such_code";
// @ts-expect-error a version's time is a Date or null
export const retired: string = (await client.key("k")).versions[0]!.retired;
