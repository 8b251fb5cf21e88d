import assert from "node:assert/strict";
import { test } from "node:test";
import { hashStream, toHex } from "bulla";
import { cores } from "../support/cores.js";
import { pattern } from "../support/data.js";

const key = pattern(32);

/** What is no data. */
const NO_DATA = [undefined, null, 1, 1n, NaN, true, Symbol("s"), () => {}, {}, [], [1, 2, 3], { length: 3 }, new Date(), new Map()];

/** @param {number} length @param {number} most */
const resizable = (length, most) => new (/** @type {any} */ (ArrayBuffer))(length, { maxByteLength: most });

for (const { name, api } of cores) {
  const { hash, keyedHash, deriveKey, createHasher, hashMany } = api;

  test(`${name}: what is no data is a TypeError, everywhere`, async () => {
    for (const value of /** @type {any[]} */ (NO_DATA)) {
      const expected = { name: "TypeError", code: "ERR_DATA_TYPE" };
      assert.throws(() => hash(value), expected);
      assert.throws(() => keyedHash(key, value), expected);
      assert.throws(() => deriveKey("c", value), expected);
      assert.throws(() => createHasher().update(value), expected);
      assert.throws(() => hashMany([value]), expected);
      await assert.rejects(hashStream([value]), expected);
    }
    for (const value of /** @type {any[]} */ ([undefined, null, 1, {}, "text"])) {
      assert.throws(() => hashMany(value), { name: "TypeError" });
      await assert.rejects(hashStream(value), { name: "TypeError" });
    }
    await assert.rejects(hashStream(/** @type {any} */ (new Uint8Array(3))), { name: "TypeError" });
  });

  test(`${name}: objects that pretend to be bytes are not`, () => {
    const fakes = [
      Object.create(Uint8Array.prototype),
      new Proxy(new Uint8Array(3), {}),
      { [Symbol.toStringTag]: "Uint8Array", length: 3, 0: 1 },
      { [Symbol.toStringTag]: "ArrayBuffer", byteLength: 3 },
      Object.create(ArrayBuffer.prototype),
      Object.create(DataView.prototype),
    ];
    for (const fake of fakes) assert.throws(() => hash(fake), { name: "TypeError" });
  });

  test(`${name}: properties laid over the real ones change nothing`, () => {
    class Liar extends Uint8Array {
      // @ts-ignore
      get length() { return 1; }
      // @ts-ignore
      get byteLength() { return 1; }
      // @ts-ignore
      get buffer() { return new ArrayBuffer(1); }
      // @ts-ignore
      get byteOffset() { return 7; }
      *[Symbol.iterator]() {}
      static get [Symbol.species]() { return Array; }
    }
    for (const length of [0, 3, 64, 1024, 5000, 200_000]) {
      const honest = pattern(length);
      const liar = new Liar(length);
      Uint8Array.prototype.set.call(liar, honest);
      assert.deepEqual(hash(liar), hash(honest));
      assert.deepEqual(createHasher().update(liar).update(liar).digest(), createHasher().update(honest).update(honest).digest());
      assert.deepEqual(hashMany([liar, liar, honest]), hashMany([honest, honest, honest]));
      assert.throws(() => keyedHash(liar, "x"), { code: "ERR_KEY" });
    }
  });

  test(`${name}: every kind of view and buffer is its bytes`, () => {
    for (const length of [0, 16, 1024, 4096, 160_000]) {
      const bytes = pattern(length + 8).subarray(8);
      const expected = hash(pattern(length + 8).slice(8));
      const { buffer, byteOffset } = bytes;
      const kinds = [Uint8ClampedArray, Int8Array, Uint16Array, Int16Array, Uint32Array, Int32Array, Float32Array, Float64Array,
        BigInt64Array, BigUint64Array];
      for (const Kind of kinds) {
        assert.deepEqual(hash(new Kind(buffer, byteOffset, length / Kind.BYTES_PER_ELEMENT)), expected, Kind.name);
      }
      assert.deepEqual(hash(new DataView(buffer, byteOffset, length)), expected);
      assert.deepEqual(hash(bytes.slice().buffer), expected);
      for (let shift = 0; shift < 8; shift++) {
        const moved = new Uint8Array(length + shift).subarray(shift);
        moved.set(bytes);
        assert.deepEqual(hash(moved), expected);
        assert.deepEqual(createHasher().update(moved).digest(), expected);
      }
      if (globalThis.SharedArrayBuffer === undefined) continue;
      const shared = new Uint8Array(new SharedArrayBuffer(length));
      shared.set(bytes);
      for (const data of [shared, shared.buffer, new DataView(shared.buffer)]) {
        assert.deepEqual(hash(data), expected);
        assert.deepEqual(createHasher().update(data).digest(), expected);
        assert.deepEqual(hashMany([data, data]), [expected, expected]);
      }
    }
  });

  test(`${name}: resizable buffers are what they are now; memory that is gone is an error`, () => {
    for (const length of [16, 1024, 4096, 160_000]) {
      const buffer = resizable(length, 200_000);
      const tracking = new Uint8Array(buffer);
      tracking.set(pattern(length));
      const expected = hash(pattern(length));
      for (const data of [buffer, tracking, new DataView(buffer), new Uint32Array(buffer)]) {
        assert.deepEqual(hash(data), expected);
        assert.deepEqual(createHasher().update(data).digest(), expected);
      }
      const fixed = [new Uint8Array(buffer, 8, 8), new Uint16Array(buffer, 8, 4), new DataView(buffer, 8, 8)];
      buffer.resize(length + 100);
      assert.deepEqual(hash(tracking), hash(new Uint8Array([...pattern(length), ...new Uint8Array(100)])));
      buffer.resize(4);
      assert.deepEqual(hash(tracking), hash(pattern(4)));
      for (const view of fixed) assertGone(view);
      buffer.resize(0);
      assert.deepEqual(hash(tracking), hash(""));
    }
  });

  test(`${name}: a buffer that was transferred is an error, not no bytes`, () => {
    for (const length of [0, 1, 64, 5000, 200_000]) {
      const buffer = new ArrayBuffer(length);
      const views = [new Uint8Array(buffer), new DataView(buffer), new Uint8ClampedArray(buffer), buffer];
      structuredClone(buffer, { transfer: [buffer] });
      for (const view of views) assertGone(view);
    }
  });

  /** @param {any} view */
  function assertGone(view) {
    const expected = { name: "TypeError", code: "ERR_DETACHED" };
    assert.throws(() => hash(view), expected);
    assert.throws(() => keyedHash(key, view), expected);
    assert.throws(() => createHasher().update(view), expected);
    assert.throws(() => hashMany([view]), expected);
    assert.throws(() => createHasher().restore(view), expected);
  }

  test(`${name}: data that is taken away while options are read is noticed`, () => {
    const data = new Uint8Array(1000);
    const options = {
      get length() {
        structuredClone(data.buffer, { transfer: [data.buffer] });
        return 32;
      },
    };
    assert.throws(() => hash(data, options), { code: "ERR_DETACHED" });
  });

  test(`${name}: lengths`, () => {
    for (const length of [-1, -0.5, 1.5, NaN, Infinity, -Infinity, 2 ** 53]) {
      const expected = { name: "RangeError", code: "ERR_LENGTH" };
      assert.throws(() => hash("a", { length }), expected, String(length));
      assert.throws(() => keyedHash(key, "a", { length }), expected);
      assert.throws(() => deriveKey("c", "a", { length }), expected);
      assert.throws(() => createHasher().digest("bytes", { length }), expected);
      assert.throws(() => createHasher().xof().read(length), expected);
    }
    assert.throws(() => hash("a", { length: 2 ** 52 }), { name: "RangeError", code: "ERR_LENGTH" });
    for (const length of /** @type {any[]} */ (["32", null, 32n, {}, [32], true])) {
      const expected = { name: "TypeError", code: "ERR_LENGTH" };
      assert.throws(() => createHasher().xof().read(/** @type {any} */ (undefined)), expected);
      assert.throws(() => hash("a", { length }), expected);
      assert.throws(() => createHasher().xof().read(length), expected);
    }
    for (const options of /** @type {any[]} */ ([null, 32, "hex", true, () => {}])) {
      assert.throws(() => hash("a", options), { name: "TypeError", code: "ERR_OPTIONS" });
      assert.throws(() => createHasher(options), { name: "TypeError", code: "ERR_OPTIONS" });
    }
    assert.deepEqual(hash("a", { length: 0 }), new Uint8Array(0));
    assert.deepEqual(hash("a", { length: undefined }), hash("a"));
    for (let length = 0; length <= 400; length++) {
      assert.deepEqual(hash("a", { length }), hash("a", { length: 400 }).slice(0, length));
    }
  });

  test(`${name}: an option is what the object itself has, not what it inherits`, () => {
    const mode = createHasher().digest("hex");
    const pollution = { key, context: "c", length: 5, onProgress: 5, signal: 5 };
    try {
      for (const [option, value] of Object.entries(pollution)) {
        Object.defineProperty(Object.prototype, option, { value, configurable: true, enumerable: true, writable: true });
      }
      for (const options of [undefined, {}, Object.create(null)]) {
        assert.equal(createHasher(options).digest("hex", options), mode);
        assert.equal(toHex(hash("", options)), mode);
        assert.equal(keyedHash(key, "", options).length, 32);
        assert.equal(deriveKey("c", "", options).length, 32);
      }
    } finally {
      for (const option of Object.keys(pollution)) delete (/** @type {any} */ (Object.prototype)[option]);
    }
    // To read these as no options would leave the hash without its key.
    class Options {
      key = key;
    }
    const inherit = [Object.create({ key }), Object.create(Object.create(null, { key: { value: key } })), new Options(), new Map(), key, key.buffer, []];
    for (const options of /** @type {any[]} */ ([...inherit, null, 5, "key", () => {}, Symbol("key")])) {
      const message = "options must be a plain object";
      assert.throws(() => createHasher(options), { name: "TypeError", code: "ERR_OPTIONS", message });
      assert.throws(() => hash("a", options), { name: "TypeError", code: "ERR_OPTIONS", message });
    }
    // What the object itself has counts, however it has it.
    for (const options of [Object.create(null, { key: { value: key } }), Object.create(Object.prototype, { key: { get: () => key } })]) {
      assert.deepEqual(createHasher(options).update("a").digest(), keyedHash(key, "a"));
    }
  });

  test(`${name}: an unknown option is a TypeError that names it and the ones there are`, () => {
    /** @param {(options: any) => unknown} use @param {object} known */
    const refuses = (use, known) => {
      use(known);
      for (const wrong of ["kye", "Key", "dkLen", "__proto__", "0", ""]) {
        const message = `unknown option "${wrong}": this call takes ${Object.keys(known).join(", ")}`;
        for (const value of [5, undefined]) {
          const options = Object.defineProperty({ ...known }, wrong, { value, enumerable: true });
          assert.throws(() => use(options), { name: "TypeError", code: "ERR_OPTIONS", message });
        }
      }
    };
    refuses((options) => hash("a", options), { length: 1 });
    refuses((options) => keyedHash(key, "a", options), { length: 1 });
    refuses((options) => deriveKey("c", "a", options), { length: 1 });
    refuses((options) => createHasher().digest("hex", options), { length: 1 });
    refuses(createHasher, { key, context: undefined });
    assert.throws(() => hash("a", /** @type {any} */ ({ key })), { message: /unknown option "key"/ });
  });

  test(`${name}: keys and contexts`, () => {
    for (const wrong of [new Uint8Array(0), new Uint8Array(31), new Uint8Array(33), new ArrayBuffer(64)]) {
      assert.throws(() => keyedHash(wrong, "a"), { name: "RangeError", code: "ERR_KEY" });
      assert.throws(() => createHasher({ key: wrong }), { name: "RangeError", code: "ERR_KEY" });
    }
    for (const wrong of /** @type {any[]} */ ([null, 5, {}, "k".repeat(32), Array(32).fill(0)])) {
      assert.throws(() => keyedHash(wrong, "a"), { name: "TypeError" });
      assert.throws(() => createHasher({ key: wrong }), { name: "TypeError" });
    }
    assert.throws(() => keyedHash(/** @type {any} */ (undefined), "a"), { name: "TypeError" });
    for (const wrong of /** @type {any[]} */ ([null, 5, {}, ["a"]])) {
      assert.throws(() => deriveKey(wrong, "a"), { name: "TypeError", code: "ERR_CONTEXT" });
      assert.throws(() => createHasher({ context: wrong }), { name: "TypeError", code: "ERR_CONTEXT" });
    }
    assert.throws(() => createHasher({ key, context: "c" }), { name: "TypeError", code: "ERR_OPTIONS" });
    const long = "c".repeat(200_000);
    assert.deepEqual(deriveKey(long, "a"), createHasher({ context: long }).update("a").digest());
    assert.deepEqual(deriveKey(long, "a"), cores[0].api.deriveKey(long, "a"));
    const secret = pattern(32).fill(0xab);
    try {
      keyedHash(secret.subarray(1), "a");
    } catch (error) {
      assert.doesNotMatch(String(error), /ab|171/);
    }
  });

  test(`${name}: encodings`, () => {
    for (const wrong of /** @type {any[]} */ (["HEX", "utf8", "", null, 16, {}])) {
      assert.throws(() => createHasher().digest(wrong), { name: "TypeError", code: "ERR_ENCODING" });
    }
  });

  test(`${name}: positions of output`, () => {
    const reader = createHasher().update("a").xof().seek(77);
    for (const wrong of /** @type {any[]} */ (["1", null, undefined, {}, NaN, 1.5, Infinity, -1, -1n, 2 ** 53, 1n << 64n, 10n ** 40n])) {
      const message = /^a position must be (a number or bigint, not [a-z]+|exact, from 0 to 2\^64 - 1, not -?[\d.NaInfinity]+)$/;
      assert.throws(() => reader.seek(wrong), { code: "ERR_POSITION", message }, String(wrong));
      assert.equal(reader.position, 77n);
    }
    const end = (1n << 64n) - 1n;
    reader.seek(end - 10n);
    assert.throws(() => reader.read(11), { name: "RangeError", code: "ERR_POSITION" });
    assert.equal(reader.position, end - 10n);
    assert.equal(reader.read(10).length, 10);
    assert.deepEqual(reader.read(0), new Uint8Array(0));
    assert.throws(() => reader.read(1), { code: "ERR_POSITION" });
    assert.throws(() => reader.readInto(/** @type {any} */ ([0])), { name: "TypeError" });
    // What a view takes is its bytes, not its elements; where they are not left it stays as it is.
    class Short extends Uint8Array {
      // @ts-ignore
      get byteLength() { return 1; }
      // @ts-ignore
      get length() { return 1; }
    }
    for (const target of [new Uint8Array(11), new Short(11), new Uint16Array(6), new DataView(new ArrayBuffer(11)), new Uint8Array(2 ** 17)]) {
      assert.throws(() => reader.seek(end - 10n).readInto(target), { name: "RangeError", code: "ERR_POSITION" });
      assert.equal(reader.position, end - 10n);
      assert.deepEqual(new Set(new Uint8Array(target.buffer)), new Set([0]));
    }
    const last = reader.seek(end - 10n).read(10);
    assert.deepEqual(new Uint8Array(reader.seek(end - 10n).readInto(new Uint16Array(5)).buffer), last);
    assert.equal(reader.position, end);
    assert.throws(() => reader.readInto(new Uint8Array(1)), { code: "ERR_POSITION" });
    assert.equal(reader.readInto(new Uint8Array(0)).length, 0);
    const far = cores.map((core) => toHex(core.api.createHasher().update("a").xof().seek((1n << 38n) - 7n).read(200)));
    assert.equal(far[0], far[1]);
  });

  test(`${name}: a saved state that was tampered with is refused and changes nothing`, () => {
    const saved = createHasher().update(pattern(5000)).save();
    const hasher = createHasher().update("abc");
    const digest = hasher.digest("hex");
    /** @param {(bytes: Uint8Array, view: DataView) => void} change */
    const tampered = (change) => {
      const bytes = saved.slice();
      change(bytes, new DataView(bytes.buffer));
      return bytes;
    };
    const cases = {
      ERR_STATE_MAGIC: [new Uint8Array(0), new Uint8Array(100), tampered((b) => (b[7] ^= 1)), saved.subarray(1)],
      ERR_STATE_VERSION: [tampered((b) => (b[8] = 2))],
      ERR_STATE_MODE: [tampered((b) => (b[9] = 3))],
      ERR_STATE_RESERVED: [tampered((b) => (b[10] = 1)), tampered((b) => (b[11] = 1))],
      ERR_STATE_LENGTH: [
        saved.subarray(0, 20), saved.subarray(0, -1), new Uint8Array([...saved, 0]), tampered((b) => (b[12] ^= 1)),
        new Uint8Array([...saved, ...new Uint8Array(10_000)]),
      ],
      ERR_STATE_COUNT: [tampered((_, v) => v.setBigUint64(24, 5001n, true)), tampered((_, v) => v.setBigUint64(24, 0n, true))],
      ERR_STATE_KEY: [tampered((b) => (b[40] ^= 1))],
      ERR_STATE_OFFSET: [tampered((_, v) => v.setBigUint64(16, 1023n, true))],
      ERR_STATE_RANGE: [tampered((_, v) => v.setBigUint64(16, (1n << 64n) - 1024n, true))],
      ERR_STATE_SUBTREE: [tampered((_, v) => v.setBigUint64(16, 1024n, true))],
    };
    for (const [code, states] of Object.entries(cases)) {
      for (const state of states) {
        assert.throws(() => hasher.restore(state), { name: "StateError", code });
        assert.equal(hasher.digest("hex"), digest);
      }
    }
    for (const wrong of /** @type {any[]} */ ([undefined, null, "bullab3s", {}, 5])) {
      assert.throws(() => hasher.restore(wrong), { name: "TypeError" });
    }
    assert.equal(hasher.restore(saved).digest("hex"), toHex(hash(pattern(5000))));
  });

  test(`${name}: a restored hasher takes no more than its subtree or 2^64 - 1 bytes hold`, () => {
    const part = createHasher().save();
    new DataView(part.buffer).setBigUint64(16, 4096n, true);
    const subtree = createHasher().restore(part).update(new Uint8Array(4000));
    const before = subtree.save();
    assert.throws(() => subtree.update(new Uint8Array(97)), { name: "RangeError", code: "ERR_INPUT_TOO_LONG" });
    assert.deepEqual(subtree.save(), before);
    subtree.update(new Uint8Array(96));
    assert.throws(() => subtree.update("a"), { code: "ERR_INPUT_TOO_LONG" });
    // All chunks but a byte: the state with the most chaining values.
    const full = new Uint8Array(64 + 54 * 32 + 1023);
    full.set(createHasher().save().subarray(0, 64));
    const view = new DataView(full.buffer);
    view.setUint32(12, full.length, true);
    view.setBigUint64(24, (1n << 64n) - 1n, true);
    const longest = createHasher().restore(full);
    assert.deepEqual(longest.save(), full);
    assert.throws(() => longest.update("a"), { name: "RangeError", code: "ERR_INPUT_TOO_LONG" });
    assert.equal(longest.digest("hex"), cores[0].api.createHasher().restore(full).digest("hex"));
    const last = full.slice(0, -1);
    new DataView(last.buffer).setUint32(12, last.length, true);
    new DataView(last.buffer).setBigUint64(24, (1n << 64n) - 2n, true);
    assert.deepEqual(createHasher().restore(last).update(new Uint8Array(1)).save(), full);
  });
}
