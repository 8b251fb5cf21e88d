// Compiled, never run: what the types of the package let through, and what they refuse.
import { createHasher, createTransformStream, deriveKey, hash, hashMany, hashStream, keyedHash, kernel } from "bulla";
import type { Data, Hasher, Kernel } from "bulla";
import { blake3 } from "bulla/noble";
import { HashTransform, hashFile } from "bulla/node";
import { hashParallel } from "bulla/parallel";
import * as pure from "bulla/pure";
import { updateFrom } from "bulla/stream";

const data: Data[] = ["a", new Uint8Array(1), new DataView(new ArrayBuffer(1)), new SharedArrayBuffer(1), Buffer.alloc(1)];
const digest: Uint8Array<ArrayBuffer> = hash(data[0]!, { length: 64 });
// What is returned goes where the web's own calls want bytes.
const imported: Promise<CryptoKey> = crypto.subtle.importKey("raw", digest, "HKDF", false, ["deriveBits"]);
const hex: string = createHasher({ key: digest }).update("a").digest("hex");
const bytes: Uint8Array<ArrayBuffer> = createHasher({ context: "c" }).digest();
const used: Kernel = kernel();
const hashers: Hasher[] = [createHasher(), pure.createHasher(), createTransformStream().hasher, new HashTransform().hasher];
const digests: Uint8Array[] = hashMany(new Set(data));
const later: Promise<Uint8Array>[] = [
  hashStream(new Blob([digest]).stream()),
  hashStream(process.stdin, { onProgress: (count: number) => count, signal: AbortSignal.timeout(1) }),
  hashFile(new URL("file:///a"), { length: 1 }),
  hashParallel(digest, { workers: 2 }),
  updateFrom(hashers[0]!, data).then((hasher) => hasher.digest()),
];
const noble: Uint8Array = blake3(digest, { key: keyedHash(bytes, deriveKey("c", hex)) });
export { digests, imported, later, noble, used };

// @ts-expect-error numbers are no data
hash(5);
// @ts-expect-error an array of numbers is no data
hash([1, 2, 3]);
// @ts-expect-error a length is a number
hash("a", { length: "32" });
// @ts-expect-error there is no such encoding
createHasher().digest("utf8");
// @ts-expect-error a key is bytes
keyedHash("k".repeat(32), "a");
// @ts-expect-error there is no such option
createHasher({ salt: digest });
// @ts-expect-error a function that would take the place of the hashing
new HashTransform({ transform() {} });
