import assert from "node:assert/strict";
import { test } from "node:test";
import { cores } from "../support/cores.js";
import { pattern, random } from "../support/data.js";

const input = pattern(300_000);
const key = pattern(32);
const context = "bulla 2026-11-20 tests";

for (const { name, api } of cores) {
  const { hash, keyedHash, deriveKey, createHasher } = api;

  test(`${name}: random cuts, with digests, saves, clones and other hashers in between`, () => {
    const next = random(7);
    for (let round = 0; round < 150; round++) {
      const mode = [{}, { key }, { context }][round % 3];
      const length = next(round % 5 === 0 ? input.length : 9000);
      let hasher = createHasher(mode);
      const other = createHasher({ key });
      for (let at = 0; at < length; ) {
        const size = Math.min(length - at, next([1, 64, 70, 1024, 5000, 70000][next(6)] + 1));
        // A misaligned copy now and then.
        const piece = next(3) === 0 ? shifted(input.subarray(at, at + size)) : input.subarray(at, at + size);
        hasher.update(piece);
        at += size;
        const done = input.subarray(0, at);
        switch (next(12)) {
          case 0:
            assert.deepEqual(hasher.digest(), whole(api, mode, done));
            break;
          case 1:
            hasher = hasher.clone();
            break;
          case 2:
            hasher = createHasher().restore(hasher.save());
            break;
          case 3:
            other.update(piece);
            break;
          case 4:
            assert.deepEqual(hash(piece), api.createHasher().update(piece).digest());
            break;
          case 5:
            assert.deepEqual(hasher.xof().seek(20).read(100), hasher.digest("bytes", { length: 120 }).subarray(20));
            break;
        }
      }
      assert.deepEqual(hasher.digest(), whole(api, mode, input.subarray(0, length)), `round ${round}`);
    }
    assert.deepEqual(keyedHash(key, input), createHasher({ key }).update(input).digest());
    assert.deepEqual(deriveKey(context, input), createHasher({ context }).update(input).digest());
  });

  test(`${name}: every cut of 3 chunks into two, and the state there`, () => {
    const bytes = input.subarray(0, 3 * 1024 + 1);
    const expected = hash(bytes);
    for (let cut = 0; cut <= bytes.length; cut++) {
      const hasher = createHasher().update(bytes.subarray(0, cut));
      const restored = createHasher({ key }).restore(hasher.save());
      assert.deepEqual(hasher.update(bytes.subarray(cut)).digest(), expected);
      assert.deepEqual(restored.update(bytes.subarray(cut)).digest(), expected);
    }
  });

  test(`${name}: both cores save the same state at every length to 9 chunks and at some beyond`, () => {
    const lengths = Array.from({ length: 9 * 1024 + 2 }, (_, i) => i);
    for (const length of [...lengths, 65535, 65536, 65537, 131072, 262144, 299_999]) {
      const bytes = input.subarray(0, length);
      const [one, two] = cores.map((core) => core.api.createHasher({ key }).update(bytes).save());
      assert.deepEqual(one, two);
    }
  });

  test(`${name}: a thousand hashers at once`, () => {
    const hashers = Array.from({ length: 1000 }, () => createHasher());
    for (let round = 0; round < 4; round++) {
      hashers.forEach((hasher, i) => hasher.update(input.subarray(round * 700, round * 700 + 700 + i)));
    }
    hashers.forEach((hasher, i) => {
      const all = createHasher();
      for (let round = 0; round < 4; round++) all.update(input.slice(round * 700, round * 700 + 700 + i));
      assert.deepEqual(hasher.digest(), all.digest());
    });
  });

  test(`${name}: a hasher that is reset begins anew, in its mode`, () => {
    for (const mode of [{}, { key }, { context }]) {
      const hasher = createHasher(mode).update(input);
      assert.deepEqual(hasher.reset().update("abc").digest(), createHasher(mode).update("abc").digest());
    }
    const restored = createHasher().restore(createHasher({ key }).update(input).save());
    assert.deepEqual(restored.reset().update("abc").digest(), keyedHash(key, "abc"));
  });

  test(`${name}: a reader stays with what was absorbed when it was made`, () => {
    for (const length of [0, 5, 1024, 5000, 200_000]) {
      const hasher = createHasher().update(input.subarray(0, length));
      const expected = hasher.digest("bytes", { length: 100_000 });
      const reader = hasher.xof();
      const other = createHasher({ key }).update(input).xof();
      hasher.update("more");
      assert.equal(reader.position, 0n);
      assert.deepEqual(reader.read(10), expected.subarray(0, 10));
      other.read(70);
      assert.deepEqual(reader.read(90_000), expected.subarray(10, 90_010));
      assert.deepEqual(reader.seek(63).read(2), expected.subarray(63, 65));
      const target = new Uint16Array(50);
      assert.equal(reader.seek(1000).readInto(target), target);
      assert.deepEqual(new Uint8Array(target.buffer), expected.slice(1000, 1100));
      assert.deepEqual(reader.read(0), new Uint8Array(0));
    }
  });

  test(`${name}: what is returned is the caller's own`, () => {
    const one = hash("a");
    const copy = one.slice();
    hash("b");
    assert.deepEqual(one, copy);
    assert.equal(one.buffer.byteLength, 32);
    const own = key.slice();
    const hasher = createHasher({ key: own });
    own.fill(0);
    assert.deepEqual(hasher.update("a").digest(), keyedHash(key, "a"));
  });
}

/** @param {Uint8Array} bytes */
function shifted(bytes) {
  const copy = new Uint8Array(bytes.length + 3).subarray(3);
  copy.set(bytes);
  return copy;
}

/** @param {any} api @param {any} mode @param {Uint8Array} bytes */
function whole(api, mode, bytes) {
  if (mode.key) return api.keyedHash(key, bytes);
  return mode.context ? api.deriveKey(context, bytes) : api.hash(bytes);
}
