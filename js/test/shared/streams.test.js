import assert from "node:assert/strict";
import { test } from "node:test";
import * as full from "bulla";
import { updateFrom } from "bulla/stream";
import { cores } from "../support/cores.js";
import { pattern } from "../support/data.js";

const input = pattern(500_000);
const key = pattern(32);

/** @param {number} size */
function* pieces(size) {
  for (let at = 0; at < input.length; at += size) yield input.subarray(at, at + size);
}

/** @param {number} size */
async function* slowPieces(size) {
  for (const piece of pieces(size)) {
    await null;
    yield piece;
  }
}

/** @param {number} size */
function stream(size) {
  const iterator = pieces(size);
  return new ReadableStream({
    pull(controller) {
      const { done, value } = iterator.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
}

for (const kernel of full.kernels()) {
  const name = `main entry, ${kernel}`;
  const { hash, keyedHash, hashStream, createTransformStream } = full;

  test(`${name}: streams of all kinds`, async () => {
    full.forceKernel(kernel);
    const expected = hash(input, { length: 64 });
    for (const size of [777, 4096, 100_000]) {
      for (const source of [pieces(size), slowPieces(size), stream(size), [input.subarray(0, 9), input.subarray(9)]]) {
        assert.deepEqual(await hashStream(source, { length: 64 }), expected);
      }
    }
    assert.deepEqual(await hashStream([]), hash(""));
    assert.deepEqual(await hashStream(["\u2713", new Uint8Array([1])]), hash(new Uint8Array([0xe2, 0x9c, 0x93, 1])));
    assert.deepEqual(await hashStream(stream(5000), { key }), keyedHash(key, input));
    assert.deepEqual(await hashStream(new Blob([input]).stream()), hash(input));
  });

  test(`${name}: progress rises to the number of bytes`, async () => {
    /** @type {number[]} */
    const seen = [];
    await hashStream(stream(50_000), { onProgress: (bytes) => seen.push(bytes) });
    assert.deepEqual(seen, Array.from({ length: 10 }, (_, i) => 50_000 * (i + 1)));
  });

  test(`${name}: a signal stops at once, also while the source waits, and the source is closed`, async () => {
    const reason = new Error("enough");
    let closed = 0;
    const waiting = {
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise(() => {}),
        return: () => (closed++, new Promise(() => {})),
      }),
    };
    const never = new ReadableStream({ cancel: () => void closed++ });
    for (const source of /** @type {any[]} */ ([waiting, never])) {
      const controller = new AbortController();
      const promise = hashStream(source, { signal: controller.signal });
      setTimeout(() => controller.abort(reason), 5);
      await assert.rejects(promise, reason);
    }
    assert.equal(closed, 2);
    await assert.rejects(hashStream(stream(1000), { signal: AbortSignal.abort(reason) }), reason);
    const controller = new AbortController();
    const onProgress = () => controller.abort(reason);
    await assert.rejects(hashStream(stream(1000), { signal: controller.signal, onProgress }), reason);
  });

  test(`${name}: what goes wrong in the source or in the caller's function is passed on, and the source is closed`, async () => {
    const broken = new Error("broken");
    let closed = false;
    async function* failing() {
      try {
        yield input;
        throw broken;
      } finally {
        closed = true;
      }
    }
    await assert.rejects(hashStream(failing()), broken);
    const source = stream(1000);
    const onProgress = () => {
      throw broken;
    };
    await assert.rejects(hashStream(source, { onProgress }), broken);
    await assert.rejects(hashStream(failing(), { onProgress }), broken);
    assert.ok(closed);
    await assert.rejects(hashStream(stream(10), { length: -1 }), { code: "ERR_LENGTH" });
    await assert.rejects(hashStream(stream(10), { key: new Uint8Array(3) }), { code: "ERR_KEY" });
  });

  test(`${name}: unknown options of streams are errors, and inherited ones are none`, async () => {
    const unknown = { name: "TypeError", code: "ERR_OPTIONS" };
    await assert.rejects(hashStream([], /** @type {any} */ ({ kye: key })), unknown);
    await assert.rejects(updateFrom(full.createHasher(), [], /** @type {any} */ ({ length: 5 })), unknown);
    assert.throws(() => createTransformStream(/** @type {any} */ ({ length: 5 })), unknown);
    const inherited = /** @type {any} */ (Object.prototype);
    inherited.key = key;
    inherited.signal = AbortSignal.abort();
    try {
      assert.deepEqual(await hashStream([input]), hash(input));
      assert.deepEqual(await hashStream([input], {}), hash(input));
      assert.deepEqual(createTransformStream().hasher.digest(), hash(""));
    } finally {
      delete inherited.key;
      delete inherited.signal;
    }
  });

  test(`${name}: what is no source is a TypeError that says so`, async () => {
    const expected = { name: "TypeError", code: "ERR_DATA_TYPE", message: /^a source must be a stream or iterable, not / };
    const wrong = [undefined, null, 1, {}, "text", new Uint8Array(3), new DataView(new ArrayBuffer(3)), new ArrayBuffer(3), () => {}];
    for (const source of /** @type {any[]} */ (wrong)) {
      await assert.rejects(hashStream(source), expected);
      await assert.rejects(updateFrom(full.createHasher(), source), expected);
    }
  });

  test(`${name}: a TransformStream passes on what it hashes`, async () => {
    const through = createTransformStream({ key });
    const chunks = [];
    for await (const chunk of /** @type {any} */ (stream(9999).pipeThrough(through))) chunks.push(...chunk);
    assert.deepEqual(Uint8Array.from(chunks), input);
    assert.deepEqual(through.hasher.digest(), keyedHash(key, input));
    const bad = createTransformStream();
    const writer = bad.writable.getWriter();
    bad.readable.getReader().read().catch(() => {});
    await assert.rejects(writer.write(/** @type {any} */ (5)), { code: "ERR_DATA_TYPE" });
  });
}

for (const { name, api } of cores) {
  test(`${name}: its hashers absorb streams`, async () => {
    const hasher = api.createHasher({ key });
    assert.equal(await updateFrom(hasher, stream(5000)), hasher);
    assert.deepEqual(hasher.digest(), api.keyedHash(key, input));
  });
}
